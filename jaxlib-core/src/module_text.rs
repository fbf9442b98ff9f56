//! What can be learned from a StableHLO module in text form without a compiler: the types of the
//! parameters of `main`, which of them may be donated, and the number of partitions.
//!
//! A module in bytecode, or one whose text is written in a way that is not understood here, is no
//! error: then less is checked before a call.

use std::ops::Range;

use ifrt::{DType, Shape};

use crate::aval::Aval;

/// The parameters of `main`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    pub(crate) parameters: Vec<Parameter>,
}

/// One parameter of `main`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    /// Its type; `None` for dynamic dimensions and types that are not arrays.
    pub(crate) aval: Option<Aval>,
    /// True if the module lets a run consume it.
    pub(crate) is_donated: bool,
    /// Where its attributes stand in the text, without the braces.
    attributes: Option<Range<usize>>,
    /// Where its type ends in the text.
    type_end: usize,
}

/// The text of a module; `None` for bytecode.
pub(crate) fn text(module: &[u8]) -> Option<&str> {
    const BYTECODE_MAGIC: &[u8] = b"ML\xefR";
    if module.starts_with(BYTECODE_MAGIC) {
        return None;
    }
    std::str::from_utf8(module).ok()
}

/// The number of partitions that the module says it is for.
pub(crate) fn num_partitions(text: &str) -> Option<usize> {
    let (_, rest) = text.split_once("mhlo.num_partitions")?;
    let number = rest.trim_start().strip_prefix('=')?.trim_start();
    let end = number.find(|c: char| !c.is_ascii_digit())?;
    number[..end].parse().ok()
}

impl Signature {
    /// Reads the parameters of `main`; `None` if they cannot be understood.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let open = text.find("@main(")? + "@main".len();
        let close = closing(text, open)?;
        let mut parameters = Vec::new();
        for range in split(text, open + 1..close)? {
            parameters.push(parameter(text, range)?);
        }
        Some(Self { parameters })
    }

    /// The text with the given parameters marked so that a run may consume them.
    pub(crate) fn mark_donated(&self, text: &str, indices: &[usize]) -> String {
        let mut marked = text.to_owned();
        for (index, parameter) in self.parameters.iter().enumerate().rev() {
            if !indices.contains(&index) || parameter.is_donated {
                continue;
            }
            match &parameter.attributes {
                Some(range) if range.is_empty() => {
                    marked.insert_str(range.start, "jax.buffer_donor = true");
                }
                Some(range) => marked.insert_str(range.start, "jax.buffer_donor = true, "),
                None => marked.insert_str(parameter.type_end, " {jax.buffer_donor = true}"),
            }
        }
        marked
    }
}

/// The position of the bracket that closes the one at `open`. Brackets in strings do not count.
fn closing(text: &str, open: usize) -> Option<usize> {
    let mut expected = Vec::new();
    let mut scanner = Scanner::new(text, open);
    while let Some((position, byte)) = scanner.next_outside_strings() {
        match byte {
            b'(' => expected.push(b')'),
            b'[' => expected.push(b']'),
            b'{' => expected.push(b'}'),
            b'<' => expected.push(b'>'),
            b'>' if is_arrow(text, position) => {}
            b')' | b']' | b'}' | b'>' if expected.pop() != Some(byte) => return None,
            _ => {}
        }
        if expected.is_empty() {
            return Some(position);
        }
    }
    None
}

fn is_arrow(text: &str, position: usize) -> bool {
    position > 0 && text.as_bytes().get(position - 1) == Some(&b'-')
}

/// The parts of a range between the commas that stand outside brackets and strings.
fn split(text: &str, range: Range<usize>) -> Option<Vec<Range<usize>>> {
    let mut parts = Vec::new();
    let mut start = range.start;
    let mut position = range.start;
    while position < range.end {
        match text.as_bytes().get(position)? {
            b'(' | b'[' | b'{' | b'<' => position = closing(text, position)?,
            b'"' => position = Scanner::new(text, position).end_of_string()?,
            b',' => {
                parts.push(start..position);
                start = position + 1;
            }
            _ => {}
        }
        position += 1;
    }
    if !text.get(start..range.end)?.trim().is_empty() || !parts.is_empty() {
        parts.push(start..range.end);
    }
    Some(parts)
}

fn parameter(text: &str, range: Range<usize>) -> Option<Parameter> {
    let colon = range.start + text.get(range.clone())?.find(':')?;
    let rest = text.get(colon + 1..range.end)?;
    let type_start = colon + 1 + (rest.len() - rest.trim_start().len());
    let after_name = type_start
        + text
            .get(type_start..range.end)?
            .find(['<', ' ', '{', '\n'])
            .unwrap_or(range.end - type_start);
    let type_end = if text.as_bytes().get(after_name) == Some(&b'<') {
        closing(text, after_name)? + 1
    } else {
        after_name
    };
    let rest = text.get(type_end..range.end)?;
    let attributes = match rest.trim_start().starts_with('{') {
        true => {
            let open = type_end + rest.find('{')?;
            Some(open + 1..closing(text, open)?)
        }
        false => None,
    };
    let words = attributes.clone().and_then(|range| text.get(range));
    let is_donated = words.is_some_and(|words| {
        words.contains("tf.aliasing_output") || words.contains("jax.buffer_donor = true")
    });
    Some(Parameter {
        aval: aval(text.get(type_start..type_end)?),
        is_donated,
        attributes,
        type_end,
    })
}

/// Reads `tensor<2x3xf32>`.
fn aval(text: &str) -> Option<Aval> {
    if text == "!stablehlo.token" {
        return Some(Aval::new(DType::Token, Shape::scalar()));
    }
    let inner = text.strip_prefix("tensor<")?.strip_suffix('>')?;
    let inner = inner.split_once(", #").map_or(inner, |(inner, _)| inner);
    let mut dims = Vec::new();
    let mut rest = inner;
    while rest.starts_with(|c: char| c.is_ascii_digit()) {
        let (dim, tail) = rest.split_once('x')?;
        dims.push(dim.parse().ok()?);
        rest = tail;
    }
    Some(Aval::new(element_type(rest)?, Shape::new(dims).ok()?))
}

fn element_type(name: &str) -> Option<DType> {
    let xla_name = match name {
        "i1" => "pred".to_owned(),
        "complex<f32>" => "c64".to_owned(),
        "complex<f64>" => "c128".to_owned(),
        other => match (other.strip_prefix("ui"), other.strip_prefix('i')) {
            (Some(bits), _) => format!("u{bits}"),
            (None, Some(bits)) => format!("s{bits}"),
            (None, None) => other.to_ascii_lowercase(),
        },
    };
    DType::ALL
        .iter()
        .copied()
        .find(|dtype| dtype.name() == xla_name && dtype.bit_size().is_some())
}

/// Walks over text and skips strings.
struct Scanner<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Scanner<'a> {
    const fn new(text: &'a str, position: usize) -> Self {
        Self {
            bytes: text.as_bytes(),
            position,
        }
    }

    fn next_outside_strings(&mut self) -> Option<(usize, u8)> {
        let position = self.position;
        let byte = *self.bytes.get(position)?;
        if byte == b'"' {
            self.end_of_string()?;
        }
        self.position += 1;
        Some((position, byte))
    }

    /// Goes to the quote that closes the string at the present position.
    fn end_of_string(&mut self) -> Option<usize> {
        loop {
            self.position += 1;
            match self.bytes.get(self.position)? {
                b'\\' => self.position += 1,
                b'"' => return Some(self.position),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
