//! The file: which slot holds what, in all versions of the format.
//!
//! The versions differ in where they keep types and shardings: inline, or as numbers into lists of
//! distinct ones. Which of them a file uses is seen from the slots that are filled, not from its
//! version number, which some releases have not kept up to date.

use std::sync::Arc;

use bytes::Bytes;
use ifrt::proto::xla::OpSharding;
use ifrt::xla::HloSharding;
use ifrt::{MemoryKind, Result, Status};
use prost::Message;

use super::aval::ExportedAval;
use super::flatbuffer::{Buffer, Table};
use super::tree::TreeDef;
use super::{Contents, Exported, ExportedSharding};
use crate::partition_spec::{PartitionDim, PartitionSpec};

/// The slots of the table `Exported`.
mod slot {
    pub(super) const FUNCTION_NAME: usize = 1;
    pub(super) const IN_TREE: usize = 2;
    pub(super) const IN_AVALS: usize = 3;
    pub(super) const OUT_TREE: usize = 4;
    pub(super) const OUT_AVALS: usize = 5;
    pub(super) const NR_DEVICES_SHORT: usize = 6;
    pub(super) const IN_SHARDINGS: usize = 7;
    pub(super) const OUT_SHARDINGS: usize = 8;
    pub(super) const PLATFORMS: usize = 9;
    pub(super) const ORDERED_EFFECTS: usize = 10;
    pub(super) const UNORDERED_EFFECTS: usize = 11;
    pub(super) const DISABLED_CHECKS: usize = 12;
    pub(super) const MODULE: usize = 13;
    pub(super) const CALLING_CONVENTION_VERSION: usize = 14;
    pub(super) const KEPT: usize = 15;
    pub(super) const VJP: usize = 17;
    pub(super) const NR_DEVICES: usize = 18;
    pub(super) const UNIQUE_AVALS: usize = 19;
    pub(super) const UNIQUE_MESHES: usize = 20;
    pub(super) const UNIQUE_SHARDINGS: usize = 21;
    pub(super) const IN_AVAL_NUMBERS: usize = 22;
    pub(super) const OUT_AVAL_NUMBERS: usize = 23;
    pub(super) const IN_SHARDING_NUMBERS: usize = 24;
    pub(super) const OUT_SHARDING_NUMBERS: usize = 25;
    pub(super) const JAX_VERSION: usize = 26;
}

fn malformed(what: String) -> Status {
    Status::invalid_argument(format!("an exported function contradicts itself: {what}"))
}

/// Reads a file.
pub(super) fn read(bytes: &[u8]) -> Result<Exported> {
    let buffer = Buffer::new(bytes);
    exported(&buffer.root()?)
}

fn exported(table: &Table<'_>) -> Result<Exported> {
    let unique_avals = table.tables(slot::UNIQUE_AVALS)?;
    let unique_avals = read_all(&unique_avals, ExportedAval::read)?;
    let avals = |inline: usize, numbers: usize| match table.u32s(numbers)? {
        Some(numbers) => pick(&unique_avals, numbers, "types"),
        None => read_all(&table.tables(inline)?, ExportedAval::read),
    };
    let in_avals = avals(slot::IN_AVALS, slot::IN_AVAL_NUMBERS)?;
    let out_avals = avals(slot::OUT_AVALS, slot::OUT_AVAL_NUMBERS)?;

    let meshes = read_all(&table.tables(slot::UNIQUE_MESHES)?, axes)?;
    let unique_shardings = table.tables(slot::UNIQUE_SHARDINGS)?;
    let unique_shardings = read_all(&unique_shardings, |table| named(table, &meshes))?;
    let shardings = |inline: usize, numbers: usize| match table.u32s(numbers)? {
        // Zero is "not specified".
        Some(numbers) => numbers
            .into_iter()
            .map(|number| match number.checked_sub(1) {
                Some(number) => {
                    pick(&unique_shardings, vec![number], "shardings").map(|mut one| one.pop())
                }
                None => Ok(None),
            })
            .collect(),
        None => read_all(&table.tables(inline)?, |table| sharding(table, &meshes)),
    };
    let in_shardings = shardings(slot::IN_SHARDINGS, slot::IN_SHARDING_NUMBERS)?;
    let out_shardings = shardings(slot::OUT_SHARDINGS, slot::OUT_SHARDING_NUMBERS)?;

    let contents = Contents {
        function_name: text(table, slot::FUNCTION_NAME)?,
        in_tree: TreeDef::read(&table.required(slot::IN_TREE, "the tree of the arguments")?)?,
        out_tree: TreeDef::read(&table.required(slot::OUT_TREE, "the tree of the results")?)?,
        in_avals,
        out_avals,
        in_shardings,
        out_shardings,
        platforms: table.strings(slot::PLATFORMS)?,
        nr_devices: nr_devices(table)?,
        ordered_effects: effects(table, slot::ORDERED_EFFECTS)?,
        unordered_effects: effects(table, slot::UNORDERED_EFFECTS)?,
        is_any_platform: is_any_platform(table)?,
        module: Bytes::copy_from_slice(table.bytes(slot::MODULE)?),
        calling_convention_version: table.u16(slot::CALLING_CONVENTION_VERSION)?,
        kept: table
            .u16s(slot::KEPT)?
            .into_iter()
            .map(usize::from)
            .collect(),
        vjp: match table.table(slot::VJP)? {
            Some(vjp) => Some(exported(&vjp)?),
            None => None,
        },
        jax_version: table.string(slot::JAX_VERSION)?.map(str::to_owned),
    };
    check(&contents)?;
    Ok(Exported(Arc::new(contents)))
}

