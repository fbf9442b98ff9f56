use super::super::{compile, schema};
use super::{Files, compare};

/// What both sides define unless a test edits one of them.
const TEXT: &str = r#"
syntax = "proto3";
package p;

enum Color {
  NONE = 0;
  RED = 1;
  BLUE = 2;
}

message Inner {}

message M {
  int32 a = 1;
  optional string b = 2;
  oneof choice {
    bool c = 3;
    Inner d = 4;
  }
  repeated int64 e = 5;
  map<string, Inner> f = 6;
  Color g = 7;
}

service S {
  rpc Get(M) returns (stream Inner);
}
"#;

/// The files of a folder with one definition.
fn files(name: &str, text: &str) -> Files {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), text).unwrap();
    let set = protox::compile([name], [folder.path()]).unwrap();
    set.file
        .iter()
        .map(|file| (file.name().to_owned(), schema::of_ours(file)))
        .collect()
}

/// Compares the text with an edited copy, in which every edit must really apply.
#[track_caller]
fn check(edits: &[(&str, &str)], expected: &[&str]) {
    let mut edited = TEXT.to_owned();
    for (from, to) in edits {
        assert!(edited.contains(from), "nothing to edit: {from}");
        edited = edited.replacen(from, to, 1);
    }
    let comparison = compare(&files("a.proto", TEXT), &files("a.proto", &edited), "p");
    let found: Vec<String> = comparison
        .differences
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn equal_definitions_have_no_differences() {
    let ours = files("a.proto", TEXT);
    let comparison = compare(&ours, &ours.clone(), "p");
    assert_eq!(comparison.differences, []);
    assert_eq!((comparison.n_messages, comparison.n_fields), (2, 7));
}

#[test]
fn what_does_not_reach_the_wire_is_no_difference() {
    check(
        &[
            ("message Inner {}", "message Inner { reserved 1; }"),
            ("int32 a = 1;", ""),
            (
                "Color g = 7;",
                "Color g = 7 [deprecated = true]; int32 a = 1;",
            ),
        ],
        &[],
    );
}

#[test]
fn fields() {
    check(
        &[("a = 1", "a = 9")],
        &["p.M.a: number is 1 here and 9 in the library"],
    );
    check(
        &[("int32 a", "int32 z")],
        &["p.M.a: name is a here and z in the library"],
    );
    check(
        &[("int32 a", "sint32 a")],
        &["p.M.a: type is int32 here and sint32 in the library"],
    );
    check(&[("int32 a = 1;", "")], &["p.M.a: not in the library"]);
    check(
        &[("int32 a = 1;", "int32 a = 1; int32 z = 9;")],
        &["p.M.z: only in the library"],
    );
    check(
        &[
            ("int32 a = 1", "int32 z = 1"),
            ("optional string b = 2", "int32 a = 9"),
        ],
        &[
            "p.M.a: number is 1 here and 9 in the library",
            "p.M.b: not in the library",
            "p.M.z: only in the library",
        ],
    );
}

#[test]
fn labels() {
    check(
        &[("optional string", "string")],
        &["p.M.b: label is optional here and single in the library"],
    );
    check(
        &[(
            "repeated int64 e = 5",
            "repeated int64 e = 5 [packed = false]",
        )],
        &["p.M.e: label is repeated, packed here and repeated in the library"],
    );
    check(
        &[
            ("bool c = 3;", ""),
            ("int32 a = 1;", "int32 a = 1; bool c = 3;"),
        ],
        &["p.M.c: oneof is choice here and none in the library"],
    );
    check(
        &[("map<string, Inner>", "map<int32, Inner>")],
        &["p.M.f: type is map<string, .p.Inner> here and map<int32, .p.Inner> in the library"],
    );
}

#[test]
fn types_and_methods() {
    check(
        &[("BLUE = 2", "BLUE = 3")],
        &["p.Color.BLUE: number is 2 here and 3 in the library"],
    );
    check(&[("RED = 1;", "")], &["p.Color.RED: not in the library"]);
    check(
        &[("RED = 1;", "RED = 1; GREEN = 4;")],
        &["p.Color.GREEN: only in the library"],
    );
    check(
        &[("message M {", "message More {} message M {")],
        &["p.More: only in the library"],
    );
    check(
        &[("returns (stream Inner)", "returns (Inner)")],
        &[
            "p.S.Get: signature is (.p.M) returns (stream .p.Inner) here and (.p.M) returns \
           (.p.Inner) in the library",
        ],
    );
    check(
        &[(
            "rpc Get(M) returns (stream Inner);",
            "rpc Put(M) returns (stream Inner);",
        )],
        &[
            "p.S.Get: not in the library",
            "p.S.Put: only in the library",
        ],
    );
}

#[test]
fn files_count_within_the_packages_that_we_know_whole() {
    let (ours, theirs) = (files("a.proto", TEXT), files("b.proto", TEXT));
    let paths = |whole| -> Vec<String> {
        let differences = compare(&ours, &theirs, whole).differences;
        differences.iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        paths("p"),
        [
            "a.proto: not in the library",
            "b.proto: only in the library"
        ]
    );
    assert_eq!(paths("q"), ["a.proto: not in the library"]);
}

#[test]
fn our_own_definitions_are_found_in_a_library_that_carries_them() {
    use super::super::{intended, scan, workspace_root};
    use prost::Message as _;

    let compiled = compile::compile(workspace_root()).unwrap();
    let mut library = b"some code".to_vec();
    for file in &compiled.set.file {
        library.extend(file.encode_to_vec());
        library.extend(b"\0some constant\0");
    }
    let theirs: Files = scan::descriptors(&library)
        .iter()
        .map(|(name, found)| (name.clone(), schema::of_found(found)))
        .collect();
    let ours: Files = compiled
        .set
        .file
        .iter()
        .map(|file| (file.name().to_owned(), schema::of_ours(file)))
        .collect();
    let comparison = compare(&ours, &theirs, intended::WHOLE);
    assert_eq!(comparison.differences, []);
    assert!(
        comparison.n_messages > 150,
        "{} messages",
        comparison.n_messages
    );
}
