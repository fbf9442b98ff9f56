//! Shardings in the text form of HLO, which Python shows as `repr` and error messages quote.

use std::fmt;

use super::{DeviceOrder, HloSharding, SubgroupType, TileAssignment};

/// Writes the values with `separator` between them.
fn join<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    values: impl IntoIterator<Item = T>,
    separator: &str,
) -> fmt::Result {
    for (position, value) in values.into_iter().enumerate() {
        let separator = if position > 0 { separator } else { "" };
        write!(f, "{separator}{value}")?;
    }
    Ok(())
}

/// `{devices=[2,2]<=[4]}`, the text form of HLO.
impl fmt::Display for TileAssignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{devices=[")?;
        join(f, &self.dims, ",")?;
        f.write_str("]")?;
        match &self.order {
            DeviceOrder::Explicit(positions) => join(f, positions, ",")?,
            DeviceOrder::Iota {
                reshape_dims,
                transpose_perm,
            } => {
                f.write_str("<=[")?;
                join(f, reshape_dims, ",")?;
                f.write_str("]")?;
                if reshape_dims.len() > 1 {
                    f.write_str("T(")?;
                    join(f, transpose_perm, ",")?;
                    f.write_str(")")?;
                }
            }
        }
        if self.replicate_on_last_tile_dim {
            f.write_str(" last_tile_dim_replicate")?;
        }
        if !self.subgroups.is_empty() {
            f.write_str(" last_tile_dims={")?;
            join(f, self.subgroups.iter().map(|s| name(*s)), ", ")?;
            f.write_str("}")?;
        }
        f.write_str("}")
    }
}

const fn name(subgroup: SubgroupType) -> &'static str {
    match subgroup {
        SubgroupType::Replicated => "replicated",
        SubgroupType::Maximal => "maximal",
        SubgroupType::Manual => "manual",
        SubgroupType::Unreduced => "unreduced",
        // HLO has no text for it.
        SubgroupType::Unknown => "unknown",
    }
}

/// `{replicated}`, `{devices=[2,2]<=[4]}` and so on, the text form of HLO.
///
/// # Examples
/// ```
/// # fn main() -> ifrt::Result<()> {
/// use ifrt::xla::HloSharding;
/// assert_eq!(HloSharding::tile([2, 2])?.to_string(), "{devices=[2,2]<=[4]}");
/// assert_eq!(HloSharding::Maximal(3).to_string(), "{maximal device=3}");
/// # Ok(())
/// # }
/// ```
impl fmt::Display for HloSharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replicated => f.write_str("{replicated}"),
            Self::Maximal(position) => write!(f, "{{maximal device={position}}}"),
            Self::Manual => f.write_str("{manual}"),
            Self::Unknown => f.write_str("{unknown}"),
            Self::Unreduced => f.write_str("{unreduced}"),
            Self::Tiled(tiles) => tiles.fmt(f),
            Self::Tuple(leaves) => {
                f.write_str("{")?;
                for (position, leaf) in leaves.iter().enumerate() {
                    match position {
                        0 => {}
                        // HLO numbers every fifth leaf for the reader.
                        n if n % 5 == 0 => write!(f, ", /*index={n}*/")?,
                        _ => f.write_str(", ")?,
                    }
                    leaf.fmt(f)?;
                }
                f.write_str("}")
            }
        }
    }
}
