//! Arrays spread differently over devices.
//!
//! A new shard that some old shard equals is copied from it by the plugin, or shared if it is
//! already where it should be. Any other is put together in host memory from the parts of the old
//! shards that it needs, each of which is read once. Nothing waits for data: what the old shards do
//! not hold yet comes into a buffer that is promised (`safe/buffer/promised.rs`).
//! Only without such buffers the call waits: for types below a byte, and on old plugins.
//!
//! # Mirrors
//! Nothing: the reference leaves `ReshardArrays` over PJRT unimplemented.

mod region;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use ifrt::array::{Array, ArrayCopySemantics, ArrayRef, ShardSemantics};
use ifrt::array_spec::ArraySpec;
use ifrt::completion::{Completion, join_all};
use ifrt::dtype::DType;
use ifrt::host_buffer::{HostBuffer, HostData};
use ifrt::index::IndexDomain;
use ifrt::sharding::{Sharding, ShardingKind};
use ifrt::{Code, Result, Status};

use super::assemble::consume_if_donated;
use super::{PjrtClient, make};
use crate::array::{Content, PjrtArray};
use crate::host_buffer::zeroed;
use crate::safe::buffer::{Buffer, Placement, ShardSpec};

fn invalid(message: impl Into<String>) -> Status {
    Status::invalid_argument(message)
}

/// Spreads arrays as `specs` say.
pub(super) fn reshard_arrays(
    client: &Arc<PjrtClient>,
    arrays: &[ArrayRef],
    specs: &[ArraySpec],
    copy: ArrayCopySemantics,
) -> Result<Vec<ArrayRef>> {
    if arrays.len() != specs.len() {
        return Err(invalid(format!(
            "ReshardArrays was given {} arrays and {} specs",
            arrays.len(),
            specs.len()
        )));
    }
    // Everything is checked before anything is started.
    let mut plans = Vec::with_capacity(arrays.len());
    for (index, (array, spec)) in arrays.iter().zip(specs).enumerate() {
        let own = PjrtArray::of(array, client)?;
        let plan = Plan::new(client, own, spec)
            .map_err(|status| status.annotate(format_args!("while resharding array {index}")))?;
        plans.push((own.content()?, plan, spec));
    }
    let mut outputs = Vec::with_capacity(arrays.len());
    for (content, plan, spec) in plans {
        outputs.push(plan.run(client, content, spec, copy)?);
    }
    consume_if_donated(client, arrays, copy)?;
    Ok(outputs)
}

/// How each shard of one array is made.
struct Plan {
    targets: Vec<Target>,
    /// What each old shard holds; empty if no shard has to be put together.
    domains: Vec<IndexDomain>,
}

struct Target {
    spec: Arc<ShardSpec>,
    placement: Placement,
    from: From,
}

enum From {
    /// The old shard that it equals.
    Shard(usize),
    /// The old shards with parts of it, and what it holds.
    Parts(Vec<usize>, IndexDomain),
}

impl Plan {
    fn new(client: &Arc<PjrtClient>, own: &PjrtArray, spec: &ArraySpec) -> Result<Self> {
        if own.dtype() != spec.dtype || *own.shape() != spec.shape {
            return Err(invalid(format!(
                "ReshardArrays cannot make {}{} from {}{}",
                spec.dtype,
                spec.shape,
                own.dtype(),
                own.shape()
            )));
        }
        let (from, to) = (own.sharding(), &spec.sharding);
        if !from.devices().is_fully_addressable() || !to.devices().is_fully_addressable() {
            return Err(Status::unimplemented(
                "arrays cannot be resharded to or from devices of other processes",
            ));
        }
        let (old, new) = (client.placements(from)?, client.placements(to)?);
        if from.has_same_partitioning(to) {
            // Also for shardings that do not tell what their shards hold.
            let shapes = from.shard_shapes(&spec.shape, ShardSemantics::All)?;
            let targets = shapes.into_iter().zip(new).enumerate();
            return Ok(Self {
                targets: targets
                    .map(|(index, (shape, placement))| Target {
                        spec: shard_spec(client, spec, shape),
                        placement,
                        from: From::Shard(index),
                    })
                    .collect(),
                domains: Vec::new(),
            });
        }
        let domains = from.index_domains(&spec.shape, ShardSemantics::All)?;
        let wanted = to.index_domains(&spec.shape, ShardSemantics::All)?;
        let distinct = distinct(&domains);
        check_cover(from, &distinct, spec)?;
        let mut targets = Vec::with_capacity(wanted.len());
        for (domain, placement) in wanted.into_iter().zip(new) {
            let spec = shard_spec(client, spec, domain.shape().clone());
            let from = match distinct.get(&domain) {
                Some(shards) => From::Shard(nearest(shards, &old, placement)),
                None => From::Parts(parts(&distinct, &domain), domain),
            };
            targets.push(Target {
                spec,
                placement,
                from,
            });
        }
        Ok(Self { targets, domains })
    }

