//! Reading FlatBuffers whose schema is only a list of slots.
//!
//! Nothing in the bytes is trusted: every offset is checked, tables may not nest deeper than
//! [`MAX_DEPTH`], and the tables that are visited are counted, because a small file can refer to
//! one table a million times.

use std::cell::Cell;

use ifrt::{Result, Status};

/// The depth that tables may nest; trees of arguments are the deepest thing in a file.
const MAX_DEPTH: usize = 200;

/// The bytes, and how much reading them is still allowed to cost.
pub(super) struct Buffer<'a> {
    bytes: &'a [u8],
    budget: Cell<usize>,
}

/// A table: its fields by slot.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    buffer: &'a Buffer<'a>,
    position: usize,
    vtable: usize,
    vtable_bytes: usize,
    depth: usize,
}

fn malformed(what: &str) -> Status {
    Status::invalid_argument(format!(
        "this is not a function written by jax.export, or it is damaged: {what}"
    ))
}

impl<'a> Buffer<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            // Each table and each element of a vector has at least a byte of its own.
            budget: Cell::new(bytes.len()),
        }
    }

    /// The outermost table.
    pub(super) fn root(&'a self) -> Result<Table<'a>> {
        self.table(self.follow(0)?, 0)
    }

    fn table(&'a self, position: usize, depth: usize) -> Result<Table<'a>> {
        if depth > MAX_DEPTH {
            return Err(malformed("it nests too deeply"));
        }
        self.spend(1)?;
        let back = i64::from(i32::from_le_bytes(self.array(position)?));
        let vtable = i64::try_from(position)
            .ok()
            .and_then(|position| position.checked_sub(back))
            .and_then(|vtable| usize::try_from(vtable).ok())
            .ok_or_else(|| malformed("a table has no description"))?;
        let vtable_bytes = usize::from(u16::from_le_bytes(self.array(vtable)?));
        let end = vtable.checked_add(vtable_bytes);
        if vtable_bytes < 4 || end.is_none_or(|end| end > self.bytes.len()) {
            return Err(malformed("the description of a table is cut off"));
        }
        Ok(Table {
            buffer: self,
            position,
            vtable,
            vtable_bytes,
            depth,
        })
    }

    fn array<const N: usize>(&self, position: usize) -> Result<[u8; N]> {
        self.slice(position, N)?
            .try_into()
            .map_err(|_| malformed("a value is cut off"))
    }

    fn slice(&self, position: usize, len: usize) -> Result<&'a [u8]> {
        let end = position.checked_add(len);
        end.and_then(|end| self.bytes.get(position..end))
            .ok_or_else(|| malformed("a value lies outside the file"))
    }

    /// Where the offset at this position leads.
    fn follow(&self, position: usize) -> Result<usize> {
        let offset = u32::from_le_bytes(self.array(position)?);
        usize::try_from(offset)
            .ok()
            .and_then(|offset| position.checked_add(offset))
            .ok_or_else(|| malformed("an offset leads nowhere"))
    }

    fn spend(&self, cost: usize) -> Result<()> {
        let left = self.budget.get().checked_sub(cost);
        self.budget
            .set(left.ok_or_else(|| malformed("it refers to the same parts over and over"))?);
        Ok(())
    }
}

macro_rules! scalars {
    ($($name:ident: $type:ty;)*) => {
        $(
            /// The scalar in this slot; zero if it is absent.
            pub(super) fn $name(&self, slot: usize) -> Result<$type> {
                match self.field(slot)? {
                    Some(position) => Ok(<$type>::from_le_bytes(self.buffer.array(position)?)),
                    None => Ok(0),
                }
            }
        )*
    };
}

impl<'a> Table<'a> {
    scalars! {
        i8: i8;
        i16: i16;
        u16: u16;
        u32: u32;
    }

    /// Where the field in this slot stands.
    fn field(&self, slot: usize) -> Result<Option<usize>> {
        let entry = 4 + 2 * slot;
        if entry + 2 > self.vtable_bytes {
            return Ok(None);
        }
        let offset = u16::from_le_bytes(self.buffer.array(self.vtable + entry)?);
        if offset == 0 {
            return Ok(None);
        }
        let position = self.position.checked_add(usize::from(offset));
        position
            .map(Some)
            .ok_or_else(|| malformed("a field lies outside the file"))
    }

