//! Types of arguments and results, as exports write them.

use std::fmt;

use ifrt::{DType, Result, Shape, Status};

use super::flatbuffer::Table;
use crate::aval::Aval;

/// One dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "a dimension is known or it is not")]
pub enum Dim {
    /// A size.
    Known(i64),
    /// An expression over dimension variables, for example `2*b + 1`.
    Symbolic(String),
}

/// An element type. JAX has more than runtimes have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "closed by the schema of exports")]
pub enum ElementType {
    /// A type that runtimes have.
    Plain(DType),
    /// The type of a cotangent that is always zero; a boolean for the runtime.
    Float0,
    /// A key of the random number generator `fry`; two words for the runtime.
    KeyFry,
    /// A key of the random number generator `rbg`; four words for the runtime.
    KeyRbg,
    /// A key of the random number generator `urbg`; four words for the runtime.
    KeyUnsafeRbg,
}

/// Shape and element type of an argument or result; displayed like `float32[b,3]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(
    clippy::exhaustive_structs,
    reason = "whoever has both parts can write it down"
)]
pub struct ExportedAval {
    /// The element type.
    pub element: ElementType,
    /// The dimensions.
    pub dims: Vec<Dim>,
}

/// The element types by their number in the schema.
const ELEMENTS: [ElementType; 30] = {
    use ElementType::{Float0, KeyFry, KeyRbg, KeyUnsafeRbg, Plain};
    [
        Plain(DType::Pred),
        Plain(DType::S8),
        Plain(DType::S16),
        Plain(DType::S32),
        Plain(DType::S64),
        Plain(DType::U8),
        Plain(DType::U16),
        Plain(DType::U32),
        Plain(DType::U64),
        Plain(DType::F16),
        Plain(DType::F32),
        Plain(DType::F64),
        Plain(DType::C64),
        Plain(DType::C128),
        Plain(DType::BF16),
        Plain(DType::S4),
        Plain(DType::U4),
        Plain(DType::F8E4M3B11FNUZ),
        Plain(DType::F8E4M3FN),
        Plain(DType::F8E4M3FNUZ),
        Plain(DType::F8E5M2),
        Plain(DType::F8E5M2FNUZ),
        Float0,
        Plain(DType::F8E4M3),
        Plain(DType::F8E3M4),
        Plain(DType::F8E8M0FNU),
        Plain(DType::F4E2M1FN),
        KeyFry,
        KeyRbg,
        KeyUnsafeRbg,
    ]
};

impl ExportedAval {
    pub(super) fn read(table: &Table<'_>) -> Result<Self> {
        const SHAPED_ARRAY: i8 = 0;
        let kind = table.i8(0)?;
        if kind != SHAPED_ARRAY {
            return Err(Status::unimplemented(format!(
                "an exported function has an argument or result of the unknown kind {kind}"
            )));
        }
        let number = table.i8(2)?;
        let element = usize::try_from(number)
            .ok()
            .and_then(|number| ELEMENTS.get(number).copied())
            .ok_or_else(|| {
                Status::invalid_argument(format!(
                    "an exported function has the unknown element type {number}; it was written \
                     by a newer JAX"
                ))
            })?;
        let dims = table.strings(1)?.into_iter();
        Ok(Self {
            element,
            dims: dims
                .map(|dim| dim.parse().map_or_else(|_| Dim::Symbolic(dim), Dim::Known))
                .collect(),
        })
    }

    /// True if every dimension is known.
    pub fn is_static(&self) -> bool {
        self.dims.iter().all(|dim| matches!(dim, Dim::Known(_)))
    }

    /// What the runtime sees.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if a dimension is not known.
    pub fn to_runtime(&self) -> Result<Aval> {
        let mut dims: Vec<i64> = self
            .dims
            .iter()
            .map(|dim| match dim {
                Dim::Known(size) => Ok(*size),
                Dim::Symbolic(_) => Err(Status::invalid_argument(format!(
                    "{self} has a dimension that is not known"
                ))),
            })
            .collect::<Result<_>>()?;
        let dtype = match self.element {
            ElementType::Plain(dtype) => dtype,
            ElementType::Float0 => DType::Pred,
            ElementType::KeyFry => {
                dims.push(2);
                DType::U32
            }
            ElementType::KeyRbg | ElementType::KeyUnsafeRbg => {
                dims.push(4);
                DType::U32
            }
        };
        Ok(Aval::new(dtype, Shape::new(dims)?))
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain(dtype) => dtype.numpy_name(),
            Self::Float0 => "float0",
            Self::KeyFry => "key<fry>",
            Self::KeyRbg => "key<rbg>",
            Self::KeyUnsafeRbg => "key<urbg>",
        })
    }
}

impl fmt::Display for ExportedAval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.element)?;
        for (position, dim) in self.dims.iter().enumerate() {
            if position > 0 {
                f.write_str(",")?;
            }
            match dim {
                Dim::Known(size) => write!(f, "{size}")?,
                Dim::Symbolic(expression) => f.write_str(expression)?,
            }
        }
        f.write_str("]")
    }
}
