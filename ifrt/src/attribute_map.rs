//! [`AttributeMap`]: named values of clients, devices and options.
//!
//! # Mirrors
//! `xla/python/ifrt/attribute_map.h`.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;

use crate::status::{Result, Status};

/// One attribute.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::exhaustive_enums, reason = "closed by AttributeMapProto")]
pub enum AttributeValue {
    /// A byte string, most often text.
    String(Bytes),
    /// A boolean.
    Bool(bool),
    /// A 64-bit integer.
    Int64(i64),
    /// A list of 64-bit integers.
    Int64List(Vec<i64>),
    /// A single precision number.
    Float(f32),
}

macro_rules! from {
    ($($variant:ident: $type:ty;)*) => {
        $(impl From<$type> for AttributeValue {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        })*
    };
}

from! {
    String: String;
    String: &'static str;
    String: Bytes;
    Bool: bool;
    Int64: i64;
    Int64List: Vec<i64>;
    Float: f32;
}

/// Named values in the order of their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttributeMap {
    values: BTreeMap<String, AttributeValue>,
}

impl AttributeMap {
    /// An empty map.
    pub const fn new() -> Self {
        Self {
            values: BTreeMap::new(),
        }
    }

    /// Sets or replaces an attribute.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<AttributeValue>) {
        self.values.insert(key.into(), value.into());
    }

    /// The attribute under `key`.
    ///
    /// # Errors
    /// NOT_FOUND `Key not found: KEY`.
    pub fn get(&self, key: &str) -> Result<&AttributeValue> {
        self.values
            .get(key)
            .ok_or_else(|| Status::not_found(format!("Key not found: {key}")))
    }

    /// The text under `key`.
    ///
    /// # Errors
    /// NOT_FOUND without such a key; INVALID_ARGUMENT if the value is of another type or no UTF-8.
    pub fn get_str(&self, key: &str) -> Result<&str> {
        match self.get(key)? {
            AttributeValue::String(value) => std::str::from_utf8(value).ok(),
            _ => None,
        }
        .ok_or_else(|| mismatch(key))
    }

    /// The bytes under `key`.
    ///
    /// # Errors
    /// NOT_FOUND without such a key; INVALID_ARGUMENT if the value is of another type.
    pub fn get_bytes(&self, key: &str) -> Result<&Bytes> {
        match self.get(key)? {
            AttributeValue::String(value) => Ok(value),
            _ => Err(mismatch(key)),
        }
    }

    /// The boolean under `key`.
    ///
    /// # Errors
    /// NOT_FOUND without such a key; INVALID_ARGUMENT if the value is of another type.
    pub fn get_bool(&self, key: &str) -> Result<bool> {
        match self.get(key)? {
            AttributeValue::Bool(value) => Ok(*value),
            _ => Err(mismatch(key)),
        }
    }

    /// The integer under `key`.
    ///
    /// # Errors
    /// NOT_FOUND without such a key; INVALID_ARGUMENT if the value is of another type.
    pub fn get_i64(&self, key: &str) -> Result<i64> {
        match self.get(key)? {
            AttributeValue::Int64(value) => Ok(*value),
            _ => Err(mismatch(key)),
        }
    }

    /// The integers under `key`.
    ///
    /// # Errors
    /// NOT_FOUND without such a key; INVALID_ARGUMENT if the value is of another type.
    pub fn get_i64_list(&self, key: &str) -> Result<&[i64]> {
        match self.get(key)? {
            AttributeValue::Int64List(value) => Ok(value),
            _ => Err(mismatch(key)),
        }
    }

    /// The single precision number under `key`.
    ///
    /// # Errors
    /// NOT_FOUND without such a key; INVALID_ARGUMENT if the value is of another type.
    pub fn get_f32(&self, key: &str) -> Result<f32> {
        match self.get(key)? {
            AttributeValue::Float(value) => Ok(*value),
            _ => Err(mismatch(key)),
        }
    }

    /// All attributes, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &AttributeValue)> {
        self.values.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The number of attributes.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True without attributes.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

impl<K: Into<String>, V: Into<AttributeValue>> FromIterator<(K, V)> for AttributeMap {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(values: I) -> Self {
        Self {
            values: values
                .into_iter()
                .map(|(k, v)| (k.into(), v.into()))
                .collect(),
        }
    }
}

/// What a text shows of a long value.
const MAX_STRING_BYTES: usize = 64;
const MAX_LIST_LEN: usize = 16;

/// The form of the reference; long strings and lists are cut.
impl fmt::Display for AttributeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String(value) => {
                let shown = &value[..value.len().min(MAX_STRING_BYTES)];
                let rest = if shown.len() < value.len() { "..." } else { "" };
                write!(f, "\"{}{rest}\"", String::from_utf8_lossy(shown))
            }
            Self::Bool(value) => value.fmt(f),
            Self::Int64(value) => value.fmt(f),
            Self::Int64List(value) => {
                let shown: Vec<String> = value
                    .iter()
                    .take(MAX_LIST_LEN)
                    .map(ToString::to_string)
                    .collect();
                let rest = if shown.len() < value.len() { "..." } else { "" };
                write!(f, "[{}{rest}]", shown.join(", "))
            }
            Self::Float(value) => value.fmt(f),
        }
    }
}

/// `AttributeMap([k=1, l=[1, 2]])`, the form of the reference, by name.
impl fmt::Display for AttributeMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = self.iter().map(|(key, value)| format!("{key}={value}"));
        let values: Vec<String> = values.collect();
        write!(f, "AttributeMap([{}])", values.join(", "))
    }
}

fn mismatch(key: &str) -> Status {
    Status::invalid_argument(format!("Value type mismatch for key: {key}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_access() {
        let mut map = AttributeMap::new();
        map.set("s", "text");
        map.set("b", true);
        map.set("i", 7_i64);
        map.set("l", vec![1_i64, 2]);
        map.set("f", 1.5_f32);
        assert_eq!(map.get_str("s").unwrap(), "text");
        assert!(map.get_bool("b").unwrap());
        assert_eq!(map.get_i64("i").unwrap(), 7);
        assert_eq!(
            map.get_str("f").unwrap_err().message(),
            "Value type mismatch for key: f"
        );
        assert_eq!(map.get_i64("x").unwrap_err().message(), "Key not found: x");
        assert_eq!(map.iter().map(|(key, _)| key).collect::<String>(), "bfils");
    }
}
