//! Operations that move no data: the outputs hold the buffers of the inputs.

use std::sync::Arc;

use super::super::array::FakeArray;
use super::super::client::FakeClient;
use super::super::fault::Op;
use super::super::heap::Buffer;
use super::super::task::Contents;
use super::{invalid, own_after, own_arrays, take};
use crate::array::{ArrayCopySemantics, ArrayRef, ShardSemantics};
use crate::array_spec::ArraySpec;
use crate::device::find_memory;
use crate::device_list::DeviceList;
use crate::dtype::DType;
use crate::remap_plan::RemapPlan;
use crate::shape::Shape;
use crate::sharding::{Sharding, ShardingKind, ShardingRef};
use crate::status::Result;
use crate::xla::HloSharding;

/// See [`crate::Client::assemble_array`].
pub(in crate::fake) fn assemble(
    client: &FakeClient,
    dtype: DType,
    shape: Shape,
    sharding: ShardingRef,
    arrays: &[ArrayRef],
    shards: ShardSemantics,
) -> Result<ArrayRef> {
    let inputs = own_arrays(client, arrays)?;
    client.check_devices(sharding.devices())?;
    let devices = sharding.devices().addressable();
    if shards == ShardSemantics::All && devices.len() != sharding.devices().len() {
        return Err(invalid(
            "the fake cannot assemble shards on devices that this process cannot reach; give the \
             addressable shards",
        ));
    }
    if inputs.len() != devices.len() {
        return Err(invalid(format!(
            "an array over {} devices cannot be assembled from {} arrays",
            devices.len(),
            inputs.len()
        )));
    }
    let shapes = known_shapes(&sharding, &shape)?;
    for (number, (input, device)) in inputs.iter().zip(&devices).enumerate() {
        let spec = input.spec();
        if spec.dtype != dtype {
            return Err(invalid(format!(
                "an array of dtype {dtype} cannot be assembled from array {number} of dtype {}",
                spec.dtype
            )));
        }
        let ids: Vec<_> = spec.sharding.devices().ids().collect();
        let [buffer] = input.buffers() else {
            return Err(invalid(format!(
                "array {number} is not on a single device but on {ids:?}"
            )));
        };
        let memory = find_memory(&**device, sharding.memory_kind())?;
        if ids != [device.id()] || buffer.spec.memory.id() != memory.id() {
            return Err(invalid(format!(
                "array {number} must be on device {} in memory {}, but is on {ids:?} in {}",
                device.id(),
                memory.to_text(),
                buffer.spec.memory.to_text()
            )));
        }
        let expected = shapes.as_ref().and_then(|shapes| shapes.get(number));
        if expected.is_some_and(|expected| *expected != spec.shape) {
            return Err(invalid(format!(
                "array {number} has the shape {}, but shard {number} of {shape} has {expected:?}",
                spec.shape
            )));
        }
    }
    let strike = client.faults().strike(Op::Assemble)?;
    let operation = "AssembleArrayFromSingleDeviceArrays";
    take(client, operation, &inputs, ArrayCopySemantics::ReuseInput)?;
    let own = own_after(strike.permit(), inputs.iter().copied());
    let buffers = inputs.iter().flat_map(|input| input.buffers()).cloned();
    let layout = inputs.first().and_then(|input| input.spec().layout.clone());
    let spec = ArraySpec {
        dtype,
        shape,
        sharding,
        layout,
    };
    client.array(spec, buffers.collect(), own)
}

/// The shapes of the addressable shards; `None` if the sharding leaves them to the program or to
/// the runtime.
fn known_shapes(sharding: &Sharding, shape: &Shape) -> Result<Option<Vec<Shape>>> {
    match sharding.kind() {
        ShardingKind::Opaque(_) | ShardingKind::Hlo(HloSharding::Manual | HloSharding::Unknown) => {
            Ok(None)
        }
        _ => {
            let shapes = sharding.shard_shapes(shape, ShardSemantics::Addressable);
            shapes.map(Some)
        }
    }
}

