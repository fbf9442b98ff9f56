//! [`Call`]: the operands, results and attributes of a custom call.

use std::marker::PhantomData;
use std::ptr::NonNull;

use ifrt::{Result, Status};

use crate::sys::ffi::data_type;

/// The type of an element, as far as handlers know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElementKind {
    /// `i32`.
    S32,
    /// `i64`.
    S64,
    /// `f32`.
    F32,
    /// `f64`.
    F64,
    /// A pair of `f32`.
    C64,
    /// A pair of `f64`.
    C128,
}

impl ElementKind {
    pub(super) fn from_number(number: i32) -> Option<Self> {
        Some(match number {
            data_type::S32 => Self::S32,
            data_type::S64 => Self::S64,
            data_type::F32 => Self::F32,
            data_type::F64 => Self::F64,
            data_type::C64 => Self::C64,
            data_type::C128 => Self::C128,
            _ => return None,
        })
    }

    pub(super) const fn size(self) -> usize {
        match self {
            Self::S32 | Self::F32 => 4,
            Self::S64 | Self::F64 | Self::C64 => 8,
            Self::C128 => 16,
        }
    }
}

/// A type whose values fill buffers.
///
/// # Safety
/// F4: the type has no padding and no invalid patterns of bits, and the size and the alignment of
/// the kind.
pub(crate) unsafe trait Element: Copy + 'static {
    /// What plugins call it.
    const KIND: ElementKind;
}

macro_rules! element {
    ($($type:ty = $kind:ident;)*) => {$(
        const _: () = {
            assert!(size_of::<$type>() == ElementKind::$kind.size());
            // What is copied is kept in words.
            assert!(align_of::<$type>() <= align_of::<u64>());
        };

        // SAFETY: F4; numbers and pairs of them, the size is asserted above.
        unsafe impl Element for $type {
            const KIND: ElementKind = ElementKind::$kind;
        }
    )*};
}

element! {
    i32 = S32;
    i64 = S64;
    f32 = F32;
    f64 = F64;
    faer::c32 = C64;
    faer::c64 = C128;
}

/// A buffer of a frame, checked: `bytes` from `data` are there, whatever they hold.
#[derive(Clone, Debug)]
pub(super) struct RawBuffer {
    pub(super) kind: ElementKind,
    pub(super) dims: Vec<usize>,
    pub(super) data: NonNull<u8>,
    pub(super) bytes: usize,
}

impl RawBuffer {
    /// True if the two share a byte.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let (this, that) = (self.data.addr().get(), other.data.addr().get());
        // The frame's buffers are inside the address space, so these sums are too.
        self.bytes > 0
            && other.bytes > 0
            && this < that.saturating_add(other.bytes)
            && that < this.saturating_add(self.bytes)
    }

    pub(super) fn same_bytes(&self, other: &Self) -> bool {
        self.data == other.data && self.bytes == other.bytes
    }
}

/// Where the values of an operand are.
#[derive(Debug)]
enum Source {
    /// In the memory of the plugin, which no result overlaps.
    Lent,
    /// In a copy.
    Copied(Vec<u64>),
    /// In the result that it was put into.
    InResult,
}

#[derive(Debug)]
struct Operand {
    buffer: RawBuffer,
    source: Source,
}

#[derive(Debug)]
struct Output {
    buffer: RawBuffer,
    taken: bool,
}

/// The value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attribute {
    /// A `bool`.
    Bool(bool),
    /// A `u8`, by which modes are passed.
    U8(u8),
    /// An `i32`.
    I32(i32),
    /// An `i64`.
    I64(i64),
    /// A value of another type.
    Other,
}

/// The operands, results and attributes of one custom call.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    operands: Vec<Operand>,
    results: Vec<Output>,
    attributes: Vec<(&'a str, Attribute)>,
    lent: PhantomData<&'a mut [u8]>,
}