    fn run(
        self,
        client: &Arc<PjrtClient>,
        content: Content,
        spec: &ArraySpec,
        copy: ArrayCopySemantics,
    ) -> Result<ArrayRef> {
        let content = match content {
            Content::Buffers(shards) => match self.buffers(client, shards.as_slice(), copy) {
                Ok(buffers) => Content::Buffers(buffers.into()),
                Err(Failure::OfData(status)) => return make::failed(client, &status, spec),
                Err(Failure::OfCall(status)) => return Err(status),
            },
            Content::Strings(shards) => Content::Strings(self.strings(&shards)?),
            Content::Failed(status) => return make::failed(client, &status, spec),
        };
        let layout = match self.targets.first() {
            Some(target) if target.spec.layout.is_some() => spec.layout.clone(),
            _ => None,
        };
        let spec = ArraySpec {
            layout,
            ..spec.clone()
        };
        Ok(PjrtArray::make(client, spec, content))
    }

    fn buffers(
        &self,
        client: &Arc<PjrtClient>,
        shards: &[Arc<Buffer>],
        copy: ArrayCopySemantics,
    ) -> std::result::Result<Vec<Arc<Buffer>>, Failure> {
        let mut reads: HashMap<usize, Completion<Bytes>> = HashMap::new();
        let mut made = Vec::with_capacity(self.targets.len());
        for target in &self.targets {
            let parts = match &target.from {
                From::Shard(index) => {
                    let buffer = shard(shards, *index)?;
                    if let Some(copied) = target.copy_of(buffer, copy)? {
                        made.push(copied);
                        continue;
                    }
                    // In another order on its device: as a part that is everything.
                    let domain = IndexDomain::whole(buffer.spec().shape.clone());
                    let read = read_once(&mut reads, shards, *index)?;
                    (vec![(domain.clone(), read)], domain)
                }
                From::Parts(indices, domain) => {
                    let mut parts = Vec::with_capacity(indices.len());
                    for index in indices {
                        let read = read_once(&mut reads, shards, *index)?;
                        let domain = self.domains.get(*index).ok_or_else(no_shard)?;
                        parts.push((domain.clone(), read));
                    }
                    (parts, domain.clone())
                }
            };
            made.push(target.put_together(client, parts)?);
        }
        Ok(made)
    }

    fn strings(&self, shards: &[Arc<[Bytes]>]) -> Result<Arc<[Arc<[Bytes]>]>> {
        let make = |target: &Target| match &target.from {
            From::Shard(index) => shards.get(*index).cloned().ok_or_else(no_shard),
            From::Parts(indices, domain) => {
                let count = usize::try_from(domain.shape().num_elements()).unwrap_or(usize::MAX);
                let mut strings = vec![Bytes::new(); count];
                for index in indices {
                    let part = shards.get(*index).ok_or_else(no_shard)?;
                    let own = self.domains.get(*index).ok_or_else(no_shard)?;
                    region::copy(&mut strings, domain, part, own, 1)?;
                }
                Ok(strings.into())
            }
        };
        self.targets.iter().map(make).collect()
    }
}

/// Why there are no buffers.
enum Failure {
    /// The arrays hold this error, so the new ones do.
    OfData(Status),
    OfCall(Status),
}

impl std::convert::From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::OfCall(status)
    }
}

fn no_shard() -> Status {
    Status::internal("an array has fewer shards than its sharding says")
}

fn shard(shards: &[Arc<Buffer>], index: usize) -> Result<&Arc<Buffer>> {
    shards.get(index).ok_or_else(no_shard)
}

fn read_once(
    reads: &mut HashMap<usize, Completion<Bytes>>,
    shards: &[Arc<Buffer>],
    index: usize,
) -> Result<Completion<Bytes>> {
    let buffer = shard(shards, index)?;
    let read = reads.entry(index).or_insert_with(|| buffer.to_host());
    Ok(read.clone())
}

fn shard_spec(client: &PjrtClient, spec: &ArraySpec, shape: ifrt::Shape) -> Arc<ShardSpec> {
    let layout = client.custom_layout(spec.dtype, &shape, spec.layout.as_ref());
    Arc::new(ShardSpec {
        dtype: spec.dtype,
        shape,
        layout,
    })
}

/// What the shards hold, without repetition: the positions of those that hold it.
fn distinct(domains: &[IndexDomain]) -> HashMap<&IndexDomain, Vec<usize>> {
    let mut found: HashMap<&IndexDomain, Vec<usize>> = HashMap::new();
    for (index, domain) in domains.iter().enumerate() {
        found.entry(domain).or_default().push(index);
    }
    found
}

/// Shardings tile arrays, but a concrete one holds whatever its maker wrote down.
fn check_cover(
    sharding: &Sharding,
    distinct: &HashMap<&IndexDomain, Vec<usize>>,
    spec: &ArraySpec,
) -> Result<()> {
    if !matches!(sharding.kind(), ShardingKind::Concrete { .. }) {
        return Ok(());
    }
    let domains: Vec<&IndexDomain> = distinct.keys().copied().collect();
    let elements = domains.iter().fold(0_i64, |sum, domain| {
        sum.saturating_add(domain.shape().num_elements())
    });
    let overlap = domains.iter().enumerate().any(|(index, one)| {
        let others = domains.iter().take(index);
        others
            .clone()
            .any(|other| region::overlap(one, other).is_some())
    });
    if overlap || elements != spec.shape.num_elements() {
        return Err(invalid(format!(
            "the shards of {sharding:?} overlap in part or leave gaps, so they cannot be cut anew"
        )));
    }
    Ok(())
}