    /// The table in this slot.
    pub(super) fn table(&self, slot: usize) -> Result<Option<Self>> {
        let Some(position) = self.field(slot)? else {
            return Ok(None);
        };
        let position = self.buffer.follow(position)?;
        self.buffer.table(position, self.depth + 1).map(Some)
    }

    /// The table in this slot, which must be there.
    pub(super) fn required(&self, slot: usize, what: &str) -> Result<Self> {
        self.table(slot)?
            .ok_or_else(|| malformed(&format!("{what} is missing")))
    }

    /// The text in this slot.
    pub(super) fn string(&self, slot: usize) -> Result<Option<&'a str>> {
        let Some(position) = self.field(slot)? else {
            return Ok(None);
        };
        self.text(position).map(Some)
    }

    fn text(&self, position: usize) -> Result<&'a str> {
        let (start, len) = self.vector_at(position, 1)?;
        std::str::from_utf8(self.buffer.slice(start, len)?)
            .map_err(|_| malformed("a text is not UTF-8"))
    }

    /// Begin and length of the vector that the offset at this position leads to.
    fn vector_at(&self, position: usize, item_bytes: usize) -> Result<(usize, usize)> {
        let vector = self.buffer.follow(position)?;
        let len = usize::try_from(u32::from_le_bytes(self.buffer.array(vector)?))
            .map_err(|_| malformed("a list is too long"))?;
        let bytes = len
            .checked_mul(item_bytes)
            .ok_or_else(|| malformed("a list is too long"))?;
        let start = vector + 4;
        self.buffer.slice(start, bytes)?;
        Ok((start, len))
    }

    /// The list in this slot; empty if it is absent.
    fn vector(&self, slot: usize, item_bytes: usize) -> Result<(usize, usize)> {
        match self.field(slot)? {
            Some(position) => self.vector_at(position, item_bytes),
            None => Ok((0, 0)),
        }
    }

    /// The bytes in this slot; empty if they are absent.
    pub(super) fn bytes(&self, slot: usize) -> Result<&'a [u8]> {
        let (start, len) = self.vector(slot, 1)?;
        self.buffer.slice(start, len)
    }

    /// The tables in this slot.
    pub(super) fn tables(&self, slot: usize) -> Result<Vec<Self>> {
        let (start, len) = self.vector(slot, 4)?;
        (0..len)
            .map(|n| {
                let position = self.buffer.follow(start + 4 * n)?;
                self.buffer.table(position, self.depth + 1)
            })
            .collect()
    }

    /// The texts in this slot.
    pub(super) fn strings(&self, slot: usize) -> Result<Vec<String>> {
        let (start, len) = self.vector(slot, 4)?;
        (0..len)
            .map(|n| {
                let text = self.text(start + 4 * n)?;
                self.buffer.spend(text.len() + 1)?;
                Ok(text.to_owned())
            })
            .collect()
    }

    /// The numbers in this slot.
    pub(super) fn u16s(&self, slot: usize) -> Result<Vec<u16>> {
        let (start, len) = self.vector(slot, 2)?;
        let (numbers, _) = self.buffer.slice(start, 2 * len)?.as_chunks::<2>();
        Ok(numbers.iter().map(|n| u16::from_le_bytes(*n)).collect())
    }

    /// The numbers in this slot; `None` if they are absent.
    pub(super) fn u32s(&self, slot: usize) -> Result<Option<Vec<u32>>> {
        if self.field(slot)?.is_none() {
            return Ok(None);
        }
        let (start, len) = self.vector(slot, 4)?;
        let (numbers, _) = self.buffer.slice(start, 4 * len)?.as_chunks::<4>();
        Ok(Some(
            numbers.iter().map(|n| u32::from_le_bytes(*n)).collect(),
        ))
    }

    /// True if the field in this slot is there.
    pub(super) fn has(&self, slot: usize) -> Result<bool> {
        Ok(self.field(slot)?.is_some())
    }
}
