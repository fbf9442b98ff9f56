//! [`PartitionSpec`]: which mesh axes split which dimension of an array.
//!
//! # Mirrors
//! `jax/_src/partition_spec.py`. The sets `unreduced` and `reduced` are not here.

use std::fmt;
use std::sync::Arc;

/// What splits one dimension of an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(
    clippy::exhaustive_enums,
    reason = "closed by jax.sharding.PartitionSpec"
)]
pub enum PartitionDim {
    /// Nothing; `None` in JAX.
    Whole,
    /// These axes, the first one outermost.
    Axes(Box<[Arc<str>]>),
    /// The compiler decides. Such a spec describes no placement of data.
    Unconstrained,
}

/// Which mesh axes split which dimension of an array; dimensions that are not named are whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PartitionSpec(Box<[PartitionDim]>);

impl PartitionDim {
    /// Split by these axes; without any, not split.
    pub fn axes<'a>(axes: impl IntoIterator<Item = &'a str>) -> Self {
        let axes: Box<[Arc<str>]> = axes.into_iter().map(Arc::from).collect();
        if axes.is_empty() {
            Self::Whole
        } else {
            Self::Axes(axes)
        }
    }

    /// The axes that split the dimension.
    pub fn names(&self) -> &[Arc<str>] {
        match self {
            Self::Axes(axes) => axes,
            Self::Whole | Self::Unconstrained => &[],
        }
    }
}

impl PartitionSpec {
    /// A spec with these dimensions.
    pub fn new(dims: impl Into<Box<[PartitionDim]>>) -> Self {
        Self(dims.into())
    }

    /// The dimensions that the spec speaks of.
    pub fn dims(&self) -> &[PartitionDim] {
        &self.0
    }

    /// The axes in the order in which they stand.
    pub(crate) fn axes(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter().flat_map(|dim| dim.names().iter())
    }
}

impl FromIterator<PartitionDim> for PartitionSpec {
    fn from_iter<I: IntoIterator<Item = PartitionDim>>(dims: I) -> Self {
        Self(dims.into_iter().collect())
    }
}

impl From<&str> for PartitionDim {
    fn from(axis: &str) -> Self {
        Self::axes([axis])
    }
}

impl From<Option<&str>> for PartitionDim {
    fn from(axis: Option<&str>) -> Self {
        Self::axes(axis)
    }
}

impl<const N: usize> From<[&str; N]> for PartitionDim {
    fn from(axes: [&str; N]) -> Self {
        Self::axes(axes)
    }
}

impl From<(&str,)> for PartitionDim {
    fn from((axis,): (&str,)) -> Self {
        Self::axes([axis])
    }
}

impl From<(&str, &str)> for PartitionDim {
    fn from((first, second): (&str, &str)) -> Self {
        Self::axes([first, second])
    }
}

impl From<(&str, &str, &str)> for PartitionDim {
    fn from((first, second, third): (&str, &str, &str)) -> Self {
        Self::axes([first, second, third])
    }
}

/// As Python shows it: `P('x', None, ('y', 'z'))`.
impl fmt::Display for PartitionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("P(")?;
        for (position, dim) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{dim}")?;
        }
        f.write_str(if self.0.len() == 1 { ",)" } else { ")" })
    }
}

impl fmt::Display for PartitionDim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => f.write_str("None"),
            Self::Unconstrained => f.write_str("UNCONSTRAINED"),
            Self::Axes(axes) if axes.len() == 1 => write!(f, "'{}'", axes[0]),
            Self::Axes(axes) => {
                f.write_str("(")?;
                for (position, axis) in axes.iter().enumerate() {
                    if position > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "'{axis}'")?;
                }
                f.write_str(")")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_like_python() {
        let dims: [PartitionDim; 3] = ["x".into(), None.into(), ("y", "z").into()];
        assert_eq!(
            PartitionSpec::new(dims).to_string(),
            "P('x', None, ('y', 'z'))"
        );
        assert_eq!(PartitionSpec::new(["x".into()]).to_string(), "P('x',)");
        assert_eq!(PartitionSpec::default().to_string(), "P()");
    }

    #[test]
    fn a_tuple_of_one_is_its_member_and_an_empty_one_is_none() {
        assert_eq!(PartitionDim::from(["x"]), PartitionDim::from("x"));
        assert_eq!(PartitionDim::from(("x",)), PartitionDim::from("x"));
        assert_eq!(PartitionDim::axes([]), PartitionDim::Whole);
    }
}
