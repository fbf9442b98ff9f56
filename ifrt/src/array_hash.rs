//! Hashing what arrays hold, on the host: for runtimes that cannot do it on their devices.
//!
//! A hash says whether two arrays hold the same data without bringing both to one place. It is
//! stable for one build of this crate, not across runtimes or versions.
//!
//! # Mirrors
//! `xla/python/ifrt/buffer_hash_util.h`. The numbers differ from those of the reference, which
//! promises none either.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

use crate::array::{ArrayCopySemantics, ArrayRef, ShardSemantics};
use crate::client::read_shards::join_results;
use crate::completion::Completion;
use crate::dtype::DType;
use crate::host_buffer::HostValue;
use crate::index::IndexDomain;
use crate::layout::Layout;
use crate::status::{Result, Status};
use crate::value::{ValueRef, to_arrays};

/// What a hash depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "closed by the IFRT contract")]
pub enum HashMode {
    /// The data as it lies on the devices: another sharding or layout gives another hash.
    Physical,
    /// The data alone: one array has one hash, however it is spread and laid out.
    Logical,
}

/// Hashes arrays by reading all their shards. One hash per value.
///
/// Replicas are read too, and must agree. Every read is enqueued before this returns, so later
/// deletions do not matter, but all shards may be in host memory at once.
///
/// # Blocking
/// Never; the completion brings the hashes.
///
/// # Errors
/// Through the completion: INVALID_ARGUMENT if a value is no array, not fully addressable or
/// deleted, if its sharding does not say which shard holds what, or if replicas differ; the error of
/// a failed array.
///
/// # Conformance
/// ARR-46 to ARR-49, XAR-01.
pub fn hash_values(values: &[ValueRef], mode: HashMode) -> Completion<Vec<u64>> {
    let begin = || -> Result<Vec<Completion<u64>>> {
        let arrays = to_arrays(values)?;
        arrays.iter().map(|array| hash_array(array, mode)).collect()
    };
    match begin() {
        Ok(hashes) => join_results(hashes),
        Err(status) => Completion::ready(Err(status)),
    }
}

fn hash_array(array: &ArrayRef, mode: HashMode) -> Result<Completion<u64>> {
    let sharding = array.sharding();
    if !sharding.devices().is_fully_addressable() {
        return Err(Status::invalid_argument(format!(
            "only fully addressable arrays can be hashed, but this one is on {:?}",
            sharding.devices()
        )));
    }
    let domains = sharding.index_domains(array.shape(), ShardSemantics::All)?;
    let shards = array.disassemble(ArrayCopySemantics::ReuseInput, ShardSemantics::All)?;
    if shards.len() != domains.len() {
        return Err(Status::internal(format!(
            "an array has {} shards, but its sharding tells {} index domains",
            shards.len(),
            domains.len()
        )));
    }
    let (dtype, layout) = (array.dtype(), array.layout()?);
    let hash = |(shard, domain): (&ArrayRef, &IndexDomain)| {
        let (domain, layout) = (domain.clone(), layout.clone());
        shard.copy_to_host(None).then(move |value| {
            let value = value.as_ref().map_err(Clone::clone)?;
            match mode {
                HashMode::Physical => Ok(hash_physical(value, layout.as_ref())),
                HashMode::Logical => hash_logical(value, dtype, &domain),
            }
        })
    };
    let hashes: Vec<_> = shards.iter().zip(&domains).map(hash).collect();
    let groups = replica_groups(&domains);
    Ok(join_results(hashes).then(move |hashes| match hashes {
        Ok(hashes) => combine(hashes, &groups, mode),
        Err(status) => Err(status.clone()),
    }))
}

/// The hash of a shard as it lies on its device.
///
/// `value` is the dense form, major to minor, whatever the layout is; `None` is the default layout.
pub fn hash_physical(value: &HostValue, layout: Option<&Layout>) -> u64 {
    let mut hasher = DefaultHasher::new();
    match value {
        HostValue::Bytes(bytes) => write_bytes(&mut hasher, bytes),
        HostValue::Strings(strings) => {
            for string in &**strings {
                write_bytes(&mut hasher, string);
            }
        }
    }
    if let Some(layout) = layout {
        write_bytes(&mut hasher, layout.to_string().as_bytes());
    }
    hasher.finish()
}