/// Checks what the rest of the crate relies on.
fn check(contents: &Contents) -> Result<()> {
    let Contents {
        in_avals,
        out_avals,
        in_tree,
        out_tree,
        kept,
        ..
    } = contents;
    for (what, leaves, avals) in [
        ("argument", in_tree.num_leaves(), in_avals.len()),
        ("result", out_tree.num_leaves(), out_avals.len()),
    ] {
        if leaves != avals {
            return Err(malformed(format!(
                "the tree of its {what}s has {leaves} leaves, but there are {avals} types"
            )));
        }
    }
    for (what, shardings, avals) in [
        ("argument", contents.in_shardings.len(), in_avals.len()),
        ("result", contents.out_shardings.len(), out_avals.len()),
    ] {
        if shardings != 0 && shardings != avals {
            return Err(malformed(format!(
                "it has {avals} {what}s, but {shardings} shardings of them"
            )));
        }
    }
    let is_ascending = kept.windows(2).all(|pair| pair[0] < pair[1]);
    if !is_ascending || kept.last().is_some_and(|last| *last >= in_avals.len()) {
        return Err(malformed(format!(
            "its module takes the arguments {kept:?} of {}",
            in_avals.len()
        )));
    }
    if contents.nr_devices == 0 || contents.platforms.is_empty() || contents.module.is_empty() {
        return Err(malformed(
            "it has no devices, no platforms or no module".to_owned(),
        ));
    }
    Ok(())
}

fn read_all<'a, T>(tables: &[Table<'a>], read: impl Fn(&Table<'a>) -> Result<T>) -> Result<Vec<T>> {
    tables.iter().map(read).collect()
}

fn pick<T: Clone>(unique: &[T], numbers: Vec<u32>, what: &str) -> Result<Vec<T>> {
    let one = |number: u32| {
        let found = usize::try_from(number).ok().and_then(|n| unique.get(n));
        found.cloned().ok_or_else(|| {
            malformed(format!(
                "it speaks of number {number} of {} {what}",
                unique.len()
            ))
        })
    };
    numbers.into_iter().map(one).collect()
}

fn text(table: &Table<'_>, slot: usize) -> Result<String> {
    Ok(table.string(slot)?.unwrap_or_default().to_owned())
}

fn nr_devices(table: &Table<'_>) -> Result<usize> {
    let number = match table.u32(slot::NR_DEVICES)? {
        0 => i64::from(table.i16(slot::NR_DEVICES_SHORT)?),
        number => i64::from(number),
    };
    usize::try_from(number).map_err(|_| malformed(format!("it is for {number} devices")))
}

fn effects(table: &Table<'_>, slot: usize) -> Result<Vec<String>> {
    read_all(&table.tables(slot)?, |effect| text(effect, 0))
}

fn is_any_platform(table: &Table<'_>) -> Result<bool> {
    const PLATFORM: i8 = 0;
    let checks = table.tables(slot::DISABLED_CHECKS)?;
    let kinds = read_all(&checks, |check| check.i8(0))?;
    Ok(kinds.contains(&PLATFORM))
}

type Axes = Vec<(String, usize)>;

fn axes(table: &Table<'_>) -> Result<Axes> {
    let sizes = table.u32s(0)?.unwrap_or_default();
    let names = table.strings(1)?;
    if sizes.len() != names.len() {
        return Err(malformed(format!(
            "a mesh has {} axes and {} names",
            sizes.len(),
            names.len()
        )));
    }
    names
        .into_iter()
        .zip(sizes)
        .map(|(name, size)| {
            let size =
                usize::try_from(size).map_err(|_| malformed("a mesh is too large".into()))?;
            Ok((name, size))
        })
        .collect()
}

/// A sharding that stands where it is used.
fn sharding(table: &Table<'_>, meshes: &[Axes]) -> Result<Option<ExportedSharding>> {
    match table.i8(0)? {
        0 => Ok(None),
        1 => {
            let proto = OpSharding::decode(table.bytes(1)?)?;
            Ok(Some(ExportedSharding::Hlo(HloSharding::from_proto(
                &proto,
            )?)))
        }
        2 => named(&table.required(2, "a named sharding")?, meshes).map(Some),
        kind => Err(malformed(format!("a sharding has the unknown kind {kind}"))),
    }
}

fn named(table: &Table<'_>, meshes: &[Axes]) -> Result<ExportedSharding> {
    let axes = if meshes.is_empty() || table.has(0)? {
        axes(&table.required(0, "the mesh of a sharding")?)?
    } else {
        let mut one = pick(meshes, vec![table.u32(3)?], "meshes")?;
        one.pop().unwrap_or_default()
    };
    let spec = table.required(1, "the spec of a sharding")?;
    if !spec.strings(1)?.is_empty() || !spec.strings(2)?.is_empty() {
        return Err(Status::unimplemented(
            "an exported function has partial sums among its arguments or results",
        ));
    }
    let dims = read_all(&spec.tables(0)?, |dim| {
        let axes = dim.strings(0)?;
        Ok(PartitionDim::axes(axes.iter().map(String::as_str)))
    })?;
    Ok(ExportedSharding::Named {
        axes,
        spec: PartitionSpec::new(dims),
        memory_kind: MemoryKind::from(table.string(2)?),
    })
}
