use super::descriptors;
use prost::Message as _;
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto};

/// A file with one message that has the given fields.
fn file(name: &str, fields: &[&str]) -> FileDescriptorProto {
    let field = |name: &&str| FieldDescriptorProto {
        name: Some((*name).to_owned()),
        ..FieldDescriptorProto::default()
    };
    FileDescriptorProto {
        name: Some(name.to_owned()),
        package: Some("p".to_owned()),
        message_type: vec![DescriptorProto {
            name: Some("M".to_owned()),
            field: fields.iter().map(field).collect(),
            ..DescriptorProto::default()
        }],
        syntax: Some("proto3".to_owned()),
        ..FileDescriptorProto::default()
    }
}

/// The names of the files found, with the fields of their first messages.
fn found(data: &[u8]) -> Vec<String> {
    let line = |(name, found): (&String, &super::Found)| {
        let fields = found.file.message_type[0]
            .field
            .iter()
            .map(FieldDescriptorProto::name);
        format!("{name}: {}", fields.collect::<Vec<_>>().join(" "))
    };
    descriptors(data).iter().map(line).collect()
}

#[test]
fn finds_descriptors_among_other_bytes() {
    let mut data = b"\x7fELF\x0a\x0a\x0a".to_vec();
    data.extend(file("a/b.proto", &["x", "y"]).encode_to_vec());
    data.extend(b"\x00\x0a\x05hello\x0a");
    data.extend(file("c-d_2.proto", &["z"]).encode_to_vec());
    assert_eq!(found(&data), ["a/b.proto: x y", "c-d_2.proto: z"]);
}

#[test]
fn tells_neighbors_apart() {
    let mut data = file("a.proto", &["x"]).encode_to_vec();
    data.extend(file("b.proto", &["y"]).encode_to_vec());
    assert_eq!(found(&data), ["a.proto: x", "b.proto: y"]);
}

#[test]
fn the_longest_of_a_name_counts() {
    let (long, short) = (file("a.proto", &["x", "y"]), file("a.proto", &["z"]));
    for order in [[&long, &short], [&short, &long]] {
        let data: Vec<u8> = order.iter().flat_map(|file| file.encode_to_vec()).collect();
        assert_eq!(found(&data), ["a.proto: x y"]);
    }
}

#[test]
fn lookalikes_are_left_out() {
    for data in [
        b"".as_slice(),
        b"\x0a",
        b"\x0a\x07a.proto",                  // a name and nothing else
        b"\x0a\x07a.proto\x12\x01p",         // describes nothing
        b"\x0a\x08a.proto\x22\x03\x0a\x01M", // a wrong length
        b"\x0a\x07a proto\x22\x03\x0a\x01M", // not a name
        b"\x0a\x07a.proto\x22\x7f\x0a\x01M", // a message longer than the data
        b"\x0a\x07a.proto\x22\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x0a\x01M",
        b"\x0a\x07a.proto\x22\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x0a\xff\x01a.proto\x22\x03\x0a\x01M",
    ] {
        assert_eq!(found(data), [""; 0], "{data:x?}");
    }
    assert_eq!(found(b"\x0a\x07a.proto\x22\x03\x0a\x01M"), ["a.proto: "]);
}

#[test]
fn damaged_bytes_never_panic() {
    let whole = file("a.proto", &["x", "y"]).encode_to_vec();
    for end in 0..whole.len() {
        descriptors(&whole[..end]);
    }
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << bit;
            descriptors(&damaged);
        }
    }
}

#[test]
fn an_edition_tells_the_presence_of_fields() {
    let mut edition = file("a.proto", &["x"]);
    edition.syntax = Some("editions".to_owned());
    let explicit = edition.encode_to_vec();
    assert!(!descriptors(&explicit)["a.proto"].implicit_presence);
    // options (8) { features (50) { field_presence (1): IMPLICIT } }
    let mut implicit = explicit;
    implicit.extend(b"\x42\x05\x92\x03\x02\x08\x02");
    // edition (14): 2023
    implicit.extend(b"\x70\xe8\x07");
    let found = descriptors(&implicit);
    assert!(found["a.proto"].implicit_presence);
    assert_eq!(found["a.proto"].file.syntax(), "editions");
}
