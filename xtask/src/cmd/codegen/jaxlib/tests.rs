use super::super::compile::compile;
use super::super::workspace_root;
use super::{LIBRARY, VENV_LIB, check, installed_library};
use prost::Message as _;
use std::fs;

#[test]
fn a_missing_library_is_an_error_that_names_the_remedy() {
    let root = tempfile::tempdir().unwrap();
    let message = installed_library(root.path()).unwrap_err().to_string();
    assert!(message.contains("cargo xtask setup"), "{message}");
    assert!(message.contains("--against PATH"), "{message}");
}

#[test]
fn the_library_of_the_newest_python_is_taken() {
    let root = tempfile::tempdir().unwrap();
    for (folder, has_library) in [
        ("python3.11", true),
        ("python3.12", true),
        ("python3.13", false),
        ("pypy4", true),
    ] {
        let library = root.path().join(VENV_LIB).join(folder).join(LIBRARY);
        fs::create_dir_all(library.parent().unwrap()).unwrap();
        if has_library {
            fs::write(library, "").unwrap();
        }
    }
    let found = installed_library(root.path()).unwrap();
    assert_eq!(
        found,
        root.path().join(VENV_LIB).join("python3.12").join(LIBRARY)
    );
}

#[test]
fn another_file_is_not_taken_for_a_library() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lib.so");
    fs::write(&path, "no descriptors").unwrap();
    let compiled = compile(workspace_root()).unwrap();
    let message = check(folder.path(), &compiled, Some(&path))
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("carries no definitions of IFRT"),
        "{message}"
    );
}

#[test]
fn a_planted_difference_fails_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lib.so");
    let compiled = compile(workspace_root()).unwrap();
    let mut library = Vec::new();
    for file in &compiled.set.file {
        let mut file = file.clone();
        if file.name().ends_with("ifrt/serdes.proto") {
            file.message_type[0].field[1].number = Some(3);
        }
        library.extend(file.encode_to_vec());
    }
    fs::write(&path, library).unwrap();
    let message = check(folder.path(), &compiled, Some(&path))
        .unwrap_err()
        .to_string();
    assert!(message.contains("the definitions do not fit"), "{message}");
}