/// The shard to copy from: the one in the right memory, else on the right device, else the first.
fn nearest(shards: &[usize], old: &[Placement], target: Placement) -> usize {
    let of = |index: &&usize| old.get(**index).copied();
    let in_place = shards.iter().find(|index| of(index) == Some(target));
    let on_device = || {
        let mut shards = shards.iter();
        shards.find(|index| of(index).is_some_and(|place| place.device == target.device))
    };
    let found = in_place.or_else(on_device).or_else(|| shards.first());
    found.copied().unwrap_or(0)
}

/// One shard for each distinct part of `domain`, in order.
fn parts(distinct: &HashMap<&IndexDomain, Vec<usize>>, domain: &IndexDomain) -> Vec<usize> {
    let parts = distinct
        .iter()
        .filter(|(part, _)| region::overlap(part, domain).is_some());
    let mut parts: Vec<usize> = parts
        .filter_map(|(_, shards)| shards.first().copied())
        .collect();
    parts.sort_unstable();
    if parts.is_empty() {
        // Nothing is needed for a shard without elements, but an error must not be lost.
        parts.push(0);
    }
    parts
}

impl Target {
    /// The shard shared or copied by the plugin; `None` if its layout has to change.
    fn copy_of(
        &self,
        buffer: &Arc<Buffer>,
        copy: ArrayCopySemantics,
    ) -> Result<Option<Arc<Buffer>>> {
        let in_place = buffer.placement() == self.placement;
        let same_layout = buffer.spec().layout == self.spec.layout;
        if in_place && same_layout && copy != ArrayCopySemantics::AlwaysCopy {
            return Ok(Some(Arc::clone(buffer)));
        }
        // A copy to another kind of memory may lose a layout that is not the default.
        if same_layout && (in_place || self.spec.layout.is_none()) {
            return buffer.copy_to(self.placement).map(Some);
        }
        Ok(None)
    }

    fn put_together(
        &self,
        client: &Arc<PjrtClient>,
        (parts, domain): (Vec<(IndexDomain, Completion<Bytes>)>, IndexDomain),
    ) -> std::result::Result<Arc<Buffer>, Failure> {
        let reads = parts
            .iter()
            .map(|(_, read)| read.then(|bytes| bytes.as_ref().map(|_| ()).map_err(Clone::clone)));
        let all = join_all(reads);
        let (safe, spec, placement) = (
            client.safe().clone(),
            Arc::clone(&self.spec),
            self.placement,
        );
        let make = move || {
            let bytes = gather(&parts, &domain, spec.dtype)?;
            let data = HostData::Shared(bytes);
            let host = HostBuffer::dense(data, spec.dtype, spec.shape.clone());
            Buffer::from_host(&safe, &spec, placement, &host)
        };
        match all.peek() {
            Some(Ok(())) => return Ok(make()?),
            Some(Err(status)) => return Err(Failure::OfData(status)),
            None => {}
        }
        match Buffer::promised(client.safe(), &self.spec, self.placement) {
            Ok((buffer, promised)) => {
                let workers = Arc::clone(client.workers());
                all.on_ready(move |result| {
                    let result = result.clone();
                    workers.submit(move || {
                        if let Err(status) = promised.set(result.and_then(|()| make())) {
                            tracing::warn!(%status, "a shard that was put together is lost");
                        }
                    });
                });
                Ok(buffer)
            }
            Err(status) if status.code() == Code::Unimplemented => {
                all.wait().map_err(Failure::OfData)?;
                Ok(make()?)
            }
            Err(status) => Err(status.into()),
        }
    }
}

/// The elements of `domain` from the parts, which are ready.
fn gather(
    parts: &[(IndexDomain, Completion<Bytes>)],
    domain: &IndexDomain,
    dtype: DType,
) -> Result<Bytes> {
    let item = dtype
        .host_byte_size()
        .ok_or_else(|| invalid(format!("an array of dtype {dtype} has no data on the host")))?;
    let read = |read: &Completion<Bytes>| {
        let bytes = read.peek();
        bytes.unwrap_or_else(|| Err(Status::internal("a part was used before it was ready")))
    };
    if let [(part, bytes)] = parts
        && part == domain
    {
        return read(bytes);
    }
    let len = usize::try_from(domain.shape().num_elements())
        .ok()
        .and_then(|elements| elements.checked_mul(item))
        .ok_or_else(|| Status::resource_exhausted("a shard exceeds the address space"))?;
    let mut out = zeroed(len)?;
    for (part, bytes) in parts {
        region::copy(&mut out, domain, &read(bytes)?, part, item)?;
    }
    Ok(Bytes::from(out))
}
