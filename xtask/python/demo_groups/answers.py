"""What JAX answers about arrays and executables, and how errors look to the user."""

import pickle
import traceback

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.layout import Format, Layout
from jax.sharding import NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from demo_groups import batch_mesh, group, require


@group
def executables(record):
    """Executables of one device and of eight, and what they say of themselves."""
    split = NamedSharding(batch_mesh(), P("batch"))
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    for name, sharding in [("one", None), ("eight", split)]:
        shape = jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=sharding)
        compiled = jax.jit(lambda v: (v @ v.T, v.sum())).lower(shape).compile()
        text = compiled.as_text()
        for line in ["HloModule jit__lambda", "ENTRY ", "f32[8,8]", "ROOT "]:
            require(line in text, f"{name}: no {line!r} in the text of the program")
        record.exact(f"{name} gathers", "all-gather" in text or "all-reduce" in text)
        record.exact(f"{name} input shardings", str(compiled.input_shardings))
        record.exact(f"{name} output shardings", str(compiled.output_shardings))
        record.exact(f"{name} input formats", str(compiled.input_formats))
        record.exact(f"{name} output formats", str(compiled.output_formats))
        record.exact(f"{name} out_info", str(jax.tree.leaves(compiled.out_info)))
        product, total = compiled(jax.device_put(x, sharding))
        record.bits(f"{name} product", product)
        record.exact(f"{name} total", float(total))
        record.exact(f"{name} sharding of a result", str(product.sharding))
        record.exact(f"{name} format of a result", str(product.format))


@group
def layouts(record):
    """Arrays in a layout that is not the default one."""
    host = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    turned = Format(Layout((0, 2, 1)), SingleDeviceSharding(jax.devices()[1]))
    there = jax.device_put(host, turned)
    record.exact("format", str(there.format))
    record.bits("there and back", there)
    record.bits("copied", jax.device_put(there, jax.devices()[2]))
    made = jax.jit(lambda v: v + 1, out_shardings=turned, in_shardings=turned)(there)
    record.exact("format of a result", str(made.format))
    record.bits("result", made)
    record.bits("default again", jax.jit(lambda v: v * 2)(made))
    split = Format(Layout((1, 0)), NamedSharding(batch_mesh(), P("batch")))
    wide = jax.device_put(np.arange(64, dtype=np.int32).reshape(16, 4), split)
    record.exact("sharded format", str(wide.format))
    record.bits("sharded", wide)


@group
def replicas(record):
    x = jax.device_put(np.arange(16, dtype=np.int32), NamedSharding(batch_mesh(), P("batch")))
    record.exact("fully addressable", x.is_fully_addressable)
    record.exact("fully replicated", x.is_fully_replicated)
    record.exact("committed", x.committed)
    indices = x.sharding.devices_indices_map((16,))
    record.exact("index map", [str(indices[device]) for device in jax.devices()])
    y = jax.device_put(x, NamedSharding(batch_mesh(), P()))
    record.exact("replicated", y.is_fully_replicated)
    record.exact("replica ids", [s.replica_id for s in y.addressable_shards])
    record.exact("size", y.on_device_size_in_bytes())
    record.bits("pickled", pickle.loads(pickle.dumps(x)))
    record.exact("weak type", jnp.asarray(1.0).weak_type)
    record.exact("repr", repr(x))
    record.exact("ready", y.block_until_ready().is_ready())
    keys = jax.random.split(jax.random.key(3), 8)
    keys = jax.device_put(keys, NamedSharding(batch_mesh(), P("batch")))
    record.bits("random bits on eight", jax.jit(jax.vmap(lambda k: jax.random.bits(k, (3,))))(keys))


def users_function(v):
    return jnp.dot(v, jnp.ones((3, 3)))


@group
def errors(record):
    """Errors of tracing, of the compiler and of the run; each shows the line of the user."""
    record.error("shapes", lambda: jax.jit(users_function)(np.zeros((2, 2), np.float32)))
    try:
        jax.jit(users_function)(np.zeros((2, 2), np.float32))
    except TypeError as error:
        names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        record.exact("traceback", "users_function" in names)
    unknown = jax.jit(
        lambda v: jax.ffi.ffi_call("no_such_target", jax.ShapeDtypeStruct((3,), jnp.float32))(v)
    )
    record.error("compiler", lambda: unknown(np.zeros(3, np.float32)))
    # More than any address space has.
    record.error("memory", lambda: jax.jit(lambda: jnp.zeros(1 << 48, jnp.int8))())
    record.exact("afterwards", float(jax.jit(jnp.sum)(np.ones(3, np.float32))))
    with jax.debug_nans(True):
        record.error("NaN", lambda: jax.jit(jnp.log)(np.float32(-1)), text=False)
    record.error("uneven", lambda: jax.device_put(np.zeros(9), NamedSharding(batch_mesh(), P("batch"))))
    record.error("too many", lambda: jax.devices()[8], text=False)
    compiled = jax.jit(jnp.sin).lower(np.zeros(3, np.float32)).compile()
    record.error("other shape", lambda: compiled(np.zeros(4, np.float32)))
    record.error("other dtype", lambda: compiled(np.zeros(3, np.int32)))
    record.error("unicode array", lambda: jax.device_put(np.array(["a", "b"])))
    with jax.transfer_guard("disallow"):
        record.error("guarded", lambda: jax.jit(jnp.sin)(np.zeros(3, np.float32)))
