//! [`LayoutProperties`]: what the text of a layout says besides the order of the dimensions.
//!
//! # Mirrors
//! `xla/layout.h`, `xla/shape_util.h` (`ArraySize`).

use std::fmt;

use super::Layout;
use crate::dtype::DType;
use crate::shape::Shape;
use crate::status::{Result, Status};

/// A tile dimension that stands for "merge with the next one", `*` in the text.
pub const COMBINE_DIMENSION: i64 = i64::MIN;

/// What the text of a layout says besides the order of the dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LayoutProperties {
    /// The tiles, outermost first, each major to minor; a dimension may be [`COMBINE_DIMENSION`].
    pub tiles: Vec<Vec<i64>>,
    /// The number of elements is rounded up to a multiple of this. 1 is nothing special.
    pub tail_padding_alignment_in_elements: i64,
    /// The bits that an element takes; 0 is whole bytes.
    pub element_size_in_bits: i64,
    /// The memory space of XLA. Runtimes keep it apart from the layout, so it is mostly 0.
    pub memory_space: i64,
    /// Where dimensions are cut into pieces that lie apart.
    pub split_configs: Vec<SplitConfig>,
}

/// Where one dimension is cut into pieces that lie apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SplitConfig {
    /// The dimension, counted from the slowest in memory.
    pub dimension: i64,
    /// The first elements of all pieces but the first, ascending.
    pub split_indices: Vec<i64>,
}

impl Default for LayoutProperties {
    fn default() -> Self {
        Self {
            tiles: Vec::new(),
            tail_padding_alignment_in_elements: 1,
            element_size_in_bits: 0,
            memory_space: 0,
            split_configs: Vec::new(),
        }
    }
}

impl LayoutProperties {
    /// Reads what follows the colon in the text of a layout.
    ///
    /// # Errors
    /// UNIMPLEMENTED for the properties of sparse and dynamic layouts; INVALID_ARGUMENT for text
    /// that is none.
    pub fn parse(text: &str) -> Result<Self> {
        let malformed =
            || Status::invalid_argument(format!("malformed properties {text:?} of a layout"));
        let mut properties = Self::default();
        let mut rest = text;
        if let Some(tiles) = rest.strip_prefix('T') {
            rest = tiles;
            let tiles = groups(&mut rest, tile).filter(|tiles| !tiles.is_empty());
            properties.tiles = tiles.ok_or_else(malformed)?;
        }
        for (name, property) in [
            ("L", &mut properties.tail_padding_alignment_in_elements),
            ("E", &mut properties.element_size_in_bits),
            ("S", &mut properties.memory_space),
        ] {
            // `SC` begins like `S`.
            if let Some(after) = rest.strip_prefix(name)
                && after.starts_with('(')
            {
                rest = after;
                *property = argument(&mut rest)
                    .and_then(|number| number.parse().ok())
                    .filter(|number| *number >= 0)
                    .ok_or_else(malformed)?;
            }
        }
        if let Some(splits) = rest.strip_prefix("SC") {
            rest = splits;
            let splits = groups(&mut rest, split).filter(|splits| !splits.is_empty());
            properties.split_configs = splits.ok_or_else(malformed)?;
        }
        if rest.is_empty() {
            return Ok(properties);
        }
        if rest.starts_with(['D', '#', '*', 'P', 'M']) {
            return Err(Status::unimplemented(format!(
                "sparse and dynamic layouts are not supported: {text:?}"
            )));
        }
        Err(malformed())
    }

    /// The bytes that an array of this shape takes.
    ///
    /// Only the outermost tile counts, as in XLA: inner ones are taken to add no padding.
    pub(super) fn byte_size(&self, layout: &Layout, dtype: DType, dims: &[i64]) -> Option<u64> {
        let bits = match (self.element_size_in_bits, dtype.host_byte_size()) {
            (0, Some(bytes)) => u64::try_from(bytes).ok()?.checked_mul(8)?,
            (bits, _) => u64::try_from(bits).ok()?,
        };
        let rank = dims.len();
        let tile = self.tiles.first().map_or(&[][..], Vec::as_slice);
        // From the fastest dimension to the slowest, padded to the tile as far as it reaches.
        let sizes = (0..rank.max(tile.len())).map(|place| {
            let size = match layout.minor_to_major.get(place) {
                Some(dim) => {
                    self.longest_piece(place, *dims.get(usize::try_from(*dim).ok()?)?, rank)?
                }
                None => 1,
            };
            match tile.len().checked_sub(place + 1) {
                Some(position) => round_up(size, u64::try_from(tile[position]).ok()?),
                None => Some(size),
            }
        });
        let elements = sizes.try_fold_checked()?;
        let alignment = u64::try_from(self.tail_padding_alignment_in_elements).ok()?;
        round_up(elements, alignment)?
            .checked_mul(bits)
            .map(|bits| bits.div_ceil(8))
    }

