//! Operations that make new buffers: copy, bitcast, reshard.

use std::sync::Arc;

use bytes::Bytes;

use super::super::array::FakeArray;
use super::super::client::FakeClient;
use super::super::elements::{self, device_bytes};
use super::super::fault::Op;
use super::super::heap::{Buffer, ShardSpec};
use super::super::task::{Contents, Task, derive};
use super::share::keep;
use super::{invalid, own_after, own_arrays, take};
use crate::array::{ArrayCopySemantics, ArrayRef, ShardSemantics};
use crate::array_spec::ArraySpec;
use crate::completion::Completion;
use crate::device_list::DeviceList;
use crate::host_buffer::HostValue;
use crate::index::IndexDomain;
use crate::memory::MemoryKind;
use crate::sharding::Sharding;
use crate::status::{Result, Status};

/// See [`crate::Client::copy_arrays`].
pub(in crate::fake) fn copy(
    client: &FakeClient,
    arrays: &[ArrayRef],
    devices: Option<&DeviceList>,
    kind: Option<&MemoryKind>,
    copy: ArrayCopySemantics,
) -> Result<Vec<ArrayRef>> {
    let inputs = own_arrays(client, arrays)?;
    let Some(first) = inputs.first().map(|input| &input.spec().sharding) else {
        return Ok(Vec::new());
    };
    if inputs
        .iter()
        .any(|input| !same_place(&input.spec().sharding, first))
    {
        return Err(invalid(
            "CopyArrays only takes arrays with the same devices and memory kind",
        ));
    }
    let devices = devices.unwrap_or_else(|| first.devices());
    client.check_devices(devices)?;
    check_reachable(first.devices(), devices)?;
    let plans = inputs
        .iter()
        .map(|input| plan_copy(client, input, devices, kind, copy))
        .collect::<Result<Vec<_>>>()?;
    let fresh = plans.iter().flat_map(|(_, targets)| targets);
    let bytes = fresh
        .filter(|target| target.is_fresh(copy))
        .map(|target| target.spec.bytes);
    client
        .heap()
        .check_room(bytes.fold(0, u64::saturating_add))?;
    let strike = client.faults().strike(Op::Copy)?;
    let contents = take(client, "CopyArrays", &inputs, copy)?;
    let mut copies = Vec::with_capacity(inputs.len());
    for ((input, contents), (spec, targets)) in inputs.iter().zip(contents).zip(plans) {
        let shards = input.buffers().iter().zip(contents).zip(targets);
        let buffers = shards.map(|((buffer, contents), target)| {
            if !target.is_fresh(copy) {
                return keep(client, buffer, &contents, copy);
            }
            let data = derive(strike.permit(), input.gated(contents), duplicate);
            client.heap().allocate(target.spec, data)
        });
        let own = own_after(strike.permit(), [*input]);
        copies.push(client.array(spec, buffers.collect(), own)?);
    }
    Ok(copies)
}

/// Where a copy of a shard goes.
struct Target {
    spec: ShardSpec,
    in_place: bool,
}

impl Target {
    /// True if the data moves, or must not be shared.
    fn is_fresh(&self, copy: ArrayCopySemantics) -> bool {
        !self.in_place || copy == ArrayCopySemantics::AlwaysCopy
    }
}

fn same_place(one: &Sharding, other: &Sharding) -> bool {
    one.devices() == other.devices() && one.memory_kind() == other.memory_kind()
}

fn check_reachable(from: &DeviceList, to: &DeviceList) -> Result<()> {
    let mut pairs = from.iter().zip(to);
    if pairs.any(|(from, to)| from.is_addressable() != to.is_addressable()) {
        return Err(Status::unimplemented(
            "the fake does not copy between processes",
        ));
    }
    Ok(())
}

