"""A JAX program that does a little of everything and writes down what it saw.

    python demo_program.py RESULTS.json [--only GROUP ...]

It imports JAX and NumPy and nothing else, and it does not know what its devices are: it is run
once on JAX's built-in CPU client and once through a server, and the two files are compared entry
by entry. An entry is compared exactly, or within the relative and absolute tolerance that stands
in it where two builds of the XLA compiler may round differently, or, for a duration, not at all.
"""

import argparse
import hashlib
import json
import pathlib
import time

import jax
import jax.export
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

GROUPS = {}


def group(function):
    """Registers a function that makes one group of entries."""
    GROUPS[function.__name__] = function
    return function


class Record:
    """The entries of one group, under names that start with the name of the group."""

    def __init__(self, entries, prefix):
        self._entries = entries
        self._prefix = prefix

    def _put(self, name, entry):
        full = f"{self._prefix}.{name}"
        if full in self._entries:
            raise ValueError(f"two entries are called {full}")
        self._entries[full] = entry

    def exact(self, name, value):
        """A value of plain Python that must be the same everywhere."""
        self._put(name, {"kind": "exact", "value": value})

    def bits(self, name, array):
        """An array that must be the same to the last bit."""
        host = np.asarray(array)
        digest = hashlib.sha256(np.ascontiguousarray(host).tobytes()).hexdigest()
        self.exact(name, {"dtype": str(host.dtype), "shape": list(host.shape), "sha256": digest})

    def close(self, name, array, rtol, atol=0.0):
        """An array whose elements may differ by `atol + rtol * |expected|`."""
        host = np.asarray(array)
        values = [repr(v) for v in host.astype(np.float64).ravel().tolist()]
        self._put(
            name,
            {
                "kind": "close",
                "dtype": str(host.dtype),
                "shape": list(host.shape),
                "values": values,
                "rtol": rtol,
                "atol": atol,
            },
        )

    def one_of(self, name, value, accepted):
        """A value that may differ from one runtime to another, within these choices."""
        self._put(name, {"kind": "one_of", "value": value, "accepted": accepted})

    def duration(self, name, seconds):
        """A time, to be read and not to be compared."""
        self._put(name, {"kind": "duration", "seconds": seconds})

    def error(self, name, function, text=True):
        """The error of a call that must fail: its class, and its text unless told otherwise."""
        try:
            value = function()
        except Exception as error:  # The class is what is recorded.
            kind = type(error).__name__
            self.exact(name, f"{kind}: {error}" if text else kind)
        else:
            raise AssertionError(f"{name}: no error, but {type(value).__name__}")


def require(condition, text):
    """A fact that must hold wherever the program runs."""
    if not condition:
        raise AssertionError(text)


def batch_mesh():
    """All eight devices along one axis."""
    return Mesh(np.array(jax.devices()), ("batch",))


# Devices and plain computations.


@group
def devices(record):
    found = jax.devices()
    record.exact("count", len(found))
    record.exact("local count", jax.local_device_count())
    record.exact("ids", [d.id for d in found])
    record.exact("platform", [d.platform for d in found])
    record.exact("device_kind", [d.device_kind for d in found])
    record.exact("process_index", [d.process_index for d in found])
    record.exact("str", [str(d) for d in found])
    record.exact("repr", [repr(d) for d in found])
    record.exact("default backend", jax.default_backend())
    record.exact("memory kinds", [sorted(m.kind for m in d.addressable_memories()) for d in found])
    record.exact("default memory", [d.default_memory().kind for d in found])


@group
def matmul(record):
    rng = np.random.default_rng(1)
    a = rng.standard_normal((128, 96), dtype=np.float32)
    b = rng.standard_normal((96, 64), dtype=np.float32)
    product = jax.jit(jnp.matmul)
    record.close("float32", product(a, b), rtol=1e-5, atol=1e-5)
    # Whole numbers are summed without rounding, so every build agrees to the last bit.
    whole = product(np.round(a * 8), np.round(b * 8))
    record.bits("whole numbers", whole)
    require(np.array_equal(np.asarray(whole), np.round(a * 8) @ np.round(b * 8)), "wrong product")


