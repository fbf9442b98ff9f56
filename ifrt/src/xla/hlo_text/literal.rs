//! Constants.

use std::fmt::{self, Write as _};

use crate::dtype::DType;
use crate::proto::xla::LiteralProto;

/// Constants with more elements are not printed, as in XLA.
const MAX_ELEMENTS: usize = 10;

/// Prints a constant: a scalar, nested braces, or `{...}` for a large one.
pub(super) fn print(out: &mut String, literal: &LiteralProto) -> fmt::Result {
    let Some(shape) = &literal.shape else {
        return Ok(());
    };
    let count = shape
        .dimensions
        .iter()
        .try_fold(1_usize, |n, dim| n.checked_mul(usize::try_from(*dim).ok()?));
    let elements = match count {
        Some(count) if count <= MAX_ELEMENTS => elements(literal, shape.element_type, count),
        _ => None,
    };
    match elements {
        Some(elements) => print_nested(out, &shape.dimensions, &elements, false),
        None => write!(out, "{{...}}"),
    }
}

fn print_nested(out: &mut String, dims: &[i64], elements: &[String], is_row: bool) -> fmt::Result {
    match dims {
        [] => elements
            .first()
            .map_or(Ok(()), |element| out.write_str(element)),
        [_] if is_row => write!(out, "{{ {} }}", elements.join(", ")),
        [_] => write!(out, "{{{}}}", elements.join(", ")),
        [dim, rest @ ..] => {
            let rows = usize::try_from(*dim).unwrap_or(0);
            let width = elements.len().checked_div(rows).unwrap_or(0);
            out.push_str("{ ");
            for row in 0..rows {
                if row > 0 {
                    out.push_str(", ");
                }
                let row = elements
                    .get(row * width..(row + 1) * width)
                    .unwrap_or_default();
                print_nested(out, rest, row, true)?;
            }
            out.write_str(" }")
        }
    }
}

/// The elements as text; `None` if the literal does not hold that many, or is of a kind that has
/// no short form.
fn elements(literal: &LiteralProto, element_type: i32, count: usize) -> Option<Vec<String>> {
    fn text<T: ToString>(values: &[T]) -> Vec<String> {
        values.iter().map(ToString::to_string).collect()
    }
    fn bytes(data: &[u8], signed: bool) -> Vec<String> {
        data.iter()
            .map(|b| {
                if signed {
                    b.cast_signed().to_string()
                } else {
                    b.to_string()
                }
            })
            .collect()
    }
    fn words(data: &[u8], text: impl Fn(u16) -> String) -> Vec<String> {
        data.as_chunks::<2>()
            .0
            .iter()
            .map(|pair| text(u16::from_le_bytes(*pair)))
            .collect()
    }
    let elements = match DType::from_primitive_type(element_type).ok()? {
        DType::Pred => text(&literal.preds),
        DType::S8 => bytes(&literal.s8s, true),
        DType::U8 => bytes(&literal.u8s, false),
        DType::S16 => words(&literal.s16s, |word| word.cast_signed().to_string()),
        DType::U16 => words(&literal.u16s, |word| word.to_string()),
        DType::S32 => text(&literal.s32s),
        DType::S64 => text(&literal.s64s),
        DType::U32 => text(&literal.u32s),
        DType::U64 => text(&literal.u64s),
        DType::F32 => literal.f32s.iter().map(float).collect(),
        DType::F64 => literal.f64s.iter().map(float).collect(),
        // A bfloat16 is the upper half of a single.
        DType::BF16 => words(&literal.bf16s, |word| {
            float(&f32::from_bits(u32::from(word) << 16))
        }),
        DType::C64 => pairs(&literal.c64s),
        DType::C128 => pairs(&literal.c128s),
        _ => return None,
    };
    (elements.len() == count).then_some(elements)
}

fn pairs<F: fmt::Display + fmt::LowerExp + fmt::Debug>(parts: &[F]) -> Vec<String> {
    parts
        .as_chunks::<2>()
        .0
        .iter()
        .map(|[real, imaginary]| format!("({}, {})", float(real), float(imaginary)))
        .collect()
}

/// The shortest text that reads back as the same number, with an exponent where C would print one.
fn float<F: fmt::Display + fmt::LowerExp + fmt::Debug>(value: &F) -> String {
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        // Infinities and NaN.
        return scientific.to_lowercase();
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let precision = digits.bytes().filter(u8::is_ascii_digit).count().max(6);
    if exponent < -4 || usize::try_from(exponent).is_ok_and(|exponent| exponent >= precision) {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{digits}e{sign}{:02}", exponent.abs())
    } else {
        format!("{value}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_in_c() {
        for (value, text) in [
            (0.0_f32, "0"),
            (-1.0, "-1"),
            (0.999_999_94, "0.99999994"),
            (1e-7, "1e-07"),
            (1e6, "1e+06"),
            (123_456.0, "123456"),
            (f32::INFINITY, "inf"),
            (f32::NEG_INFINITY, "-inf"),
            (f32::NAN, "nan"),
            (1.5e30, "1.5e+30"),
        ] {
            assert_eq!(float(&value), text);
        }
    }
}
