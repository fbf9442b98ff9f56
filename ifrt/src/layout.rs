//! [`Layout`]: the order of the elements of a shard in device memory.
//!
//! A layout is XLA's, in its text form: that is how it crosses the wire inside array specs and
//! answers, and how PJRT plugins give it. The order of the dimensions is always understood; what
//! follows it is understood as far as [`LayoutProperties`] goes, and else kept as it is.
//!
//! What is not here: which layout a device takes by default
//! ([`Client::default_layout`](crate::client::Client::default_layout)), and the comparison of
//! layouts that may be missing
//! ([`ArraySpec::has_equivalent_layout`](crate::array_spec::ArraySpec::has_equivalent_layout)).
//!
//! # Mirrors
//! `xla/python/ifrt/layout.h`, `xla/python/pjrt_ifrt/pjrt_layout.h`, `xla/layout.h`.

mod compact;
mod properties;

use std::fmt;

pub use compact::CompactLayout;
pub use properties::{COMBINE_DIMENSION, LayoutProperties, SplitConfig};

use crate::status::{Result, Status};

/// The order of the elements of a shard: `{minor_to_major}` or `{minor_to_major:properties}`.
///
/// Layouts compare by their text. A missing layout (`Option<Layout>`) is the default of the device;
/// two missing ones need not be the same.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Layout {
    minor_to_major: Box<[i64]>,
    properties: Box<str>,
}

impl Layout {
    /// The layout of a dense array, major to minor (`{n-1,…,1,0}`).
    pub fn descending(rank: usize) -> Self {
        let minor_to_major = (0..i64::try_from(rank).unwrap_or(i64::MAX)).rev().collect();
        Self {
            minor_to_major,
            properties: "".into(),
        }
    }

    /// The layout with this order of dimensions, from the fastest to the slowest.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the numbers are no permutation.
    pub fn from_minor_to_major(minor_to_major: impl Into<Box<[i64]>>) -> Result<Self> {
        let minor_to_major = minor_to_major.into();
        let mut seen = vec![false; minor_to_major.len()];
        for dim in &minor_to_major {
            let slot = usize::try_from(*dim).ok().and_then(|dim| seen.get_mut(dim));
            match slot {
                Some(seen) if !*seen => *seen = true,
                _ => {
                    return Err(Status::invalid_argument(format!(
                        "layout order {minor_to_major:?} is no permutation of its dimensions"
                    )));
                }
            }
        }
        Ok(Self {
            minor_to_major,
            properties: "".into(),
        })
    }

    /// The same order of dimensions with these properties.
    ///
    /// The memory space is dropped, as in the reference: runtimes keep it apart from the layout.
    #[must_use]
    pub fn with_properties(self, properties: &LayoutProperties) -> Self {
        let properties = LayoutProperties {
            memory_space: 0,
            ..properties.clone()
        };
        Self {
            minor_to_major: self.minor_to_major,
            properties: properties.to_string().into(),
        }
    }

    /// Reads the text form. Properties that are understood are brought into XLA's own spelling,
    /// so that equal layouts have equal texts.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for any other text.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> ifrt::Result<()> {
    /// use ifrt::{DType, Layout, Shape};
    /// let tiled = Layout::parse("{1,0:T(2,128)}")?;
    /// let shard = Shape::try_from([1, 127])?;
    /// assert_eq!(tiled.byte_size(DType::S32, &shard)?, Some(1024));
    /// # Ok(())
    /// # }
    /// ```
    pub fn parse(text: &str) -> Result<Self> {
        let malformed = || Status::invalid_argument(format!("malformed layout {text:?}"));
        let inner = text
            .strip_prefix('{')
            .and_then(|t| t.strip_suffix('}'))
            .ok_or_else(malformed)?;
        let (order, properties) = inner.split_once(':').unwrap_or((inner, ""));
        let order = order.trim();
        let minor_to_major: Vec<i64> = if order.is_empty() {
            Vec::new()
        } else {
            order
                .split(',')
                .map(|dim| dim.trim().parse())
                .collect::<Result<_, _>>()
                .map_err(|_| malformed())?
        };
        let layout = Self::from_minor_to_major(minor_to_major)?;
        // Anything else than the characters of XLA's grammar would travel on to other machines.
        if !properties
            .bytes()
            .all(|b| b.is_ascii_graphic() && b != b'{' && b != b'}')
        {
            return Err(malformed());
        }
        Ok(match LayoutProperties::parse(properties) {
            Ok(properties) => layout.with_properties(&properties),
            Err(_) => Self {
                properties: properties.into(),
                ..layout
            },
        })
    }

    /// The dimensions from the fastest to the slowest.
    pub fn minor_to_major(&self) -> &[i64] {
        &self.minor_to_major
    }

    /// What follows the order in the text: tiles, element size and the like; often empty.
    pub fn properties(&self) -> &str {
        &self.properties
    }

    /// What follows the order in the text, read.
    ///
    /// # Errors
    /// UNIMPLEMENTED for sparse and dynamic layouts; INVALID_ARGUMENT if it is not understood.
    pub fn parse_properties(&self) -> Result<LayoutProperties> {
        LayoutProperties::parse(&self.properties)
    }

    /// True if the elements stand major to minor and nothing else is said but the element size,
    /// which only packs types below a byte.
    pub fn is_descending(&self) -> bool {
        let descending = self
            .minor_to_major
            .iter()
            .rev()
            .zip(0..)
            .all(|(dim, expected)| *dim == expected);
        let packed_only = self.properties.is_empty()
            || (self.properties.starts_with("E(") && self.properties.ends_with(')'));
        descending && packed_only
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (position, dim) in self.minor_to_major.iter().enumerate() {
            if position > 0 {
                f.write_str(",")?;
            }
            write!(f, "{dim}")?;
        }
        if !self.properties.is_empty() {
            write!(f, ":{}", self.properties)?;
        }
        f.write_str("}")
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layout({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trip() {
        for text in [
            "{}",
            "{0}",
            "{1,0}",
            "{0,1}",
            "{1,0:T(8,128)}",
            "{0:E(4)}",
            "{:T(256)}",
        ] {
            assert_eq!(Layout::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Layout::descending(3).to_string(), "{2,1,0}");
        assert_eq!(Layout::parse("{1, 0}").unwrap(), Layout::descending(2));
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "",
            "{",
            "1,0",
            "{1}",
            "{0,0}",
            "{-1}",
            "{a}",
            "{0:{}}",
            "{0:\u{7}}",
            "{,}",
        ] {
            assert!(Layout::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn descending_allows_packing_only() {
        assert!(Layout::parse("{1,0}").unwrap().is_descending());
        assert!(Layout::parse("{0:E(4)}").unwrap().is_descending());
        assert!(!Layout::parse("{0,1}").unwrap().is_descending());
        assert!(!Layout::parse("{1,0:T(8,128)}").unwrap().is_descending());
    }
}
