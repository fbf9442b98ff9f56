//! Arrays from arrays: assemble, copy, remap, bitcast, reshard.
//!
//! The server does the work and finds what is wrong only when the request arrives. What the contract
//! wants to be refused at once is checked here first.
//!
//! # Mirrors
//! `xla/python/ifrt_proxy/client/client.cc`, `array.cc`.

use std::sync::Arc;

use ifrt::device::find_memory;
use ifrt::proto::xla::ifrt::ArraySpecProto;
use ifrt::serdes::{dtype_to_proto, remap_plan_to_proto, shape_to_proto};
use ifrt::{
    ArrayCopySemantics, ArrayRef, ArraySpec, DType, DeviceList, MemoryKind, RemapPlan, Result,
    Shape, ShardSemantics, Sharding, ShardingRef, Status,
};

use super::ProxyClient;
use super::array::ProxyArray;
use super::life::{Cell, Cells};
use super::make::make;
use super::to_wire::{
    array_spec_to_wire, copy_semantics, shard_semantics, sharding_to_wire, without_domains,
};
use crate::proto::xla::ifrt::proxy::ifrt_request::Request;
use crate::proto::xla::ifrt::proxy::{
    AssembleArrayFromSingleDeviceArraysRequest, BitcastArraysRequest, CopyArraysRequest,
    RemapArraysRequest, ReshardArraysRequest,
};

/// The protocol version that brought bitcasts.
const BITCAST: i32 = 24;

fn invalid(message: impl Into<String>) -> Status {
    Status::invalid_argument(message)
}

/// Donates the arrays if that is asked for.
///
/// # Errors
/// INVALID_ARGUMENT if one is dead or would be donated twice; then none changes.
fn take(
    client: &ProxyClient,
    operation: &str,
    inputs: &[&ProxyArray],
    copy: ArrayCopySemantics,
) -> Result<()> {
    let donate = copy == ArrayCopySemantics::DonateInput;
    let uses: Vec<_> = inputs.iter().map(|input| (input.cells(), donate)).collect();
    client.donations().take(operation, &uses)
}

fn handles_of(inputs: &[&ProxyArray]) -> Vec<u64> {
    inputs.iter().map(|input| input.handle()).collect()
}

fn new_handles(client: &ProxyClient, count: usize) -> Vec<u64> {
    (0..count).map(|_| client.session().new_handle()).collect()
}

/// See [`ifrt::Client::assemble_array`].
pub(super) fn assemble(
    client: &Arc<ProxyClient>,
    dtype: DType,
    shape: Shape,
    sharding: ShardingRef,
    arrays: &[ArrayRef],
    copy: ArrayCopySemantics,
    shards: ShardSemantics,
) -> Result<ArrayRef> {
    let inputs = ProxyArray::all_of(client, arrays)?;
    client.check_devices(sharding.devices())?;
    check_shards(dtype, &shape, &sharding, &inputs, shards)?;
    let session = client.session();
    let message = sharding_to_wire(&sharding, session.serdes())?;
    // The buffers are shared, whatever is asked for, as in the reference.
    take(
        client,
        "AssembleArrayFromSingleDeviceArrays",
        &inputs,
        ArrayCopySemantics::ReuseInput,
    )?;
    let handle = session.new_handle();
    let request = AssembleArrayFromSingleDeviceArraysRequest {
        shape: Some(shape_to_proto(&shape)),
        sharding: Some(message),
        single_device_array_handles: handles_of(&inputs),
        copy_semantics: copy_semantics(copy),
        single_device_shard_semantics: Some(shard_semantics(shards)),
        result_handle: handle,
        dtype: Some(dtype_to_proto(dtype)),
    };
    session.send_ignored(
        "assembling an array",
        Request::AssembleArrayFromSingleDeviceArraysRequest(request),
    );
    let cells = inputs.iter().flat_map(|input| input.cells().iter());
    let cells = Cells::of(cells.map(Cell::share).collect());
    let layout = inputs.first().and_then(|input| input.spec().layout.clone());
    let spec = ArraySpec {
        dtype,
        shape,
        sharding,
        layout,
    };
    Ok(ProxyArray::make(client, handle, spec, cells))
}

