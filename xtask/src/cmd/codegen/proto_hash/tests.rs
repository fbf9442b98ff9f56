use super::super::workspace_root;
use super::{DOCUMENT, PREFIX, check, hash, proto_files, refresh};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A workspace with two definitions and a document that states no valid hash yet.
fn workspace() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "ifrt/protos/x/a.proto", "one");
    write(root.path(), "ifrt-proxy/protos/b.proto", "two");
    write(
        root.path(),
        DOCUMENT,
        &format!("# Versions\n\n{PREFIX}none`\n\nText.\n"),
    );
    root
}

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn the_committed_document_fits_the_committed_definitions() {
    check(workspace_root()).unwrap();
}

#[test]
fn a_refreshed_document_fits_until_a_definition_changes() {
    let root = workspace();
    let root = root.path();
    assert!(check(root).unwrap_err().to_string().contains("sha256 none"));
    refresh(root).unwrap();
    check(root).unwrap();
    let text = fs::read_to_string(root.join(DOCUMENT)).unwrap();
    assert_eq!(
        text,
        format!("# Versions\n\n{PREFIX}{}`\n\nText.\n", hash(root).unwrap())
    );

    write(root, "ifrt-proxy/protos/b.proto", "2");
    let message = check(root).unwrap_err().to_string();
    assert!(message.contains("describe the change there"), "{message}");
    refresh(root).unwrap();
    check(root).unwrap();
}

#[test]
fn the_hash_covers_names_and_borders() {
    let root = workspace();
    let root = root.path();
    let mut seen = vec![hash(root).unwrap()];
    fs::rename(
        root.join("ifrt/protos/x/a.proto"),
        root.join("ifrt/protos/x/c.proto"),
    )
    .unwrap();
    seen.push(hash(root).unwrap());
    write(root, "ifrt/protos/x/c.proto", "onet");
    write(root, "ifrt-proxy/protos/b.proto", "wo");
    seen.push(hash(root).unwrap());
    write(root, "ifrt/protos/y.proto", "");
    seen.push(hash(root).unwrap());
    let n_seen = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), n_seen);
    // Other files do not count.
    write(root, "ifrt/protos/README", "text");
    assert!(seen.contains(&hash(root).unwrap()));
}

#[test]
fn definitions_are_listed_by_import_path() {
    let root = workspace();
    write(root.path(), "ifrt/protos/a.proto", "");
    write(root.path(), "ifrt/protos/a.txt", "");
    assert_eq!(
        proto_files(&root.path().join("ifrt/protos")).unwrap(),
        ["a.proto", "x/a.proto"]
    );
}

#[test]
fn a_document_without_one_hash_is_an_error() {
    let root = workspace();
    let root = root.path();
    write(root, DOCUMENT, "# Versions\n");
    assert!(
        check(root)
            .unwrap_err()
            .to_string()
            .contains("has no line that starts with")
    );
    write(root, DOCUMENT, &format!("{PREFIX}a`\n{PREFIX}b`\n"));
    assert!(
        refresh(root)
            .unwrap_err()
            .to_string()
            .contains("more than once")
    );
}