fn plan_copy(
    client: &FakeClient,
    input: &FakeArray,
    devices: &DeviceList,
    kind: Option<&MemoryKind>,
    copy: ArrayCopySemantics,
) -> Result<(ArraySpec, Vec<Target>)> {
    let spec = input.spec();
    let sharding = spec
        .sharding
        .with_device_assignment(Some(devices.clone()), kind.cloned())?;
    let mut layout = spec.layout.clone();
    let mut targets = Vec::with_capacity(input.buffers().len());
    for (buffer, device) in input.buffers().iter().zip(&devices.addressable()) {
        let old = &buffer.spec;
        let mut new = client.shard_spec(
            spec.dtype,
            old.shape.clone(),
            device,
            sharding.memory_kind(),
        )?;
        new.bytes = old.bytes;
        if old.memory.kind() != new.memory.kind() {
            if copy == ArrayCopySemantics::DonateInput {
                return Err(Status::unimplemented(format!(
                    "CopyArrays with donation from memory kind {} to {} is not available with \
                     this runtime",
                    old.memory.kind(),
                    new.memory.kind()
                )));
            }
            // A layout is chosen anew in another kind of memory.
            layout = None;
        }
        targets.push(Target {
            in_place: old.memory.id() == new.memory.id(),
            spec: new,
        });
    }
    let spec = ArraySpec {
        sharding,
        layout,
        ..spec.clone()
    };
    Ok((spec, targets))
}

fn duplicate(value: HostValue) -> Result<HostValue> {
    Ok(match value {
        HostValue::Bytes(data) => HostValue::Bytes(Bytes::copy_from_slice(&data)),
        HostValue::Strings(data) => HostValue::Strings(data.iter().cloned().collect()),
    })
}

/// See [`crate::Client::bitcast_arrays`].
pub(in crate::fake) fn bitcast(
    client: &FakeClient,
    arrays: &[ArrayRef],
    specs: &[ArraySpec],
    copy: ArrayCopySemantics,
) -> Result<Vec<ArrayRef>> {
    match copy {
        ArrayCopySemantics::DonateInput => {}
        ArrayCopySemantics::AlwaysCopy => {
            return Err(invalid("BitcastArrays never copies"));
        }
        ArrayCopySemantics::ReuseInput => {
            return Err(Status::unimplemented(
                "the fake only bitcasts donated arrays",
            ));
        }
    }
    let inputs = own_arrays(client, arrays)?;
    check_count("BitcastArrays", &inputs, specs)?;
    let pairs = || inputs.iter().zip(specs);
    let targets = pairs()
        .map(|(input, spec)| plan_bitcast(client, input, spec))
        .collect::<Result<Vec<_>>>()?;
    let strike = client.faults().strike(Op::Bitcast)?;
    let contents = take(client, "BitcastArrays", &inputs, copy)?;
    let mut cast = Vec::with_capacity(inputs.len());
    for (((input, spec), contents), targets) in pairs().zip(contents).zip(targets) {
        let (from, to) = (input.spec().dtype, spec.dtype);
        let shards = contents.into_iter().zip(targets);
        let buffers = shards.map(|(contents, target)| {
            let contents = input.gated(contents);
            let data = derive(strike.permit(), contents, move |value| {
                let data = elements::bitcast(&value.into_bytes()?, from, to)?;
                Ok(HostValue::Bytes(data))
            });
            client.heap().allocate(target, data)
        });
        let own = own_after(strike.permit(), [*input]);
        cast.push(client.array(spec.clone(), buffers.collect(), own)?);
    }
    Ok(cast)
}

fn check_count(operation: &str, inputs: &[&FakeArray], specs: &[ArraySpec]) -> Result<()> {
    if inputs.len() == specs.len() {
        return Ok(());
    }
    Err(invalid(format!(
        "{operation} of {} arrays got {} specs",
        inputs.len(),
        specs.len()
    )))
}

