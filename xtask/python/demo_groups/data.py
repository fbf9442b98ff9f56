"""Data there and back, and from one place to another."""

import time

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from demo_groups import batch_mesh, group, require

FLOAT8 = "e3m4 e4m3 e4m3fn e4m3b11fnuz e4m3fnuz e5m2 e5m2fnuz e8m0fnu".split()
# Types of NumPy's extension, with the bits that an element uses of each byte.
NARROW = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1fn": 4}
NARROW |= {f"float8_{name}": 8 for name in FLOAT8}
WIDE = "bool int8 uint8 int16 uint16 int32 uint32 float16 float32 complex64".split()


def samples():
    """An odd count of elements of every type that JAX knows without 64-bit types."""
    counting = np.arange(17)
    for name, bits in NARROW.items():
        # Every bit pattern is an element, the infinities and the NaNs too.
        patterns = (counting * 7 % (1 << bits)).astype(np.uint8)
        yield name, patterns.view(getattr(ml_dtypes, name))
    yield "bfloat16", (counting * 1.7 - 9).astype(ml_dtypes.bfloat16)
    for name in WIDE:
        yield name, (counting * 7 - 50).astype(name)


def patterns(host):
    """The bits that count: what stands above the bits of a narrow type is padding."""
    used = NARROW.get(host.dtype.name, 8)
    return host.view(np.uint8) & np.uint8((1 << used) - 1)


@group
def dtypes(record):
    """Every element type there and back, and once through a program."""
    for name, host in samples():
        there = jax.device_put(host)
        back = np.asarray(there)
        require(back.dtype == host.dtype, f"{name} came back as {back.dtype}")
        require(np.array_equal(patterns(back), patterns(host)), f"{name} came back changed")
        record.exact(f"{name} nbytes", there.nbytes)
        turned = np.asarray(jax.jit(lambda v: v[::-1])(there))
        require(np.array_equal(patterns(turned), patterns(host[::-1].copy())), f"{name} was not turned")
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
