//! The types in the text of a module.

use super::{Output, Parameter};
use crate::dtype::DType;
use crate::memory::MemoryKind;
use crate::shape::Shape;
use crate::xla::HloSharding;

type Parsed<T> = Result<T, String>;

/// Reads `TYPE, …) -> (TYPE, …)`.
pub(super) fn parse_types(text: &str) -> Parsed<(Vec<Parameter>, Vec<Output>)> {
    let (parameters, outputs) = text
        .split_once("->")
        .ok_or_else(|| "`->` and the results are missing".to_owned())?;
    let parameters = parameters
        .trim()
        .strip_suffix(')')
        .ok_or_else(|| "`)` is missing after the parameters".to_owned())?;
    let outputs = outputs
        .trim()
        .strip_prefix('(')
        .and_then(|text| text.strip_suffix(')'))
        .ok_or_else(|| "the results do not stand in parentheses".to_owned())?;
    let parameters = split(parameters).map(|text| {
        let parsed = parse_type(text)?;
        if parsed.memory_kind.is_some() {
            return Err(format!("parameter {text:?} has a memory kind"));
        }
        Ok(Parameter {
            dtype: parsed.dtype,
            shape: parsed.shape,
            sharding: parsed.sharding,
            donated: parsed.donated,
        })
    });
    let outputs = split(outputs).map(|text| {
        let parsed = parse_type(text)?;
        if parsed.donated {
            return Err(format!("result {text:?} is donated"));
        }
        Ok(Output {
            dtype: parsed.dtype,
            shape: parsed.shape,
            sharding: parsed.sharding,
            memory_kind: parsed.memory_kind.unwrap_or_default(),
        })
    });
    Ok((
        parameters.collect::<Parsed<_>>()?,
        outputs.collect::<Parsed<_>>()?,
    ))
}

/// The parts between commas that stand outside brackets.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let parts = text.split(move |letter| {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty())
}

struct Type {
    dtype: DType,
    shape: Shape,
    sharding: HloSharding,
    donated: bool,
    memory_kind: Option<MemoryKind>,
}

fn parse_type(text: &str) -> Parsed<Type> {
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default();
    let (name, dims) = bracketed(first)?;
    let dtype = DType::ALL
        .iter()
        .find(|dtype| dtype.name() == name)
        .ok_or_else(|| format!("{name:?} is no dtype"))?;
    let mut parsed = Type {
        dtype: *dtype,
        shape: Shape::new(dims).map_err(|status| status.message().to_owned())?,
        sharding: HloSharding::Replicated,
        donated: false,
        memory_kind: None,
    };
    while let Some(word) = words.next() {
        match word {
            "replicated" => parsed.sharding = HloSharding::Replicated,
            "donated" => parsed.donated = true,
            "in" => {
                let kind = words
                    .next()
                    .ok_or_else(|| "`in` without a kind".to_owned())?;
                parsed.memory_kind = Some(MemoryKind::new(kind));
            }
            _ => match bracketed(word)? {
                ("tiled", dims) => {
                    parsed.sharding =
                        HloSharding::tile(dims).map_err(|status| status.message().to_owned())?;
                }
                _ => return Err(format!("{word:?} is no property of a type")),
            },
        }
    }
    Ok(parsed)
}

/// Reads `name[1,2]`.
fn bracketed(word: &str) -> Parsed<(&str, Vec<i64>)> {
    let malformed = || format!("{word:?} is not of the form name[1,2]");
    let (name, rest) = word.split_once('[').ok_or_else(malformed)?;
    let dims = rest.strip_suffix(']').ok_or_else(malformed)?;
    if dims.is_empty() {
        return Ok((name, Vec::new()));
    }
    let dims = dims.split(',').map(str::parse).collect::<Result<_, _>>();
    Ok((name, dims.map_err(|_| malformed())?))
}