/// The hash of a shard as a part of its array: each element with its place, in any order.
///
/// `value` is the dense form, major to minor, of the elements in `domain`.
///
/// # Errors
/// INVALID_ARGUMENT if there are more or fewer elements than in the domain.
pub fn hash_logical(value: &HostValue, dtype: DType, domain: &IndexDomain) -> Result<u64> {
    let elements: Vec<&[u8]> = match value {
        HostValue::Bytes(bytes) => {
            let item = dtype.host_byte_size().ok_or_else(|| {
                Status::invalid_argument(format!("dtype {dtype} has no elements to hash"))
            })?;
            let elements = bytes.chunks_exact(item);
            if !elements.remainder().is_empty() {
                return Err(wrong_size(bytes.len(), item, domain));
            }
            elements.collect()
        }
        HostValue::Strings(strings) => strings.iter().map(|string| &**string).collect(),
    };
    if i64::try_from(elements.len()) != Ok(domain.shape().num_elements()) {
        return Err(wrong_size(elements.len(), 1, domain));
    }
    let mut place = domain.origin().to_vec();
    let mut hash = 0;
    for element in elements {
        let mut hasher = DefaultHasher::new();
        for coordinate in &place {
            hasher.write_i64(*coordinate);
        }
        write_bytes(&mut hasher, element);
        // Elements may come in any order, from any shard, so their hashes commute.
        hash ^= hasher.finish();
        advance(&mut place, domain);
    }
    Ok(hash)
}

fn wrong_size(units: usize, unit_bytes: usize, domain: &IndexDomain) -> Status {
    Status::invalid_argument(format!(
        "{units} units of {unit_bytes} bytes are not the {} elements of a shard of shape {}",
        domain.shape().num_elements(),
        domain.shape()
    ))
}

/// Moves on to the next place of the domain, major to minor.
fn advance(place: &mut [i64], domain: &IndexDomain) {
    let ends = domain.origin().iter().zip(domain.shape().dims());
    for (coordinate, (origin, dim)) in place.iter_mut().zip(ends).rev() {
        *coordinate += 1;
        if *coordinate - origin < *dim {
            return;
        }
        *coordinate = *origin;
    }
}

/// The length makes `["a", "bc"]` differ from `["ab", "c"]`.
fn write_bytes(hasher: &mut DefaultHasher, bytes: &[u8]) {
    hasher.write_usize(bytes.len());
    hasher.write(bytes);
}

/// A number per shard that is equal for shards with equal domains, counted from zero.
pub fn replica_groups(domains: &[IndexDomain]) -> Vec<usize> {
    let mut known = HashMap::new();
    let group = |domain| {
        let next = known.len();
        *known.entry(domain).or_insert(next)
    };
    domains.iter().map(group).collect()
}

/// The hash of an array from those of its shards. Each group of replicas counts once.
///
/// # Errors
/// INVALID_ARGUMENT if replicas differ, or if there are more or fewer groups than hashes.
pub fn combine(hashes: &[u64], groups: &[usize], mode: HashMode) -> Result<u64> {
    if hashes.len() != groups.len() {
        return Err(Status::invalid_argument(format!(
            "{} hashes of shards cannot be combined by {} replica groups",
            hashes.len(),
            groups.len()
        )));
    }
    let mut first_of: HashMap<usize, usize> = HashMap::new();
    let mut distinct = Vec::new();
    for (shard, (hash, group)) in hashes.iter().zip(groups).enumerate() {
        let first = *first_of.entry(*group).or_insert(shard);
        if first == shard {
            distinct.push((*group, *hash));
        } else if hashes[first] != *hash {
            return Err(Status::invalid_argument(format!(
                "Hash mismatch across replicas for shards {first} and {shard} (replica group ID \
                 {group}). hashes: {} vs. {hash}",
                hashes[first]
            )));
        }
    }
    distinct.sort_unstable();
    let distinct = distinct.into_iter().map(|(_, hash)| hash);
    Ok(match mode {
        HashMode::Physical => {
            let mut hasher = DefaultHasher::new();
            distinct.for_each(|hash| hasher.write_u64(hash));
            hasher.finish()
        }
        HashMode::Logical => distinct.fold(0, |all, hash| all ^ hash),
    })
}

#[cfg(test)]
mod tests;
