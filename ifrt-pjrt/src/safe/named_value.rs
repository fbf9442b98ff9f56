//! Named values: create options to a plugin, attributes from it.

use std::marker::PhantomData;

use bytes::Bytes;
use ifrt::attribute_map::{AttributeMap, AttributeValue};

use super::bytes::{lent, lent_list, lent_text};
use crate::sys::client::{NamedValue, NamedValueUnion, named_value_type as kind};
use crate::sys::{CBool, Sized0};

/// Attributes in the form that C takes. Borrows names and values.
///
/// The type numbers come from [`AttributeValue`], so an unknown one, on which plugins abort, cannot
/// be made.
pub(crate) struct NamedValues<'a> {
    values: Vec<NamedValue>,
    source: PhantomData<&'a AttributeMap>,
}

impl<'a> NamedValues<'a> {
    pub(crate) fn new(attributes: &'a AttributeMap) -> Self {
        let values = attributes
            .iter()
            .map(|(name, value)| named_value(name, value))
            .collect();
        Self {
            values,
            source: PhantomData,
        }
    }

    pub(crate) fn as_ptr(&self) -> *const NamedValue {
        self.values.as_ptr()
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }
}

fn named_value(name: &str, value: &AttributeValue) -> NamedValue {
    let (type_, value, value_size) = match value {
        AttributeValue::String(text) => (
            kind::STRING,
            NamedValueUnion {
                string_value: text.as_ptr(),
            },
            text.len(),
        ),
        AttributeValue::Int64(value) => (
            kind::INT64,
            NamedValueUnion {
                int64_value: *value,
            },
            1,
        ),
        AttributeValue::Int64List(list) => (
            kind::INT64_LIST,
            NamedValueUnion {
                int64_array_value: list.as_ptr(),
            },
            list.len(),
        ),
        AttributeValue::Float(value) => (
            kind::FLOAT,
            NamedValueUnion {
                float_value: *value,
            },
            1,
        ),
        AttributeValue::Bool(value) => (
            kind::BOOL,
            NamedValueUnion {
                bool_value: CBool::from(*value),
            },
            1,
        ),
    };
    NamedValue {
        struct_size: NamedValue::STRUCT_SIZE,
        extension_start: std::ptr::null_mut(),
        name: name.as_ptr(),
        name_size: name.len(),
        type_,
        value,
        value_size,
    }
}

/// Copies a list of attributes that a plugin lends. Values of unknown types are left out.
///
/// # Safety
/// S9 for the list, and for each value the field that its type names.
pub(crate) unsafe fn read(list: *const NamedValue, len: usize) -> AttributeMap {
    let mut attributes = AttributeMap::new();
    // SAFETY: S9, as promised by the caller.
    for value in unsafe { lent_list(list, len) } {
        // SAFETY: S9, as promised by the caller.
        let name = unsafe { lent_text(value.name, value.name_size) };
        // SAFETY: S9, as promised by the caller.
        match unsafe { read_value(value) } {
            Some(value) => attributes.set(name, value),
            None => tracing::debug!(name, type_ = value.type_, "unknown type of an attribute"),
        }
    }
    attributes
}

/// # Safety
/// S9 for the field that the type of the value names.
unsafe fn read_value(value: &NamedValue) -> Option<AttributeValue> {
    Some(match value.type_ {
        kind::STRING => {
            // SAFETY: S9; the type names this field.
            let pointer = unsafe { value.value.string_value };
            // SAFETY: S9, as promised by the caller.
            let bytes = unsafe { lent(pointer, value.value_size) };
            AttributeValue::String(Bytes::copy_from_slice(bytes))
        }
        // SAFETY: S9; the type names this field.
        kind::INT64 => AttributeValue::Int64(unsafe { value.value.int64_value }),
        kind::INT64_LIST => {
            // SAFETY: S9; the type names this field.
            let pointer = unsafe { value.value.int64_array_value };
            // SAFETY: S9, as promised by the caller.
            AttributeValue::Int64List(unsafe { lent_list(pointer, value.value_size) }.to_vec())
        }
        // SAFETY: S9; the type names this field.
        kind::FLOAT => AttributeValue::Float(unsafe { value.value.float_value }),
        // SAFETY: S9; the type names this field.
        kind::BOOL => AttributeValue::Bool(unsafe { value.value.bool_value }.get()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_survive_the_round_trip() {
        let attributes: AttributeMap = [
            ("text", AttributeValue::from("value")),
            ("empty", AttributeValue::from("")),
            ("number", AttributeValue::from(-7_i64)),
            ("list", AttributeValue::from(vec![1_i64, -2, 3])),
            ("float", AttributeValue::from(1.5_f32)),
            ("yes", AttributeValue::from(true)),
            ("no", AttributeValue::from(false)),
        ]
        .into_iter()
        .collect();
        let values = NamedValues::new(&attributes);
        // SAFETY: the list borrows from `attributes`, which is alive.
        let read = unsafe { read(values.as_ptr(), values.len()) };
        assert_eq!(read, attributes);
    }

    #[test]
    fn unknown_types_are_left_out() {
        let attributes: AttributeMap = [("a", 1_i64), ("b", 2)].into_iter().collect();
        let mut values = NamedValues::new(&attributes);
        values.values[0].type_ = 99;
        // SAFETY: the list borrows from `attributes`, which is alive.
        let read = unsafe { read(values.as_ptr(), values.len()) };
        assert_eq!(read, [("b", 2_i64)].into_iter().collect());
    }

    #[test]
    fn nothing_is_read_from_null() {
        // SAFETY: NULL is read as an empty list.
        assert!(unsafe { read(std::ptr::null(), 3) }.is_empty());
    }
}
