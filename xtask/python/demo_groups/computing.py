"""Devices, computations, training, and programs that are compiled ahead of time."""

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from demo_groups import batch_mesh, group, require


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


@group
def ahead_of_time(record):
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
    lowered = jax.jit(lambda v: jnp.tanh(v @ v.T)).lower(x)
    record.exact("module", lowered.as_text())
    compiled = lowered.compile()
    record.close("call", compiled(x), rtol=1e-5, atol=1e-6)
    record.exact("in_tree", str(compiled.in_tree))
    require("ENTRY" in compiled.as_text(), "the optimized program cannot be read")
    memory = compiled.memory_analysis()
    sizes = [memory.argument_size_in_bytes, memory.output_size_in_bytes, memory.alias_size_in_bytes]
    record.exact("memory_analysis", sizes)
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