@group
def transformations(record):
    x = jnp.linspace(0.1, 2.0, 32)
    record.close("grad", jax.grad(lambda v: jnp.sum(jnp.sin(v) * v**2))(x), rtol=1e-5, atol=1e-6)
    record.close("vmap", jax.vmap(jnp.outer)(x.reshape(4, 8), x.reshape(4, 8)), rtol=1e-6)
    record.close("vmap of grad", jax.vmap(jax.grad(jnp.tanh))(x), rtol=1e-5, atol=1e-6)
    record.close("hessian", jax.hessian(lambda v: jnp.sum(v**3))(x[:5]), rtol=1e-5)
    total, partial = jax.lax.scan(lambda c, v: (c + v, c * v), 0.0, x)
    record.close("scan carry", total, rtol=1e-6)
    record.close("scan outputs", partial, rtol=1e-5)
    squarings = jax.lax.while_loop(lambda s: s[1] < 1000, lambda s: (s[0] + 1, s[1] * 2), (0, 1))
    record.exact("while_loop", [int(v) for v in squarings])
    record.exact("cond", float(jax.jit(lambda p: jax.lax.cond(p > 0, jnp.sin, jnp.cos, 0.0))(1)))
    record.bits("sort", jnp.sort(-x))
    record.bits("argsort", jnp.argsort(-x))


@group
def random(record):
    key = jax.random.key(7)
    left, right = jax.random.split(key)
    record.bits("key data", jax.random.key_data(left))
    record.bits("bits", jax.random.bits(right, (1000,)))
    record.bits("uniform", jax.random.uniform(key, (1000,)))
    record.bits("permutation", jax.random.permutation(key, 100))
    record.bits("randint", jax.random.randint(key, (100,), -50, 50))
    record.close("normal", jax.random.normal(key, (1000,)), rtol=1e-5, atol=1e-6)


# Training.


def init_params(sizes):
    rng = np.random.default_rng(3)
    return [
        (rng.standard_normal((m, n), dtype=np.float32) / np.float32(m**0.5), np.zeros(n, np.float32))
        for m, n in zip(sizes[:-1], sizes[1:])
    ]


def loss_of(params, x, y):
    for weights, bias in params[:-1]:
        x = jnp.tanh(x @ weights + bias)
    weights, bias = params[-1]
    return jnp.mean((x @ weights + bias - y) ** 2)


def train_step(params, x, y):
    loss, grads = jax.value_and_grad(loss_of)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), loss


def batch_of(n):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((n, 16), dtype=np.float32)
    return x, np.sin(x[:, :4]).astype(np.float32)


@group
def mlp(record):
    """One hundred steps whose old parameters are given away at every step."""
    step = jax.jit(train_step, donate_argnums=0)
    x, y = (jax.device_put(a) for a in batch_of(64))
    first = params = jax.device_put(init_params([16, 64, 64, 4]))
    losses = []
    for _ in range(100):
        params, loss = step(params, x, y)
        losses.append(loss)
    losses = np.array(jax.device_get(losses))
    require(losses[-1] < losses[0] / 2, f"the loss went from {losses[0]} to {losses[-1]} only")
    record.close("final loss", losses[-1], rtol=1e-6)
    record.close("losses", losses, rtol=2e-6)
    record.exact("donated", [leaf.is_deleted() for leaf in jax.tree.leaves(first)])
    record.exact("alive", [leaf.is_deleted() for leaf in jax.tree.leaves(params)])


@group
def data_parallel(record):
    """The same step with the batch on eight devices and the parameters on each of them."""
    mesh = batch_mesh()
    split, everywhere = NamedSharding(mesh, P("batch")), NamedSharding(mesh, P())
    params = jax.device_put(init_params([16, 64, 4]), everywhere)
    x, y = (jax.device_put(a, split) for a in batch_of(64))
    step = jax.jit(train_step, donate_argnums=0, out_shardings=(everywhere, everywhere))
    for _ in range(10):
        params, loss = step(params, x, y)
    record.close("loss", loss, rtol=1e-5)
    record.close("bias", params[-1][1], rtol=1e-4, atol=1e-6)
    record.exact("sharding", str(params[0][0].sharding))
    record.exact("shards", [[s.device.id, list(s.data.shape)] for s in x.addressable_shards])
    copies = [np.asarray(s.data).tobytes() for s in params[0][0].addressable_shards]
    record.exact("copies differ", len(set(copies)) > 1)
    total = jax.jit(
        jax.shard_map(
            lambda v: jax.lax.psum(v, "batch"), mesh=mesh, in_specs=P("batch"), out_specs=P()
        )
    )
    record.bits("psum", total(jax.device_put(np.arange(16.0, dtype=np.float32), split)))