    /// The extent of a dimension, or of its longest piece if it is cut.
    fn longest_piece(&self, place: usize, dim: i64, rank: usize) -> Option<u64> {
        let from_slowest = i64::try_from(rank.checked_sub(place + 1)?).ok()?;
        let split = self
            .split_configs
            .iter()
            .find(|split| split.dimension == from_slowest);
        let (mut longest, mut start) = (0, 0);
        for cut in split.map_or(&[][..], |split| &split.split_indices) {
            let piece = cut.checked_sub(start).filter(|piece| *piece >= 0)?;
            longest = longest.max(piece);
            start = *cut;
        }
        let rest = dim.checked_sub(start).filter(|rest| *rest >= 0)?;
        u64::try_from(longest.max(rest)).ok()
    }
}

/// Products of sizes that may not exist or exceed 64 bits.
trait CheckedProduct {
    fn try_fold_checked(self) -> Option<u64>;
}

impl<I: Iterator<Item = Option<u64>>> CheckedProduct for I {
    fn try_fold_checked(mut self) -> Option<u64> {
        self.try_fold(1_u64, |product, size| product.checked_mul(size?))
    }
}

fn round_up(size: u64, multiple: u64) -> Option<u64> {
    match multiple {
        0 => None,
        _ => size.checked_next_multiple_of(multiple),
    }
}

/// Takes `(argument)` off the front of the text.
fn argument<'a>(text: &mut &'a str) -> Option<&'a str> {
    let (argument, rest) = text.strip_prefix('(')?.split_once(')')?;
    *text = rest;
    Some(argument)
}

/// Takes `(…)(…)` off the front of the text.
fn groups<T>(text: &mut &str, read: fn(&str) -> Option<T>) -> Option<Vec<T>> {
    let mut groups = Vec::new();
    while text.starts_with('(') {
        groups.push(read(argument(text)?)?);
    }
    Some(groups)
}

fn tile(text: &str) -> Option<Vec<i64>> {
    let dim = |dim: &str| match dim {
        "*" => Some(COMBINE_DIMENSION),
        number => number.parse().ok().filter(|number| *number >= 0),
    };
    // A tile without dimensions pads nothing, but XLA writes and reads it.
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split(',').map(dim).collect()
}

fn split(text: &str) -> Option<SplitConfig> {
    let (dimension, indices) = text.split_once(':')?;
    let split_indices = indices.split(',').map(|index| index.parse().ok());
    Some(SplitConfig {
        dimension: dimension.parse().ok()?,
        split_indices: split_indices.collect::<Option<_>>()?,
    })
}

/// The text after the colon, in the order in which XLA writes it.
impl fmt::Display for LayoutProperties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn join(values: &[i64]) -> String {
            let text = |value: &i64| match *value {
                COMBINE_DIMENSION => "*".to_owned(),
                number => number.to_string(),
            };
            values.iter().map(text).collect::<Vec<_>>().join(",")
        }
        if !self.tiles.is_empty() {
            f.write_str("T")?;
            for tile in &self.tiles {
                write!(f, "({})", join(tile))?;
            }
        }
        if self.tail_padding_alignment_in_elements != 1 {
            write!(f, "L({})", self.tail_padding_alignment_in_elements)?;
        }
        if self.element_size_in_bits != 0 {
            write!(f, "E({})", self.element_size_in_bits)?;
        }
        if self.memory_space != 0 {
            write!(f, "S({})", self.memory_space)?;
        }
        // A dimension without cuts is not split.
        let splits = self.split_configs.iter();
        let mut name = "SC";
        for split in splits.filter(|split| !split.split_indices.is_empty()) {
            write!(
                f,
                "{name}({}:{})",
                split.dimension,
                join(&split.split_indices)
            )?;
            name = "";
        }
        Ok(())
    }
}

impl Layout {
    /// The bytes that a shard takes; `None` if the dtype has no size.
    ///
    /// # Shapes
    /// `shard_shape` is that of a shard, not of the whole array.
    ///
    /// # Units
    /// Bytes, with padding. Types below a byte take whole bytes unless the layout packs them.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the layout is for another number of dimensions or the size exceeds 64
    /// bits; UNIMPLEMENTED for sparse and dynamic layouts.
    ///
    /// # Mirrors
    /// `xla/python/pjrt_ifrt/pjrt_layout.h`, `PjRtLayout::ByteSize`.
    pub fn byte_size(&self, dtype: DType, shard_shape: &Shape) -> Result<Option<u64>> {
        if dtype.bit_size().is_none() {
            return Ok(None);
        }
        if self.minor_to_major.len() != shard_shape.rank() {
            return Err(Status::invalid_argument(format!(
                "layout {self} is not for shape {shard_shape}: the numbers of dimensions differ"
            )));
        }
        let properties = self.parse_properties()?;
        let size = properties.byte_size(self, dtype, shard_shape.dims());
        size.map(Some).ok_or_else(|| {
            Status::invalid_argument(format!(
                "the size of shape {shard_shape} and dtype {dtype} in layout {self} is not a \
                 number of bytes"
            ))
        })
    }
}
