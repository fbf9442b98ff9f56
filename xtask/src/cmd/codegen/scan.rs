//! Finds the serialized protocol buffer descriptors inside a compiled library.
//!
//! Every C++ program that uses generated messages carries one serialized `FileDescriptorProto` per
//! `.proto` file, as plain bytes among its constants. So the library tells which messages it really
//! speaks, whatever its sources or documents say.

#[cfg(test)]
mod tests;

use prost::Message as _;
use prost_types::FileDescriptorProto;
use std::collections::BTreeMap;
use std::io::BufRead as _;

/// The tag of the first field of a descriptor, the name of the file.
const NAME_TAG: u8 = 0x0a;

/// How the name of a file ends.
const NAME_END: &[u8] = b".proto";

/// A descriptor as a library carries it.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The descriptor.
    pub(super) file: FileDescriptorProto,
    /// Whether the file says that fields without `optional` have no presence. Only files of an
    /// edition say so; `prost-types` is older than editions and drops it.
    pub(super) implicit_presence: bool,
}

/// The descriptors in `data`, by the name of their files.
///
/// A descriptor has no marker, so this looks for its first field, a name that ends in `.proto`, and
/// takes as many fields of a descriptor as follow. Bytes that only look like one fail to decode or
/// describe nothing, and are left out. Of several descriptors with one name the longest counts.
pub(super) fn descriptors(data: &[u8]) -> BTreeMap<String, Found> {
    let mut found: BTreeMap<String, (usize, Found)> = BTreeMap::new();
    let mut rest = data;
    // `skip_until` stops behind the next tag; it searches fast even in an unoptimized build.
    while let Ok(1..) = rest.skip_until(NAME_TAG) {
        let start = data.len() - rest.len() - 1;
        let Some(bytes) = candidate(&data[start..]) else {
            continue;
        };
        let Some(descriptor) = decode(bytes) else {
            continue;
        };
        let name = descriptor.file.name().to_owned();
        if found.get(&name).is_none_or(|(len, _)| *len <= bytes.len()) {
            found.insert(name, (bytes.len(), descriptor));
        }
    }
    found
        .into_iter()
        .map(|(name, (_, descriptor))| (name, descriptor))
        .collect()
}

/// The bytes of the descriptor that `data` may begin with.
fn candidate(data: &[u8]) -> Option<&[u8]> {
    let (&[tag, len], rest) = data.split_first_chunk()?;
    let name = rest.get(..usize::from(len))?;
    let is_name_byte = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./".contains(byte);
    // Longer names would need a length of two bytes. No file has one.
    if tag != NAME_TAG || len > 0x7f || !name.ends_with(NAME_END) || !name.iter().all(is_name_byte)
    {
        return None;
    }
    let mut pos = 2 + name.len();
    while let Some(next) = field_end(data, pos) {
        pos = next;
    }
    data.get(..pos)
}

/// Where the field at `pos` ends, if it is one of a descriptor other than the name.
fn field_end(data: &[u8], pos: usize) -> Option<usize> {
    let (tag, pos) = varint(data, pos)?;
    let end = match (tag >> 3, tag & 7) {
        // package, dependency, messages, enums, services, extensions, options, source, syntax
        (2..=9 | 12, 2) => {
            let (len, pos) = varint(data, pos)?;
            pos.checked_add(usize::try_from(len).ok()?)?
        }
        // public and weak dependencies, edition
        (10 | 11 | 14, 0) => varint(data, pos)?.1,
        _ => return None,
    };
    (end <= data.len()).then_some(end)
}

/// The variable-length integer at `pos`, and where it ends.
fn varint(data: &[u8], mut pos: usize) -> Option<(u64, usize)> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *data.get(pos)?;
        pos += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value, pos));
        }
    }
    None
}

fn decode(bytes: &[u8]) -> Option<Found> {
    let file = FileDescriptorProto::decode(bytes).ok()?;
    if file.message_type.is_empty() && file.enum_type.is_empty() && file.service.is_empty() {
        return None;
    }
    let features = EditionView::decode(bytes)
        .ok()?
        .options
        .and_then(|options| options.features);
    let implicit_presence = features.and_then(|features| features.field_presence) == Some(IMPLICIT);
    Some(Found {
        file,
        implicit_presence,
    })
}

/// `google.protobuf.FeatureSet.FieldPresence.IMPLICIT`.
const IMPLICIT: i32 = 2;

/// The part of a `FileDescriptorProto` that tells the presence of fields in a file of an edition.
#[derive(Clone, PartialEq, prost::Message)]
struct EditionView {
    #[prost(message, optional, tag = "8")]
    options: Option<OptionsView>,
}

/// Part of `google.protobuf.FileOptions`.
#[derive(Clone, PartialEq, prost::Message)]
struct OptionsView {
    #[prost(message, optional, tag = "50")]
    features: Option<FeaturesView>,
}

/// Part of `google.protobuf.FeatureSet`.
#[derive(Clone, PartialEq, prost::Message)]
struct FeaturesView {
    #[prost(int32, optional, tag = "1")]
    field_presence: Option<i32>,
}
