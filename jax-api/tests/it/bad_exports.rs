//! Exported functions that contradict themselves, or what they are called with.

use std::fs;
use std::path::Path;

use ifrt::fake::{FakeClient, FakeOptions};
use jax_api::prelude::*;
use jax_api::{Error, ExportedFn, Status};

/// The slots of the container that are bent here.
const NR_DEVICES: usize = 18;
const CALLING_CONVENTION: usize = 14;
const KEPT: usize = 15;
const IN_AVAL_NUMBERS: usize = 22;

fn file(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/exports");
    fs::read(folder.join(format!("{name}.jaxexport"))).unwrap()
}

fn client() -> Client {
    Client::from_ifrt(FakeClient::new(FakeOptions {
        num_devices: 8,
        platform_name: "cpu".into(),
        ..FakeOptions::default()
    }))
}

fn u32_at(bytes: &[u8], position: usize) -> usize {
    let bytes = bytes[position..position + 4].try_into().unwrap();
    usize::try_from(u32::from_le_bytes(bytes)).unwrap()
}

/// Where the field in a slot of the outermost table stands.
fn field(bytes: &[u8], slot: usize) -> usize {
    let root = u32_at(bytes, 0);
    // The description stands before the table; its offset is signed and positive here.
    let vtable = root - u32_at(bytes, root);
    let entry = vtable + 4 + 2 * slot;
    let offset = u16::from_le_bytes([bytes[entry], bytes[entry + 1]]);
    assert_ne!(offset, 0, "slot {slot} is not there");
    root + usize::from(offset)
}

/// Where the elements of the list in a slot stand.
fn elements(bytes: &[u8], slot: usize) -> usize {
    let field = field(bytes, slot);
    field + u32_at(bytes, field) + 4
}

fn compile(bytes: &[u8]) -> Result<ExportedFn, Error> {
    Exported::from_bytes(bytes)?.compile(&client())
}

#[track_caller]
fn refused(bytes: &[u8], words: &[&str]) -> Error {
    let error = compile(bytes).map(drop).unwrap_err();
    for word in words {
        assert!(error.to_string().contains(word), "{word}: {error}");
    }
    error
}

#[test]
fn unknown_calling_conventions() {
    for version in [0_u16, 8, 11, 999] {
        let mut bytes = file("add");
        let place = field(&bytes, CALLING_CONVENTION);
        bytes[place..place + 2].copy_from_slice(&version.to_le_bytes());
        let error = refused(
            &bytes,
            &[&format!("version {version}"), "9 to 10", "Export it again"],
        );
        assert!(matches!(error, Error::UnsupportedCallingConvention(_)));
    }
}

#[test]
fn other_platforms() {
    let mut bytes = file("add");
    let place = bytes
        .windows(4)
        .position(|window| window == b"cpu\0")
        .unwrap();
    bytes[place..place + 3].copy_from_slice(b"tpu");
    let error = refused(
        &bytes,
        &["exported for platforms '('tpu',)'", "used on '('cpu',)'"],
    );
    assert!(matches!(error, Error::PlatformMismatch(_)));
}

#[test]
fn other_numbers_of_devices() {
    let mut bytes = file("add");
    let place = field(&bytes, NR_DEVICES);
    bytes[place..place + 4].copy_from_slice(&100_u32.to_le_bytes());
    let error = refused(&bytes, &["exported for 100 devices", "with 8 devices"]);
    assert!(matches!(error, Error::DeviceCountMismatch(_)));
    bytes[place..place + 4].copy_from_slice(&0_u32.to_le_bytes());
    refused(&bytes, &["no devices"]);
}

#[test]
fn arguments_that_are_not_there() {
    let mut bytes = file("add");
    let place = elements(&bytes, KEPT) + 2;
    bytes[place..place + 2].copy_from_slice(&7_u16.to_le_bytes());
    refused(&bytes, &["contradicts itself", "[0, 7] of 2"]);
    bytes[place..place + 2].copy_from_slice(&0_u16.to_le_bytes());
    refused(&bytes, &["contradicts itself", "[0, 0] of 2"]);
}

#[test]
fn types_that_are_not_there() {
    let mut bytes = file("add");
    let place = elements(&bytes, IN_AVAL_NUMBERS);
    bytes[place..place + 4].copy_from_slice(&99_u32.to_le_bytes());
    refused(&bytes, &["contradicts itself", "number 99 of"]);
}

#[test]
fn symbolic_dimensions() {
    let error = refused(
        &file("symbolic_batch"),
        &["float32[b,8]", "once for each shape"],
    );
    assert!(matches!(error, Error::NeedsShapeRefinement(_)));
}

#[test]
fn effects_that_nobody_knows_are_only_names() {
    // Ordered effects are tokens, whatever they are called; the file says so.
    let mut bytes = file("ordered_effects");
    let exported = Exported::from_bytes(&bytes).unwrap();
    let name = exported.ordered_effects()[0].clone();
    let place = bytes
        .windows(name.len())
        .position(|window| window == name.as_bytes())
        .unwrap();
    bytes[place] = b'?';
    let other = Exported::from_bytes(&bytes).unwrap();
    assert_eq!(other.ordered_effects()[0], format!("?{}", &name[1..]));
    bytes[place] = 0xff;
    let error = Exported::from_bytes(&bytes).unwrap_err().to_string();
    assert!(error.contains("not UTF-8"), "{error}");
}

#[test]
fn errors_say_which_file() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("model.jaxexport");
    fs::write(&path, &file("add")[..100]).unwrap();
    let error = Exported::load(&path).unwrap_err();
    assert!(error.to_string().contains("model.jaxexport"), "{error}");
    let expected = Status::invalid_argument("").code();
    assert_eq!(error.code(), expected);
}