impl<'a> Call<'a> {
    /// Takes the buffers of a frame, and puts operands into the results that they begin.
    ///
    /// # Safety
    /// F1 and F2, for `'a`.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if results overlap, or an operand does not fit into its result.
    pub(super) unsafe fn new(
        operands: Vec<RawBuffer>,
        results: Vec<RawBuffer>,
        attributes: Vec<(&'a str, Attribute)>,
        in_place: &[(usize, usize)],
    ) -> Result<Self> {
        for (index, result) in results.iter().enumerate() {
            if results[..index]
                .iter()
                .any(|earlier| earlier.overlaps(result))
            {
                return Err(Status::invalid_argument(format!(
                    "result {index} of the custom call overlaps with another one"
                )));
            }
        }
        let target_of = |operand: usize| {
            in_place
                .iter()
                .find(|(from, _)| *from == operand)
                .and_then(|(_, to)| results.get(*to))
        };
        for (index, operand) in operands.iter().enumerate() {
            if let Some(result) = target_of(index)
                && (operand.kind != result.kind || operand.dims != result.dims)
            {
                return Err(Status::invalid_argument(format!(
                    "operand {index} of the custom call has the type {:?}{:?}, but the result that \
                     it becomes has {:?}{:?}",
                    operand.kind, operand.dims, result.kind, result.dims
                )));
            }
        }
        let mut sources = Vec::with_capacity(operands.len());
        for (index, operand) in operands.iter().enumerate() {
            let target = target_of(index);
            let overlaps = results.iter().any(|result| {
                let is_place = target.is_some_and(|target| std::ptr::eq(target, result))
                    && operand.same_bytes(result);
                !is_place && operand.overlaps(result)
            });
            sources.push(match overlaps {
                // SAFETY: F2; nothing has been written yet.
                true => Source::Copied(unsafe { copy(operand) }),
                false => Source::Lent,
            });
        }
        for (index, result) in results.iter().enumerate() {
            let beginning = in_place
                .iter()
                .find(|(_, to)| *to == index)
                .map(|(from, _)| *from);
            match beginning.and_then(|from| Some((operands.get(from)?, sources.get(from)?))) {
                Some((operand, Source::Lent)) if operand.same_bytes(result) => {}
                Some((operand, source)) => {
                    let from = match source {
                        Source::Copied(words) => words.as_ptr().cast(),
                        Source::Lent | Source::InResult => operand.data.as_ptr().cast_const(),
                    };
                    // SAFETY: F2 and F3; both are as long as the result, since their types and
                    // dimensions are equal, and the source overlaps with no result.
                    unsafe { from.copy_to_nonoverlapping(result.data.as_ptr(), result.bytes) };
                }
                // SAFETY: F2; F4 asks for initialized bytes.
                None => unsafe { result.data.write_bytes(0, result.bytes) },
            }
        }
        for (from, _) in in_place {
            if let Some(source) = sources.get_mut(*from) {
                *source = Source::InResult;
            }
        }
        let operands = operands
            .into_iter()
            .zip(sources)
            .map(|(buffer, source)| Operand { buffer, source });
        let results = results.into_iter().map(|buffer| Output {
            buffer,
            taken: false,
        });
        Ok(Self {
            operands: operands.collect(),
            results: results.collect(),
            attributes,
            lent: PhantomData,
        })
    }

    /// The type of an operand.
    pub(crate) fn operand_kind(&self, index: usize) -> Result<ElementKind> {
        self.operand_at(index).map(|operand| operand.buffer.kind)
    }

    /// The dimensions of an operand.
    pub(crate) fn operand_dims(&self, index: usize) -> Result<&[usize]> {
        self.operand_at(index).map(|operand| &*operand.buffer.dims)
    }

    /// The dimensions of a result.
    pub(crate) fn result_dims(&self, index: usize) -> Result<&[usize]> {
        match self.results.get(index) {
            Some(result) => Ok(&result.buffer.dims),
            None => Err(Status::internal(format!(
                "a custom call has no result {index}"
            ))),
        }
    }

    fn operand_at(&self, index: usize) -> Result<&Operand> {
        self.operands
            .get(index)
            .ok_or_else(|| Status::internal(format!("a custom call has no operand {index}")))
    }

    /// The values of an operand that begins no result.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if it has another type.
    pub(crate) fn operand<T: Element>(&self, index: usize) -> Result<&[T]> {
        let operand = self.operand_at(index)?;
        check_kind::<T>(&operand.buffer, "operand", index)?;
        let count = operand.buffer.bytes / size_of::<T>();
        let data: *const T = match &operand.source {
            Source::Lent => operand.buffer.data.as_ptr().cast_const().cast(),
            Source::Copied(words) => words.as_ptr().cast(),
            Source::InResult => {
                return Err(Status::internal(format!(
                    "operand {index} of a custom call is in its result"
                )));
            }
        };
        if count == 0 {
            return Ok(&[]);
        }
        check_alignment(data, "operand", index)?;
        // SAFETY: F2 to F4; the memory is read only, or a copy that lives as long as the call.
        Ok(unsafe { std::slice::from_raw_parts(data, count) })
    }

    /// The place for the values of a result; each can be taken once.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if it has another type.
    pub(crate) fn result<T: Element>(&mut self, index: usize) -> Result<&'a mut [T]> {
        let result = self
            .results
            .get_mut(index)
            .filter(|result| !result.taken)
            .ok_or_else(|| Status::internal(format!("result {index} is taken or not there")))?;
        check_kind::<T>(&result.buffer, "result", index)?;
        result.taken = true;
        let count = result.buffer.bytes / size_of::<T>();
        if count == 0 {
            return Ok(&mut []);
        }
        let data: *mut T = result.buffer.data.as_ptr().cast();
        check_alignment(data, "result", index)?;
        // SAFETY: F2 to F4; the slice is given out once.
        Ok(unsafe { std::slice::from_raw_parts_mut(data, count) })
    }

    /// The value of an attribute.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if there is none of this name.
    pub(crate) fn attribute(&self, name: &str) -> Result<Attribute> {
        self.attributes
            .iter()
            .find(|(candidate, _)| *candidate == name)
            .map(|(_, value)| *value)
            .ok_or_else(|| {
                Status::invalid_argument(format!("the custom call has no attribute {name:?}"))
            })
    }
}

/// # Safety
/// F2: the bytes of the buffer can be read.
unsafe fn copy(buffer: &RawBuffer) -> Vec<u64> {
    let mut words = vec![0u64; buffer.bytes.div_ceil(size_of::<u64>())];
    let target: *mut u8 = words.as_mut_ptr().cast();
    // SAFETY: F2 for the source; the words have room for its bytes and are new.
    unsafe {
        buffer
            .data
            .as_ptr()
            .copy_to_nonoverlapping(target, buffer.bytes)
    };
    words
}

fn check_kind<T: Element>(buffer: &RawBuffer, what: &str, index: usize) -> Result<()> {
    if buffer.kind == T::KIND {
        return Ok(());
    }
    Err(Status::invalid_argument(format!(
        "{what} {index} of the custom call has elements of type {:?}, expected {:?}",
        buffer.kind,
        T::KIND
    )))
}

fn check_alignment<T>(data: *const T, what: &str, index: usize) -> Result<()> {
    if data.is_aligned() {
        return Ok(());
    }
    Err(Status::internal(format!(
        "the buffer of {what} {index} of the custom call is not aligned to {} bytes",
        align_of::<T>()
    )))
}
