use super::{Texts, drift, read};

fn texts(files: &[(&str, &str)]) -> Texts {
    files
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect()
}

#[test]
fn equal_files_do_not_drift() {
    let files = texts(&[("a.rs", "one\n"), ("b.rs", "")]);
    assert_eq!(drift(&files, &files), [""; 0]);
}

#[test]
fn every_kind_of_drift_has_a_line() {
    let committed = texts(&[
        ("changed.rs", "one\n  two\nthree\n"),
        ("old.rs", ""),
        ("cut.rs", "a\n"),
    ]);
    let generated = texts(&[
        ("changed.rs", "one\n2\nthree\nfour\n"),
        ("new.rs", ""),
        ("cut.rs", ""),
    ]);
    assert_eq!(
        drift(&committed, &generated),
        [
            "changed.rs: line 2 is `two` and should be `2` (3 lines committed, 4 generated)",
            "cut.rs: line 1 is `a` and should be the end (1 lines committed, 0 generated)",
            "new.rs: not committed",
            "old.rs: committed, but no longer generated",
        ]
    );
}

#[test]
fn a_missing_folder_has_no_files() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(read(&folder.path().join("gen")).unwrap(), Texts::new());
    std::fs::write(folder.path().join("a.rs"), "one\n").unwrap();
    assert_eq!(read(folder.path()).unwrap(), texts(&[("a.rs", "one\n")]));
}
