//! [`HloSharding`] from and to `xla.OpSharding`.

use super::{DeviceOrder, HloSharding, SubgroupType, TileAssignment};
use crate::proto::xla::OpSharding;
use crate::proto::xla::op_sharding::Type;
use crate::status::{Result, Status};

/// Tuples of tuples have no use; a limit keeps hostile bytes from exhausting the stack.
const MAX_DEPTH: usize = 8;

impl HloSharding {
    /// Reads XLA's message.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if it contradicts itself, is of an unknown type, or stands in the newer
    /// form by named axes, which the serializers of XLA refuse as well.
    pub fn from_proto(proto: &OpSharding) -> Result<Self> {
        from_proto(proto, 0)
    }

    /// Writes XLA's message, with the iota form wherever the sharding has it.
    pub fn to_proto(&self) -> OpSharding {
        let of = |kind: Type| OpSharding {
            r#type: kind.into(),
            ..OpSharding::default()
        };
        match self {
            Self::Replicated => of(Type::Replicated),
            Self::Manual => of(Type::Manual),
            Self::Unknown => of(Type::Unknown),
            Self::Unreduced => of(Type::Unreduced),
            Self::Maximal(position) => OpSharding {
                tile_assignment_dimensions: vec![1],
                tile_assignment_devices: vec![*position],
                ..of(Type::Maximal)
            },
            Self::Tuple(leaves) => OpSharding {
                tuple_shardings: leaves.iter().map(Self::to_proto).collect(),
                ..of(Type::Tuple)
            },
            Self::Tiled(tiles) => {
                let subgroups = tiles.subgroups().iter();
                let mut last_tile_dims: Vec<i32> = subgroups
                    .map(|subgroup| subgroup_type(*subgroup).into())
                    .collect();
                // The message has a flag for copies alone, and a list for anything more.
                let only_copies = last_tile_dims.is_empty();
                if tiles.replicate_on_last_tile_dim() && !only_copies {
                    last_tile_dims.push(Type::Replicated.into());
                }
                let mut proto = OpSharding {
                    tile_assignment_dimensions: tiles.dims().to_vec(),
                    replicate_on_last_tile_dim: tiles.replicate_on_last_tile_dim() && only_copies,
                    last_tile_dims,
                    ..of(Type::Other)
                };
                match tiles.order() {
                    DeviceOrder::Explicit(positions) => {
                        proto.tile_assignment_devices.clone_from(positions);
                    }
                    DeviceOrder::Iota {
                        reshape_dims,
                        transpose_perm,
                    } => {
                        proto.iota_reshape_dims.clone_from(reshape_dims);
                        proto.iota_transpose_perm.clone_from(transpose_perm);
                    }
                }
                proto
            }
        }
    }
}

