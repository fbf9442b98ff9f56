//! Descriptors in a form that can be compared: what reaches the wire, or the code, and no more.
//!
//! Left out on purpose: the order of declarations, reserved ranges, deprecation and other options,
//! and the synthetic messages and groups by which descriptors express maps and `optional`.

use super::scan::Found;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    ServiceDescriptorProto,
};
use std::collections::BTreeMap;
use std::fmt;

/// What one `.proto` file defines. All names are full names.
#[derive(Clone, Debug, Default)]
pub(super) struct File {
    pub(super) package: String,
    /// The fields of all messages, by the name of the message and their own.
    pub(super) messages: BTreeMap<String, BTreeMap<String, Field>>,
    pub(super) enums: BTreeMap<String, BTreeMap<String, i32>>,
    /// The methods of all services, with their types as text.
    pub(super) methods: BTreeMap<String, String>,
}

/// A field, without its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) number: i32,
    /// As a definition would write it: `int64`, `.xla.OpSharding`, `map<string, bytes>`.
    pub(super) kind: String,
    pub(super) label: FieldLabel,
    /// The group of which only one field is set.
    pub(super) oneof: Option<String>,
}

/// How often a field occurs, and how that looks on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldLabel {
    /// One value; the default value is not written.
    Single,
    /// One value, or none.
    Optional,
    /// Any number of values, each with its own tag.
    Repeated,
    /// Any number of numbers behind one tag.
    Packed,
    /// Entries with distinct keys.
    Map,
}

impl fmt::Display for FieldLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Single => "single",
            Self::Optional => "optional",
            Self::Repeated => "repeated",
            Self::Packed => "repeated, packed",
            Self::Map => "map",
        })
    }
}

/// How the syntax of a file decides what its fields leave unsaid.
#[derive(Clone, Copy)]
struct Rules {
    /// Single fields of a plain type have presence.
    explicit_presence: bool,
    /// Repeated numbers stand behind one tag.
    packed: bool,
}

/// What a compiled file of ours defines.
pub(super) fn of_ours(file: &FileDescriptorProto) -> File {
    of_found(&Found {
        file: file.clone(),
        implicit_presence: false,
    })
}

/// What a file of a library defines.
pub(super) fn of_found(found: &Found) -> File {
    let file = &found.file;
    let rules = match file.syntax() {
        "proto3" => Rules {
            explicit_presence: false,
            packed: true,
        },
        "editions" => Rules {
            explicit_presence: !found.implicit_presence,
            packed: true,
        },
        _ => Rules {
            explicit_presence: true,
            packed: false,
        },
    };
    let mut out = File {
        package: file.package().to_owned(),
        ..File::default()
    };
    for message in &file.message_type {
        add_message(&mut out, file.package(), message, rules);
    }
    for item in &file.enum_type {
        add_enum(&mut out, file.package(), item);
    }
    for service in &file.service {
        add_service(&mut out, file.package(), service);
    }
    out
}

fn add_message(out: &mut File, scope: &str, message: &DescriptorProto, rules: Rules) {
    let path = format!("{scope}.{}", message.name());
    let fields = message.field.iter().map(|field| {
        (
            field.name().to_owned(),
            normalized(&path, message, field, rules),
        )
    });
    out.messages.insert(path.clone(), fields.collect());
    for nested in &message.nested_type {
        if !nested
            .options
            .as_ref()
            .is_some_and(|options| options.map_entry())
        {
            add_message(out, &path, nested, rules);
        }
    }
    for item in &message.enum_type {
        add_enum(out, &path, item);
    }
}

fn add_enum(out: &mut File, scope: &str, item: &EnumDescriptorProto) {
    let values = item
        .value
        .iter()
        .map(|value| (value.name().to_owned(), value.number()));
    out.enums
        .insert(format!("{scope}.{}", item.name()), values.collect());
}

fn add_service(out: &mut File, scope: &str, service: &ServiceDescriptorProto) {
    for method in &service.method {
        let stream = |yes| if yes { "stream " } else { "" };
        out.methods.insert(
            format!("{scope}.{}.{}", service.name(), method.name()),
            format!(
                "({}{}) returns ({}{})",
                stream(method.client_streaming()),
                method.input_type(),
                stream(method.server_streaming()),
                method.output_type()
            ),
        );
    }
}

fn normalized(
    path: &str,
    message: &DescriptorProto,
    field: &FieldDescriptorProto,
    rules: Rules,
) -> Field {
    let entry = message.nested_type.iter().find(|nested| {
        nested
            .options
            .as_ref()
            .is_some_and(|options| options.map_entry())
            && field.type_name() == format!(".{path}.{}", nested.name())
    });
    let (kind, label) = match entry {
        Some(entry) => {
            let of = |number| {
                let part = entry.field.iter().find(|part| part.number() == number);
                part.map_or_else(String::new, kind_name)
            };
            (format!("map<{}, {}>", of(1), of(2)), FieldLabel::Map)
        }
        None => (kind_name(field), label(field, rules)),
    };
    let oneof = field
        .oneof_index
        .filter(|_| !field.proto3_optional())
        .and_then(|index| {
            let group = message.oneof_decl.get(usize::try_from(index).ok()?)?;
            Some(group.name().to_owned())
        });
    Field {
        number: field.number(),
        kind,
        label,
        oneof,
    }
}

fn label(field: &FieldDescriptorProto, rules: Rules) -> FieldLabel {
    let plain = !matches!(field.r#type(), Type::Message | Type::Group);
    if field.label() == Label::Repeated {
        let number = plain && !matches!(field.r#type(), Type::String | Type::Bytes);
        let stated = field.options.as_ref().and_then(|options| options.packed);
        if number && stated.unwrap_or(rules.packed) {
            FieldLabel::Packed
        } else {
            FieldLabel::Repeated
        }
    } else if field.proto3_optional()
        || (rules.explicit_presence && plain && field.oneof_index.is_none())
    {
        FieldLabel::Optional
    } else {
        FieldLabel::Single
    }
}

/// The type of a field as a definition would write it.
fn kind_name(field: &FieldDescriptorProto) -> String {
    match field.r#type() {
        Type::Message | Type::Enum | Type::Group => field.type_name().to_owned(),
        other => other
            .as_str_name()
            .trim_start_matches("TYPE_")
            .to_ascii_lowercase(),
    }
}
