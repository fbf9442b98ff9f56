//! Attributes of operations between devices, and shardings.

use std::fmt::{self, Write as _};

use super::shape::braces;
use crate::proto::xla::hlo_instruction_proto::ReplicaGroupList;
use crate::proto::xla::{AxisRefProto, HloInstructionProto, MeshProto, ReplicaGroup};
use crate::xla::{DeviceOrder, HloSharding, SubgroupType, TileAssignment};

pub(super) fn replica_groups(out: &mut String, instruction: &HloInstructionProto) -> fmt::Result {
    let explicit = |groups: &[ReplicaGroup]| {
        let groups: Vec<String> = groups
            .iter()
            .map(|group| braces(&group.replica_ids))
            .collect();
        format!("{{{}}}", groups.join(","))
    };
    let text = match &instruction.replica_group_list {
        Some(ReplicaGroupList::CollectiveDeviceList(list)) => explicit(&list.replica_groups),
        Some(ReplicaGroupList::IotaCollectiveDeviceList(iota)) => {
            let dims = [iota.num_replica_groups, iota.num_devices_per_group];
            format!(
                "{:?}<={}",
                dims,
                iota_text(&iota.iota_reshape_dims, &iota.iota_transpose_perm)
            )
            .replace(", ", ",")
        }
        Some(ReplicaGroupList::MeshAxesReplicaGroupList(mesh)) => {
            mesh_axes(mesh.mesh.as_ref(), &mesh.axes)
        }
        None if instruction.replica_groups.is_empty() => return Ok(()),
        None => explicit(&instruction.replica_groups),
    };
    write!(out, ", replica_groups={text}")
}

fn mesh_axes(mesh: Option<&MeshProto>, axes: &[AxisRefProto]) -> String {
    let all = mesh.map(|mesh| mesh.axes.as_slice()).unwrap_or_default();
    let sizes: Vec<String> = all
        .iter()
        .map(|axis| format!("'{}'={}", axis.name, axis.size))
        .collect();
    let used: Vec<String> = axes
        .iter()
        .map(|axis| {
            let index = usize::try_from(axis.mesh_axis_index).unwrap_or(usize::MAX);
            let name = all.get(index).map_or("?", |axis| axis.name.as_str());
            match &axis.sub_axis_info {
                None => format!("'{name}'"),
                Some(part) => format!("'{name}':({}){}", part.pre_size, part.size),
            }
        })
        .collect();
    format!("mesh[{}] {{{}}}", sizes.join(","), used.join(","))
}

fn iota_text(reshape: &[i64], perm: &[i32]) -> String {
    let join = |numbers: Vec<String>| format!("[{}]", numbers.join(","));
    let dims = join(reshape.iter().map(ToString::to_string).collect());
    // A single group, and an order that changes nothing, need no transposition.
    if perm.iter().zip(0..).all(|(axis, place)| *axis == place) {
        dims
    } else {
        let perm = perm
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(",");
        format!("{dims}T({perm})")
    }
}

/// `{replicated}`, `{devices=[8,1]<=[8]}` and the like.
pub(super) fn sharding(sharding: &HloSharding) -> String {
    match sharding {
        HloSharding::Tuple(leaves) => {
            let leaves: Vec<String> = leaves.iter().map(self::sharding).collect();
            format!("{{{}}}", leaves.join(", "))
        }
        HloSharding::Replicated => "{replicated}".into(),
        HloSharding::Maximal(position) => format!("{{maximal device={position}}}"),
        HloSharding::Manual => "{manual}".into(),
        HloSharding::Unknown => "{unknown}".into(),
        HloSharding::Unreduced => "{unreduced}".into(),
        HloSharding::Tiled(tiles) => format!("{{{}}}", tiled(tiles)),
    }
}

fn tiled(tiles: &TileAssignment) -> String {
    let join = |numbers: &[i64]| {
        format!(
            "[{}]",
            numbers
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(",")
        )
    };
    let mut text = format!("devices={}", join(tiles.dims()));
    match tiles.order() {
        DeviceOrder::Explicit(positions) => {
            text.push_str(join(positions).trim_matches(['[', ']']));
        }
        DeviceOrder::Iota {
            reshape_dims,
            transpose_perm,
        } => {
            text.push_str("<=");
            text.push_str(&iota_text(reshape_dims, transpose_perm));
        }
    }
    if tiles.replicate_on_last_tile_dim() {
        text.push_str(" last_tile_dim_replicate");
    }
    if !tiles.subgroups().is_empty() {
        let kinds: Vec<&str> = tiles
            .subgroups()
            .iter()
            .map(|kind| match kind {
                SubgroupType::Replicated => "replicated",
                SubgroupType::Maximal => "maximal",
                SubgroupType::Manual => "manual",
                SubgroupType::Unknown => "unknown",
                SubgroupType::Unreduced => "unreduced",
            })
            .collect();
        text.push_str(&format!(" last_tile_dims={{{}}}", kinds.join(", ")));
    }
    text
}