# Data there and back.


NARROW = ["bfloat16", "int4", "uint4", "int2", "uint2", "float4_e2m1fn"] + [
    f"float8_{name}"
    for name in "e3m4 e4m3 e4m3fn e4m3b11fnuz e4m3fnuz e5m2 e5m2fnuz e8m0fnu".split()
]
WIDE = "bool int8 uint8 int16 uint16 int32 uint32 float16 float32 complex64".split()


@group
def dtypes(record):
    """Every element type there and back, an odd count of elements, and once through a program."""
    source = np.arange(17) % 4
    for name in NARROW + WIDE:
        dtype = np.dtype(getattr(ml_dtypes, name)) if name in NARROW else np.dtype(name)
        host = source.astype(np.float32).astype(dtype)
        there = jax.device_put(host)
        back = np.asarray(there)
        require(back.dtype == dtype, f"{name} came back as {back.dtype}")
        require(back.tobytes() == host.tobytes(), f"{name} came back changed")
        record.exact(f"{name} nbytes", there.nbytes)
        record.bits(f"{name} reversed", jax.jit(lambda v: v[::-1])(there))
    record.bits("int4 sum", jax.jit(lambda v: v.astype(jnp.int32).sum())(jnp.arange(7, dtype=jnp.int4)))
    for shape in [(), (0,), (3, 0, 2), (1, 1, 1), (3, 5, 7)]:
        host = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
        record.bits(f"shape {list(shape)}", jax.device_put(host))
    turned = np.arange(12, dtype=np.float32).reshape(3, 4).T
    record.bits("column major", jax.device_put(turned))


@group
def strings(record):
    host = np.array(["", "plain", "naïve 日本語", "x" * 1000], dtype=np.dtypes.StringDType())
    there = jax.device_put(host.reshape(2, 2), jax.devices()[1])
    back = np.asarray(there)
    require(back.tolist() == host.reshape(2, 2).tolist(), "the strings came back changed")
    record.exact("shape", list(there.shape))
    record.exact("dtype", str(back.dtype))
    record.exact("values", back.tolist())
    there.delete()
    record.exact("is_deleted", there.is_deleted())


@group
def big_array(record):
    """64 MiB there and back."""
    host = np.arange(16 * 1024 * 1024, dtype=np.uint32).reshape(4096, 4096)
    start = time.perf_counter()
    there = jax.device_put(host)
    there.block_until_ready()
    record.duration("put", time.perf_counter() - start)
    start = time.perf_counter()
    back = np.asarray(jax.jit(lambda v: v + 1)(there))
    record.duration("add and get", time.perf_counter() - start)
    require(np.array_equal(back, host + 1), "64 MiB came back changed")
    start = time.perf_counter()
    there.delete()
    record.duration("delete", time.perf_counter() - start)
    record.exact("is_deleted", there.is_deleted())


@group
def many_puts(record):
    """2,000 uploads without a pause: more than a default HTTP/2 server takes at once."""
    start = time.perf_counter()
    arrays = [jax.device_put(np.full(4, i, np.int32)) for i in range(2000)]
    record.duration("2000 device_put", time.perf_counter() - start)
    record.bits("values", np.stack(jax.device_get(arrays)))
    start = time.perf_counter()
    for array in arrays:
        array.delete()
    record.duration("2000 delete", time.perf_counter() - start)
    record.exact("all deleted", all(array.is_deleted() for array in arrays))


# Placement.


