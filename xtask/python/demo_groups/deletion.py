"""Deletion and donation: of idle arrays, of aliases, and while something runs."""

import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from demo_groups import batch_mesh, group, require


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
    # In process nothing was given. The proxy client inside jaxlib counts an array as given when it
    # sends the call, whatever becomes of the call.
    record.one_of("given by a failed call", z.is_deleted(), [False, True])
    record.bits("afterwards", twice(fresh(), fresh()))


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

    # The fastest of some deletions: a busy machine may stop any single one for a while.
    deleting = []
    for _ in range(3):
        x = jax.device_put(host)
        y = slow(x)
        start = time.perf_counter()
        x.delete()
        deleting.append(time.perf_counter() - start)
        require(np.array_equal(np.asarray(y), expected), "the deletion changed the result")
    record.duration("computation", computing)
    record.duration("delete of its input", min(deleting))
    require(min(deleting) < computing / 2, f"delete() took {deleting} s of {computing} s")
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