fn plan_bitcast(
    client: &FakeClient,
    input: &FakeArray,
    spec: &ArraySpec,
) -> Result<Vec<ShardSpec>> {
    let own = input.spec();
    if !same_place(&own.sharding, &spec.sharding) {
        return Err(invalid(
            "BitcastArrays keeps the devices and the memory kind of an array",
        ));
    }
    // Refuses what has no bits, and what the fake cannot cast, before anything is donated.
    elements::bitcast(&Bytes::new(), own.dtype, spec.dtype)?;
    let mut targets = client.shard_specs(spec)?;
    for (buffer, target) in input.buffers().iter().zip(&mut targets) {
        let size = device_bytes(own.dtype, &buffer.spec.shape)?;
        if size != target.bytes {
            return Err(invalid(format!(
                "BitcastArrays cannot make shards of {} bytes ({}{}) from shards of {size} bytes \
                 ({}{})",
                target.bytes, spec.dtype, target.shape, own.dtype, buffer.spec.shape
            )));
        }
        target.bytes = buffer.spec.bytes;
    }
    Ok(targets)
}

/// See [`crate::Client::reshard_arrays`].
pub(in crate::fake) fn reshard(
    client: &FakeClient,
    arrays: &[ArrayRef],
    specs: &[ArraySpec],
    copy: ArrayCopySemantics,
) -> Result<Vec<ArrayRef>> {
    let inputs = own_arrays(client, arrays)?;
    check_count("ReshardArrays", &inputs, specs)?;
    let pairs = || inputs.iter().zip(specs);
    let plans = pairs()
        .map(|(input, spec)| plan_reshard(client, input, spec))
        .collect::<Result<Vec<_>>>()?;
    let bytes = plans
        .iter()
        .flat_map(|plan| &plan.targets)
        .map(|target| target.bytes);
    client
        .heap()
        .check_room(bytes.fold(0, u64::saturating_add))?;
    let strike = client.faults().strike(Op::Reshard)?;
    let contents = take(client, "ReshardArrays", &inputs, copy)?;
    let mut resharded = Vec::with_capacity(inputs.len());
    for (((input, spec), contents), plan) in pairs().zip(contents).zip(plans) {
        let contents = contents.into_iter().map(|contents| input.gated(contents));
        let buffers = plan.start(client, spec, contents.collect(), strike.permit());
        resharded.push(client.array(spec.clone(), buffers, Completion::done())?);
    }
    Ok(resharded)
}

struct Reshard {
    from: Vec<IndexDomain>,
    to: Vec<IndexDomain>,
    targets: Vec<ShardSpec>,
}

fn plan_reshard(client: &FakeClient, input: &FakeArray, spec: &ArraySpec) -> Result<Reshard> {
    let own = input.spec();
    if own.dtype != spec.dtype || own.shape != spec.shape {
        return Err(invalid(format!(
            "ReshardArrays cannot make {}{} from {}{}",
            spec.dtype, spec.shape, own.dtype, own.shape
        )));
    }
    let reachable = |sharding: &Sharding| sharding.devices().is_fully_addressable();
    if !reachable(&own.sharding) || !reachable(&spec.sharding) {
        return Err(Status::unimplemented(
            "the fake does not reshard between processes",
        ));
    }
    let domains = |sharding: &Sharding| sharding.index_domains(&spec.shape, ShardSemantics::All);
    Ok(Reshard {
        from: domains(&own.sharding)?,
        to: domains(&spec.sharding)?,
        targets: client.shard_specs(spec)?,
    })
}

impl Reshard {
    /// Joins the old shards and cuts the new ones, when the old ones are ready.
    fn start(
        self,
        client: &FakeClient,
        spec: &ArraySpec,
        inputs: Vec<Contents>,
        permit: Completion,
    ) -> Vec<Arc<Buffer>> {
        let Self { from, to, targets } = self;
        let (dtype, shape) = (spec.dtype, spec.shape.clone());
        let (outputs, contents): (Vec<_>, Vec<_>) =
            targets.iter().map(|_| Completion::pair()).unzip();
        let task = Task {
            after: vec![permit],
            inputs,
            outputs,
            work: Box::new(move |blocks| {
                let whole = elements::join(&blocks, &from, dtype, &shape)?;
                let cut = |domain| elements::cut(&whole, dtype, &shape, domain);
                to.iter().map(cut).collect()
            }),
        };
        task.start().detach();
        let allocate = |(target, contents)| client.heap().allocate(target, contents);
        targets.into_iter().zip(contents).map(allocate).collect()
    }
}