@group
def placement(record):
    found = jax.devices()
    host = np.arange(64, dtype=np.float32).reshape(8, 8)
    first = jax.device_put(host, found[0])
    third = jax.device_put(first, found[3])
    record.exact("moved to", [d.id for d in third.devices()])
    record.bits("moved", third)
    first.delete()
    record.bits("copy outlives source", third)

    mesh = Mesh(np.array(found).reshape(4, 2), ("x", "y"))
    specs = [P("x", "y"), P("y", "x"), P(None, "x"), P(("x", "y")), P()]
    arrays = [jax.device_put(host, NamedSharding(mesh, spec)) for spec in specs]
    for spec, array in zip(specs, arrays):
        name = str(spec)
        record.bits(f"{name} put", array)
        record.exact(f"{name} shards", [[s.device.id, str(s.index)] for s in array.addressable_shards])
        again = jax.device_put(array, NamedSharding(mesh, P("y")))
        record.bits(f"{name} to P('y')", again)
        inside = jax.jit(lambda v: v * 2, out_shardings=NamedSharding(mesh, P("y", "x")))
        record.bits(f"{name} resharded in jit", inside(array))

    backwards = NamedSharding(Mesh(np.array(found[::-1]), ("batch",)), P("batch"))
    straight = jax.device_put(host, NamedSharding(batch_mesh(), P("batch")))
    turned = jax.device_put(straight, backwards)
    record.bits("reordered devices", turned)
    record.exact("reordered shards", [[s.device.id, str(s.index)] for s in turned.addressable_shards])
    parts = [s.data for s in straight.addressable_shards]
    whole = jax.make_array_from_single_device_arrays((8, 8), straight.sharding, parts)
    record.bits("assembled", whole)


@group
def memory_kinds(record):
    device = jax.devices()[2]
    host = np.arange(1000, dtype=np.float32)
    pinned = jax.device_put(host, SingleDeviceSharding(device, memory_kind="pinned_host"))
    record.exact("kind", pinned.sharding.memory_kind)
    record.bits("pinned", pinned)
    back = jax.device_put(pinned, SingleDeviceSharding(device, memory_kind="device"))
    record.exact("kind back", back.sharding.memory_kind)
    record.bits("back", back)
    pinned.delete()
    record.bits("back outlives pinned", back)


# Ahead of time.


@group
def ahead_of_time(record):
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
    lowered = jax.jit(lambda v: jnp.tanh(v @ v.T)).lower(x)
    record.exact("module", lowered.as_text())
    compiled = lowered.compile()
    record.close("call", compiled(x), rtol=1e-5, atol=1e-6)
    record.exact("in_tree", str(compiled.in_tree))
    record.exact("as_text", "HloModule" in compiled.as_text())
    record.exact("memory_analysis", compiled.memory_analysis().argument_size_in_bytes)
    record.exact("output_shardings", str(compiled.output_shardings))
    exported = jax.export.export(jax.jit(lambda v: jnp.sin(v) * 2))(jax.ShapeDtypeStruct((8,), jnp.float32))
    blob = exported.serialize()
    restored = jax.export.deserialize(blob)
    record.exact("exported platforms", list(restored.platforms))
    record.close("exported call", restored.call(x[0]), rtol=1e-6, atol=1e-7)
    record.exact("exported devices", restored.nr_devices)


@group
def cost_analysis(record):
    """A runtime behind the PJRT C API may not offer it; JAX then answers None."""
    compiled = jax.jit(lambda v: v @ v).lower(np.ones((8, 8), np.float32)).compile()
    record.one_of("answered", type(compiled.cost_analysis()).__name__, ["dict", "NoneType"])


# Deletion.


def fresh(n=16):
    return jax.device_put(np.arange(n, dtype=np.float32))


@group
def deletion(record):
    x = fresh()
    record.exact("before", x.is_deleted())
    record.exact("first delete", x.delete())
    record.exact("after", x.is_deleted())
    record.exact("second delete", x.delete())
    record.exact("still", x.is_deleted())
    record.exact("shape and dtype", [list(x.shape), str(x.dtype), x.nbytes, x.ndim, len(x)])
    record.exact("listed", any(a is x for a in jax.live_arrays()))
    record.error("np.asarray", lambda: np.asarray(x))
    record.error("x + 1", lambda: x + 1)
    record.error("block_until_ready", x.block_until_ready)
    record.error("jax.block_until_ready", lambda: jax.block_until_ready(x))
    record.error("repr", lambda: repr(x))
    record.error("device_put", lambda: jax.device_put(x, jax.devices()[1]))
    record.error("copy_to_host_async", x.copy_to_host_async)
    record.error("devices", x.devices)
    record.error("jit", lambda: jax.jit(jnp.sin)(x))
    scalar = jax.device_put(np.float32(1))
    scalar.delete()
    record.error("float", lambda: float(scalar))
    record.error("compiled", lambda: jax.jit(jnp.cos).lower(fresh()).compile()(x))
    sharded = jax.device_put(np.arange(16.0, dtype=np.float32), NamedSharding(batch_mesh(), P("batch")))
    shard = sharded.addressable_shards[3].data
    sharded.delete()
    record.exact("shard of deleted", shard.is_deleted())
    record.error("sharded np.asarray", lambda: np.asarray(sharded))
    record.error("sharded x + 1", lambda: sharded + 1)