fn from_proto(proto: &OpSharding, depth: usize) -> Result<HloSharding> {
    if proto.named_sharding.is_some() {
        return Err(Status::invalid_argument(
            "XLA HloShardingV3 format is not supported for serialization",
        ));
    }
    let kind = Type::try_from(proto.r#type).map_err(|_| {
        Status::invalid_argument(format!("unknown type {} of an OpSharding", proto.r#type))
    })?;
    Ok(match kind {
        Type::Replicated => HloSharding::Replicated,
        Type::Manual => HloSharding::Manual,
        Type::Unknown => HloSharding::Unknown,
        Type::Unreduced => HloSharding::Unreduced,
        Type::Maximal => match proto.tile_assignment_devices[..] {
            [position] if position >= 0 => HloSharding::Maximal(position),
            _ => {
                return Err(Status::invalid_argument(
                    "a maximal OpSharding needs one device",
                ));
            }
        },
        Type::Tuple if depth >= MAX_DEPTH => {
            return Err(Status::invalid_argument(
                "an OpSharding nests tuples too deeply",
            ));
        }
        Type::Tuple => HloSharding::Tuple(
            proto
                .tuple_shardings
                .iter()
                .map(|leaf| from_proto(leaf, depth + 1))
                .collect::<Result<_>>()?,
        ),
        Type::Other => tiled(proto)?,
    })
}

fn tiled(proto: &OpSharding) -> Result<HloSharding> {
    let order = match (
        proto.tile_assignment_devices.is_empty(),
        proto.iota_reshape_dims.is_empty(),
    ) {
        (true, false) => DeviceOrder::Iota {
            reshape_dims: proto.iota_reshape_dims.clone(),
            transpose_perm: proto.iota_transpose_perm.clone(),
        },
        (false, true) => DeviceOrder::Explicit(proto.tile_assignment_devices.clone()),
        _ => {
            return Err(Status::invalid_argument(
                "a tiled OpSharding needs either a list of devices or the iota form",
            ));
        }
    };
    if proto.replicate_on_last_tile_dim && !proto.last_tile_dims.is_empty() {
        return Err(Status::invalid_argument(
            "a tiled OpSharding has both last_tile_dims and replicate_on_last_tile_dim",
        ));
    }
    let subgroups = proto
        .last_tile_dims
        .iter()
        .map(|kind| subgroup(*kind))
        .collect::<Result<Vec<_>>>()?;
    let tiles = TileAssignment::new(
        proto.tile_assignment_dimensions.clone(),
        order,
        subgroups,
        proto.replicate_on_last_tile_dim,
    )?;
    // XLA reads tiles on one device as copies as well, whatever their subgroups.
    Ok(match tiles.num_devices() {
        1 => HloSharding::Replicated,
        _ => HloSharding::Tiled(tiles),
    })
}

fn subgroup(kind: i32) -> Result<SubgroupType> {
    Ok(match Type::try_from(kind) {
        Ok(Type::Replicated) => SubgroupType::Replicated,
        Ok(Type::Maximal) => SubgroupType::Maximal,
        Ok(Type::Manual) => SubgroupType::Manual,
        Ok(Type::Unknown) => SubgroupType::Unknown,
        Ok(Type::Unreduced) => SubgroupType::Unreduced,
        _ => {
            return Err(Status::invalid_argument(format!(
                "an OpSharding has a subgroup of type {kind}"
            )));
        }
    })
}

const fn subgroup_type(subgroup: SubgroupType) -> Type {
    match subgroup {
        SubgroupType::Replicated => Type::Replicated,
        SubgroupType::Maximal => Type::Maximal,
        SubgroupType::Manual => Type::Manual,
        SubgroupType::Unknown => Type::Unknown,
        SubgroupType::Unreduced => Type::Unreduced,
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap())
            .collect()
    }

    #[test]
    fn bytes_of_the_deployed_client_round_trip() {
        for (hex, dims, devices) in [
            ("08031a0202024a01045201 00", &[2, 2][..], 4),
            ("08031a030201023001 4a02020252020100", &[2, 1][..], 4),
            ("08031a0204024a020402 52020100", &[4, 2][..], 8),
            ("08031a01044a01045201 00", &[4][..], 4),
        ] {
            let wire = bytes(&hex.replace(' ', ""));
            let sharding =
                HloSharding::from_proto(&OpSharding::decode(&wire[..]).unwrap()).unwrap();
            let HloSharding::Tiled(tiles) = &sharding else {
                panic!("{sharding:?}")
            };
            assert_eq!((tiles.data_dims(), tiles.num_devices()), (dims, devices));
            assert_eq!(sharding.to_proto().encode_to_vec(), wire);
        }
        let replicated = HloSharding::from_proto(&OpSharding::default()).unwrap();
        assert_eq!(replicated, HloSharding::Replicated);
        assert!(replicated.to_proto().encode_to_vec().is_empty());
    }

    #[test]
    fn contradictions_are_refused() {
        let other = OpSharding {
            r#type: Type::Other.into(),
            ..OpSharding::default()
        };
        assert!(HloSharding::from_proto(&other).is_err());
        let both = OpSharding {
            tile_assignment_dimensions: vec![1],
            tile_assignment_devices: vec![0],
            iota_reshape_dims: vec![1],
            iota_transpose_perm: vec![0],
            ..other.clone()
        };
        assert!(HloSharding::from_proto(&both).is_err());
        assert!(
            HloSharding::from_proto(&OpSharding {
                r#type: 9,
                ..other.clone()
            })
            .is_err()
        );
        let named = OpSharding {
            named_sharding: Some(Default::default()),
            ..other
        };
        assert_eq!(
            HloSharding::from_proto(&named).unwrap_err().message(),
            "XLA HloShardingV3 format is not supported for serialization"
        );
        let mut deep = OpSharding::default();
        for _ in 0..20 {
            deep = OpSharding {
                r#type: Type::Tuple.into(),
                tuple_shardings: vec![deep],
                ..OpSharding::default()
            };
        }
        assert!(HloSharding::from_proto(&deep).is_err());
    }

    #[test]
    fn copies_beside_other_subgroups_are_listed() {
        let order = DeviceOrder::Explicit((0..4).collect());
        let manual = vec![SubgroupType::Manual];
        let tiles = TileAssignment::new(vec![1, 2, 2], order.clone(), manual, true).unwrap();
        let listed = vec![SubgroupType::Manual, SubgroupType::Replicated];
        let again = TileAssignment::new(vec![1, 2, 2], order, listed, false).unwrap();
        let proto = HloSharding::Tiled(tiles).to_proto();
        assert_eq!(
            HloSharding::from_proto(&proto),
            Ok(HloSharding::Tiled(again))
        );
    }

    #[test]
    fn tiles_on_one_device_are_copies() {
        let mut proto = HloSharding::tile([1, 1]).unwrap().to_proto();
        assert_eq!(HloSharding::from_proto(&proto), Ok(HloSharding::Replicated));
        proto.last_tile_dims = vec![Type::Manual.into()];
        assert_eq!(HloSharding::from_proto(&proto), Ok(HloSharding::Replicated));
        proto.replicate_on_last_tile_dim = true;
        assert!(HloSharding::from_proto(&proto).is_err());
    }

    #[test]
    fn one_device_has_it_all_or_it_is_an_error() {
        let maximal = |devices: &[i64]| {
            HloSharding::from_proto(&OpSharding {
                r#type: Type::Maximal.into(),
                tile_assignment_devices: devices.to_vec(),
                ..OpSharding::default()
            })
        };
        assert_eq!(maximal(&[3]), Ok(HloSharding::Maximal(3)));
        for devices in [&[][..], &[0, 1], &[-1]] {
            assert!(maximal(devices).is_err(), "{devices:?}");
        }
    }
}
