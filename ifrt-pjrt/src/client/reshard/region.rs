//! Boxes of elements, copied between dense arrays.

use ifrt::index::IndexDomain;
use ifrt::{Result, Status};

/// The elements that two boxes have in common: the start and the length of each dimension. `None`
/// if there are none, or if the boxes are of different ranks.
pub(super) fn overlap(one: &IndexDomain, other: &IndexDomain) -> Option<Vec<(i64, i64)>> {
    let (a, b) = (one.shape().dims(), other.shape().dims());
    if a.len() != b.len() {
        return None;
    }
    let dims = one.origin().iter().zip(a).zip(other.origin().iter().zip(b));
    dims.map(|((start_a, len_a), (start_b, len_b))| {
        let start = *start_a.max(start_b);
        let end_a = start_a.checked_add(*len_a)?;
        let end = end_a.min(start_b.checked_add(*len_b)?);
        (start < end).then(|| (start, end - start))
    })
    .collect()
}

/// Copies what two boxes have in common. `to` and `from` are dense and hold the boxes, `item` items
/// per element.
///
/// # Errors
/// INTERNAL if a slice is smaller than its box.
pub(super) fn copy<T: Clone>(
    to: &mut [T],
    to_box: &IndexDomain,
    from: &[T],
    from_box: &IndexDomain,
    item: usize,
) -> Result<()> {
    let Some(common) = overlap(to_box, from_box) else {
        return Ok(());
    };
    let broken = || Status::internal("a shard has fewer elements than its sharding says");
    let copy = Copy::new(&common, to_box, from_box, item).ok_or_else(broken)?;
    let mut index = vec![0_usize; copy.outer.len()];
    loop {
        let (mut at_to, mut at_from) = (copy.to_start, copy.from_start);
        for (position, dim) in index.iter().zip(&copy.outer) {
            at_to += position * dim.to_stride;
            at_from += position * dim.from_stride;
        }
        let target = to
            .get_mut(at_to..)
            .and_then(|rest| rest.get_mut(..copy.run));
        let source = from.get(at_from..).and_then(|rest| rest.get(..copy.run));
        let (target, source) = target.zip(source).ok_or_else(broken)?;
        target.clone_from_slice(source);
        // The next row, counting from the innermost dimension.
        let mut dims = index.iter_mut().zip(&copy.outer).rev();
        let advanced = dims.any(|(position, dim)| {
            *position += 1;
            if *position == dim.len {
                *position = 0;
                return false;
            }
            true
        });
        if !advanced {
            return Ok(());
        }
    }
}

/// Rows of items that are together on both sides.
struct Copy {
    to_start: usize,
    from_start: usize,
    run: usize,
    outer: Vec<Dim>,
}

struct Dim {
    len: usize,
    to_stride: usize,
    from_stride: usize,
}

impl Copy {
    /// `None` if a number is none of memory.
    fn new(
        common: &[(i64, i64)],
        to_box: &IndexDomain,
        from_box: &IndexDomain,
        item: usize,
    ) -> Option<Self> {
        let size = |number: i64| usize::try_from(number).ok();
        let (mut to_stride, mut from_stride) = (item, item);
        let mut copy = Self {
            to_start: 0,
            from_start: 0,
            run: item,
            outer: Vec::new(),
        };
        let mut is_together = true;
        for (dim, (start, len)) in common.iter().enumerate().rev() {
            let (to_len, from_len) = (to_box.shape().dims()[dim], from_box.shape().dims()[dim]);
            let (len, to_offset) = (size(*len)?, size(start - to_box.origin()[dim])?);
            let from_offset = size(start - from_box.origin()[dim])?;
            copy.to_start += to_offset.checked_mul(to_stride)?;
            copy.from_start += from_offset.checked_mul(from_stride)?;
            if is_together {
                copy.run = copy.run.checked_mul(len)?;
                // Beyond a dimension that is taken in part the rows are apart.
                is_together = Some(len) == size(to_len) && Some(len) == size(from_len);
            } else {
                copy.outer.push(Dim {
                    len,
                    to_stride,
                    from_stride,
                });
            }
            to_stride = to_stride.checked_mul(size(to_len)?)?;
            from_stride = from_stride.checked_mul(size(from_len)?)?;
        }
        copy.outer.reverse();
        Some(copy)
    }
}

#[cfg(test)]
mod tests;