@group
def donation(record):
    give = jax.jit(lambda a: a * 2, donate_argnums=0)
    x = fresh()
    y = give(x)
    record.exact("donated", x.is_deleted())
    record.error("np.asarray", lambda: np.asarray(x))
    record.error("x + 1", lambda: x + 1, text=False)
    record.error("donated again", lambda: give(x), text=False)
    record.exact("delete", x.delete())
    record.bits("result", y)
    twice = jax.jit(lambda a, b: a + b, donate_argnums=0)
    z = fresh()
    record.error("given and used", lambda: twice(z, z), text=False)
    record.exact("survives", z.is_deleted())
    record.bits("value survives", z)


@group
def aliases(record):
    x = fresh()
    same = jax.device_put(x, jax.devices()[0])
    other = jax.device_put(x, jax.devices()[1])
    copied = jnp.copy(x)
    record.exact("same object", same is x)
    record.bits("alias", same)
    x.delete()
    record.exact("other device", other.is_deleted())
    record.bits("other device value", other)
    record.bits("copy value", copied)
    pair = jax.jit(lambda v: (v, v))(fresh())
    pair[0].delete()
    record.exact("other output", pair[1].is_deleted())
    record.bits("other output value", pair[1])


@group
def busy_deletion(record):
    """Inputs, intermediates and outputs deleted while the computation that needs them runs."""

    def slow(a):
        return jax.lax.fori_loop(0, 400, lambda _, v: jnp.cos(v @ a / 16), a)

    slow = jax.jit(slow)
    host = np.random.default_rng(9).uniform(-1, 1, (256, 256)).astype(np.float32)
    expected = np.asarray(slow(jax.device_put(host)))  # compiles
    start = time.perf_counter()
    np.asarray(slow(jax.device_put(host)))
    computing = time.perf_counter() - start

    x = jax.device_put(host)
    y = slow(x)
    start = time.perf_counter()
    x.delete()
    deleting = time.perf_counter() - start
    record.duration("computation", computing)
    record.duration("delete of its input", deleting)
    require(deleting < computing / 2, f"delete() took {deleting} s of {computing} s")
    require(np.array_equal(np.asarray(y), expected), "the deletion changed the result")
    record.close("result", y, rtol=1e-5, atol=1e-6)

    x = jax.device_put(host)
    middle = slow(x)
    last = slow(middle)
    middle.delete()
    record.error("pending output", lambda: np.asarray(middle))
    record.close("after a deleted intermediate", last, rtol=1e-5, atol=1e-6)

    abandoned = slow(x)
    abandoned.delete()
    record.exact("abandoned", abandoned.is_deleted())
    record.bits("still works", jax.jit(lambda v: v + 1)(np.zeros(3, np.float32)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", choices=sorted(GROUPS), default=list(GROUPS))
    arguments = parser.parse_args()
    entries = {}
    for name in arguments.only:
        start = time.perf_counter()
        try:
            GROUPS[name](Record(entries, name))
        except Exception as error:  # One broken group must not hide the others.
            entries[f"{name}.group"] = {"kind": "error", "text": f"{type(error).__name__}: {error}"}
        else:
            entries[f"{name}.group"] = {"kind": "exact", "value": "finished"}
        print(f"{name}: {time.perf_counter() - start:.2f} s", flush=True)
    temporary = arguments.results.with_suffix(".part")
    temporary.write_text(json.dumps(entries, indent=1))
    temporary.replace(arguments.results)


if __name__ == "__main__":
    main()
