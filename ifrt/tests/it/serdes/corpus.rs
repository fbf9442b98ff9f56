//! The corpora of the fuzz targets: what libFuzzer starts from, and what it once found.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ifrt::fuzzing::TARGETS;

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
    let drivers: BTreeSet<String> = fs::read_dir(fuzz.join("fuzz_targets"))
        .unwrap()
        .map(|entry| {
            entry
                .unwrap()
                .path()
                .file_stem()
                .unwrap()
                .display()
                .to_string()
        })
        .collect();
    let targets = TARGETS.map(|(name, _)| name.to_owned());
    assert_eq!(drivers, BTreeSet::from(targets));
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    for (name, _) in TARGETS {
        assert!(
            manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")),
            "{name}"
        );
    }
}