/// See [`crate::Client::remap_arrays`].
pub(in crate::fake) fn remap(
    client: &FakeClient,
    plan: &RemapPlan,
    arrays: &[ArrayRef],
    copy: ArrayCopySemantics,
) -> Result<Vec<ArrayRef>> {
    let inputs = own_arrays(client, arrays)?;
    check_inputs(plan, &inputs)?;
    let sources = plan.sources()?;
    plan.check_copy_semantics(copy)?;
    if copy == ArrayCopySemantics::AlwaysCopy {
        return Err(invalid("Invalid ArrayCopySemantics"));
    }
    for (spec, sources) in plan.output_specs.iter().zip(&sources) {
        check_output(client, spec, sources, &inputs)?;
    }
    let strike = client.faults().strike(Op::Remap)?;
    let contents = take(client, "RemapArrays", &inputs, copy)?;
    let output = |(spec, sources): (&ArraySpec, &Vec<(usize, usize)>)| {
        let buffers = sources.iter().map(|(array, shard)| {
            let buffer = &inputs[*array].buffers()[*shard];
            keep(client, buffer, &contents[*array][*shard], copy)
        });
        let mut feeding: Vec<usize> = sources.iter().map(|(array, _)| *array).collect();
        feeding.dedup();
        let own = own_after(strike.permit(), feeding.iter().map(|array| inputs[*array]));
        client.array(spec.clone(), buffers.collect(), own)
    };
    plan.output_specs.iter().zip(&sources).map(output).collect()
}

/// The buffer itself, or a new one with its data if it was donated.
pub(super) fn keep(
    client: &FakeClient,
    buffer: &Arc<Buffer>,
    contents: &Contents,
    copy: ArrayCopySemantics,
) -> Arc<Buffer> {
    if copy == ArrayCopySemantics::DonateInput {
        let heap = client.heap();
        return heap.allocate(buffer.spec.clone(), contents.clone());
    }
    Arc::clone(buffer)
}

fn check_inputs(plan: &RemapPlan, inputs: &[&FakeArray]) -> Result<()> {
    if inputs.len() != plan.input_specs.len() {
        return Err(invalid(format!(
            "RemapArrays expects {} input arrays, but got {}",
            plan.input_specs.len(),
            inputs.len()
        )));
    }
    let on = |sharding: &Sharding| {
        let devices: &DeviceList = sharding.devices();
        format!("{devices:?} with memory kind {}", sharding.memory_kind())
    };
    for (number, (input, expected)) in inputs.iter().zip(&plan.input_specs).enumerate() {
        let spec = input.spec();
        let prefix = format!("RemapArrays expects input #{number} to");
        if spec.dtype != expected.dtype {
            return Err(invalid(format!(
                "{prefix} have dtype {}, but got {}",
                expected.dtype, spec.dtype
            )));
        }
        if spec.shape != expected.shape {
            return Err(invalid(format!(
                "{prefix} have shape {}, but got {}",
                expected.shape, spec.shape
            )));
        }
        if spec.sharding.devices() != expected.sharding.devices()
            || spec.sharding.memory_kind() != expected.sharding.memory_kind()
        {
            return Err(invalid(format!(
                "{prefix} be on {}, but got {}",
                on(&expected.sharding),
                on(&spec.sharding)
            )));
        }
    }
    Ok(())
}

/// Plans say nothing about memory kinds, nor about shards that are shorter than others. The fake
/// cannot give a buffer another memory or another shape than it has.
fn check_output(
    client: &FakeClient,
    spec: &ArraySpec,
    sources: &[(usize, usize)],
    inputs: &[&FakeArray],
) -> Result<()> {
    let sharding = &spec.sharding;
    client.check_devices(sharding.devices())?;
    let shapes = known_shapes(sharding, &spec.shape)?;
    let devices = sharding.devices().addressable();
    for (number, (device, (array, shard))) in devices.iter().zip(sources).enumerate() {
        let memory = find_memory(&**device, sharding.memory_kind())?;
        let shape = shapes.as_ref().and_then(|shapes| shapes.get(number));
        let fits = inputs[*array].buffers().get(*shard).is_some_and(|buffer| {
            let own = &buffer.spec;
            own.memory.id() == memory.id() && shape.is_none_or(|shape| *shape == own.shape)
        });
        if !fits {
            return Err(invalid(format!(
                "RemapArrays cannot make shard {number} of shape {shape:?} in {} from shard \
                 {shard} of input #{array}",
                memory.to_text()
            )));
        }
    }
    Ok(())
}