/// Checks that the arrays are the shards.
fn check_shards(
    dtype: DType,
    shape: &Shape,
    sharding: &Sharding,
    inputs: &[&ProxyArray],
    shards: ShardSemantics,
) -> Result<()> {
    let devices = sharding.devices().addressable();
    if shards == ShardSemantics::All && devices.len() != sharding.devices().len() {
        return Err(invalid(
            "shards on devices that the server cannot reach cannot be assembled; give the \
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
    // Opaque shardings leave the shapes to the program or to the runtime.
    let shapes = sharding
        .shard_shapes(shape, ShardSemantics::Addressable)
        .ok();
    for (number, (input, device)) in inputs.iter().zip(&devices).enumerate() {
        let spec = input.spec();
        if spec.dtype != dtype {
            return Err(invalid(format!(
                "an array of dtype {dtype} cannot be assembled from array {number} of dtype {}",
                spec.dtype
            )));
        }
        let own = spec.sharding.devices();
        let memory = find_memory(&**device, sharding.memory_kind())?;
        let is_there = own.len() == 1
            && own.ids().next() == Some(device.id())
            && find_memory(&**device, spec.sharding.memory_kind())?.id() == memory.id();
        if !is_there {
            return Err(invalid(format!(
                "array {number} must be on device {} in memory {}, but is on {own:?} in memory of \
                 kind {}",
                device.id(),
                memory.to_text(),
                spec.sharding.memory_kind()
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
    Ok(())
}

/// See [`ifrt::Client::copy_arrays`].
pub(super) fn copy(
    client: &Arc<ProxyClient>,
    arrays: &[ArrayRef],
    devices: Option<DeviceList>,
    memory_kind: Option<MemoryKind>,
    copy: ArrayCopySemantics,
) -> Result<Vec<ArrayRef>> {
    let inputs = ProxyArray::all_of(client, arrays)?;
    let Some(first) = inputs.first().map(|input| &input.spec().sharding) else {
        return Ok(Vec::new());
    };
    let is_there = |input: &&ProxyArray| place(&input.spec().sharding) == place(first);
    if !inputs.iter().all(is_there) {
        return Err(invalid(
            "CopyArrays only takes arrays with the same devices and memory kind",
        ));
    }
    if let Some(devices) = &devices {
        client.check_devices(devices)?;
    }
    let mut plans = Vec::with_capacity(inputs.len());
    for input in &inputs {
        plans.push(plan_copy(
            input,
            devices.as_ref(),
            memory_kind.as_ref(),
            copy,
        )?);
    }
    take(client, "CopyArrays", &inputs, copy)?;
    let handles = new_handles(client, inputs.len());
    let request = CopyArraysRequest {
        array_handles: handles_of(&inputs),
        device_ids: devices
            .map(|devices| devices.ids().map(|id| id.0).collect())
            .unwrap_or_default(),
        memory_kind: memory_kind.map(|kind| wire_kind(&kind)),
        copy_semantics: copy_semantics(copy),
        result_handles: handles.clone(),
    };
    client
        .session()
        .send_ignored("copying arrays", Request::CopyArraysRequest(request));
    let copies = handles.into_iter().zip(plans);
    Ok(copies
        .map(|(handle, (spec, cells))| ProxyArray::make(client, handle, spec, cells))
        .collect())
}

/// Absent is what the arrays have, and empty the default, whatever that is called.
fn wire_kind(kind: &MemoryKind) -> String {
    if kind.is_default() {
        return String::new();
    }
    kind.name().to_owned()
}

/// The copy of an array. Shards that stay where they are keep their buffers, unless these are copied
/// or donated.
fn plan_copy(
    input: &ProxyArray,
    devices: Option<&DeviceList>,
    memory_kind: Option<&MemoryKind>,
    copy: ArrayCopySemantics,
) -> Result<(ArraySpec, Cells)> {
    let spec = input.spec();
    let old = &spec.sharding;
    let sharding = old.with_device_assignment(devices.cloned(), memory_kind.cloned())?;
    let (from, to) = (
        old.devices().addressable(),
        sharding.devices().addressable(),
    );
    let mut moves_to_other_kind = false;
    let mut cells = Vec::with_capacity(to.len());
    for (shard, device) in to.iter().enumerate() {
        let memory = find_memory(&**device, sharding.memory_kind())?;
        let source = match from.devices().get(shard) {
            Some(source) => Some(find_memory(&**source, old.memory_kind())?),
            None => None,
        };
        let stays = source
            .as_ref()
            .is_some_and(|source| source.id() == memory.id());
        moves_to_other_kind |= source.is_some_and(|source| source.kind() != memory.kind());
        let shared = input
            .cells()
            .get(shard)
            .filter(|_| stays && copy == ArrayCopySemantics::ReuseInput);
        cells.push(shared.map(Cell::share).unwrap_or_default());
    }
    if moves_to_other_kind && copy == ArrayCopySemantics::DonateInput {
        return Err(Status::unimplemented(format!(
            "CopyArrays with donation from memory kind {} to {} is not available",
            old.memory_kind(),
            sharding.memory_kind()
        )));
    }
    let spec = ArraySpec {
        sharding,
        // A layout is chosen anew in another kind of memory.
        layout: spec.layout.clone().filter(|_| !moves_to_other_kind),
        ..spec.clone()
    };
    Ok((spec, Cells::of(cells)))
}

/// See [`ifrt::Client::remap_arrays`].
pub(super) fn remap(
    client: &Arc<ProxyClient>,
    plan: &RemapPlan,
    arrays: &[ArrayRef],
    copy: ArrayCopySemantics,
) -> Result<Vec<ArrayRef>> {
    let inputs = ProxyArray::all_of(client, arrays)?;
    check_inputs(plan, &inputs)?;
    let sources = plan.sources()?;
    plan.check_copy_semantics(copy)?;
    if copy == ArrayCopySemantics::AlwaysCopy {
        return Err(invalid("Invalid ArrayCopySemantics"));
    }
    for spec in &plan.output_specs {
        client.check_devices(spec.sharding.devices())?;
        for device in &spec.sharding.devices().addressable() {
            find_memory(&**device, spec.sharding.memory_kind())?;
        }
    }
    let session = client.session();
    let mut on_the_wire = plan.clone();
    let specs = on_the_wire.input_specs.iter_mut();
    for spec in specs.chain(&mut on_the_wire.output_specs) {
        spec.sharding = without_domains(&spec.sharding)?;
    }
    let message = remap_plan_to_proto(&on_the_wire, session.serdes())?;
    take(client, "RemapArrays", &inputs, copy)?;
    let handles = new_handles(client, plan.output_specs.len());
    if handles.is_empty() {
        return Ok(Vec::new());
    }
    let request = RemapArraysRequest {
        plan: Some(message),
        array_handles: handles_of(&inputs),
        copy_semantics: copy_semantics(copy),
        result_handles: handles.clone(),
    };
    session.send_ignored("remapping arrays", Request::RemapArraysRequest(request));
    let outputs = handles.into_iter().zip(&plan.output_specs).zip(sources);
    let output = |((handle, spec), sources): ((u64, &ArraySpec), Vec<(usize, usize)>)| {
        let cell = |(array, shard): &(usize, usize)| {
            let cell = inputs.get(*array)?.cells().get(*shard)?;
            (copy == ArrayCopySemantics::ReuseInput).then(|| cell.share())
        };
        let cells = sources
            .iter()
            .map(|source| cell(source).unwrap_or_default());
        ProxyArray::make(client, handle, spec.clone(), Cells::of(cells.collect()))
    };
    Ok(outputs.map(output).collect())
}

fn check_inputs(plan: &RemapPlan, inputs: &[&ProxyArray]) -> Result<()> {
    if inputs.len() != plan.input_specs.len() {
        return Err(invalid(format!(
            "RemapArrays expects {} input arrays, but got {}",
            plan.input_specs.len(),
            inputs.len()
        )));
    }
    for (number, (input, expected)) in inputs.iter().zip(&plan.input_specs).enumerate() {
        let spec = input.spec();
        let (place, expected_place) = (place(&spec.sharding), place(&expected.sharding));
        let difference = if spec.dtype != expected.dtype {
            format!("have dtype {}, but got {}", expected.dtype, spec.dtype)
        } else if spec.shape != expected.shape {
            format!("have shape {}, but got {}", expected.shape, spec.shape)
        } else if place != expected_place {
            format!("be on {expected_place:?}, but got {place:?}")
        } else {
            continue;
        };
        return Err(invalid(format!(
            "RemapArrays expects input #{number} to {difference}"
        )));
    }
    Ok(())
}

fn place(sharding: &Sharding) -> (&DeviceList, &MemoryKind) {
    (sharding.devices(), sharding.memory_kind())
}

/// Checks one spec per array, in the same place.
fn check_specs(
    client: &ProxyClient,
    operation: &str,
    inputs: &[&ProxyArray],
    specs: &[ArraySpec],
) -> Result<()> {
    if inputs.len() != specs.len() {
        return Err(invalid(format!(
            "{operation} needs one spec per array, but got {} for {} arrays",
            specs.len(),
            inputs.len()
        )));
    }
    specs
        .iter()
        .try_for_each(|spec| client.check_devices(spec.sharding.devices()))
}

/// See [`ifrt::Client::bitcast_arrays`].
pub(super) fn bitcast(
    client: &Arc<ProxyClient>,
    arrays: &[ArrayRef],
    specs: &[ArraySpec],
    copy: ArrayCopySemantics,
) -> Result<Vec<ArrayRef>> {
    const OPERATION: &str = "BitcastArrays";
    if copy == ArrayCopySemantics::AlwaysCopy {
        return Err(invalid(format!("{OPERATION} never copies")));
    }
    let session = client.session();
    if session.protocol() < BITCAST {
        return Err(Status::unimplemented(format!(
            "{OPERATION} needs protocol {BITCAST}, but the server speaks {}",
            session.protocol()
        )));
    }
    let inputs = ProxyArray::all_of(client, arrays)?;
    check_specs(client, OPERATION, &inputs, specs)?;
    for (number, (input, spec)) in inputs.iter().zip(specs).enumerate() {
        let own = &input.spec().sharding;
        if place(own) != place(&spec.sharding) {
            return Err(invalid(format!(
                "{OPERATION} cannot move array {number} from {own:?} to {:?}",
                spec.sharding
            )));
        }
    }
    let array_specs = specs
        .iter()
        .map(|spec| array_spec_to_wire(spec, session.serdes()))
        .collect::<Result<_>>()?;
    take(client, OPERATION, &inputs, copy)?;
    let handles = new_handles(client, inputs.len());
    if handles.is_empty() {
        return Ok(Vec::new());
    }
    let request = BitcastArraysRequest {
        array_handles: handles_of(&inputs),
        array_specs,
        copy_semantics: copy_semantics(copy),
        result_handles: handles.clone(),
    };
    session.send_ignored("casting arrays", Request::BitcastArraysRequest(request));
    let cast = handles.into_iter().zip(&inputs).zip(specs);
    Ok(cast
        .map(|((handle, input), spec)| match copy {
            ArrayCopySemantics::ReuseInput => {
                let cells = input.cells().iter().map(Cell::share).collect();
                ProxyArray::make(client, handle, spec.clone(), Cells::of(cells))
            }
            _ => make(client, handle, spec.clone()),
        })
        .collect())
}

/// See [`ifrt::Client::reshard_arrays`].
pub(super) fn reshard(
    client: &Arc<ProxyClient>,
    arrays: &[ArrayRef],
    specs: &[ArraySpec],
    copy: ArrayCopySemantics,
) -> Result<Vec<ArrayRef>> {
    const OPERATION: &str = "ReshardArrays";
    let inputs = ProxyArray::all_of(client, arrays)?;
    check_specs(client, OPERATION, &inputs, specs)?;
    for (input, spec) in inputs.iter().zip(specs) {
        let own = input.spec();
        if own.dtype != spec.dtype || own.shape != spec.shape {
            return Err(invalid(format!(
                "{OPERATION} cannot make {}{} from {}{}",
                spec.dtype, spec.shape, own.dtype, own.shape
            )));
        }
        for device in &spec.sharding.devices().addressable() {
            find_memory(&**device, spec.sharding.memory_kind())?;
        }
    }
    let session = client.session();
    let array_specs = specs
        .iter()
        .map(|spec| array_spec_to_wire(spec, session.serdes()))
        .collect::<Result<Vec<_>>>()?;
    take(client, OPERATION, &inputs, copy)?;
    // One request each: the server fails a whole request if one of its arrays has failed.
    let arrays = inputs.iter().zip(specs).zip(array_specs);
    let reshard = |((input, spec), message): ((&&ProxyArray, &ArraySpec), ArraySpecProto)| {
        let handle = session.new_handle();
        let request = ReshardArraysRequest {
            array_handles: vec![input.handle()],
            array_specs: vec![message],
            copy_semantics: copy_semantics(copy),
            result_handles: vec![handle],
        };
        session.send_ignored(
            "resharding an array",
            Request::ReshardArraysRequest(request),
        );
        make(client, handle, spec.clone())
    };
    Ok(arrays.map(reshard).collect())
}
