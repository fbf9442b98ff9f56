//! The corpora of the fuzz targets: what libFuzzer starts from, and what it once found.

use std::fs;
use std::path::Path;

use ifrt_proxy::server::fuzzing::TARGETS;

#[test]
fn the_corpora_are_replayed() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    for (name, target) in TARGETS {
        let folder = fuzz.join("corpus").join(name);
        let mut files = 0;
        for entry in fs::read_dir(&folder).unwrap() {
            target(&fs::read(entry.unwrap().path()).unwrap());
            files += 1;
        }
        assert!(files > 0, "{} is empty", folder.display());
    }
}

#[test]
fn every_target_has_a_driver() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    for (name, _) in TARGETS {
        let driver = format!("fuzz_targets/{name}.rs");
        let source = fs::read_to_string(fuzz.join(&driver)).unwrap();
        assert!(source.contains(&format!("fuzzing::{name}(data)")), "{name}");
        assert!(manifest.contains(&format!("path = \"{driver}\"")), "{name}");
    }
    let drivers = fs::read_dir(fuzz.join("fuzz_targets")).unwrap().count();
    assert_eq!(drivers, TARGETS.len());
}
