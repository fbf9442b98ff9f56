//! The corpora of the fuzz targets, replayed; and random damage to them.

use std::fs;
use std::path::Path;

use jax_api::fuzzing::TARGETS;
use proptest::prelude::*;

/// The files of a target.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let folder = fuzz.join("corpus").join(name);
    assert!(
        fuzz.join(format!("fuzz_targets/{name}.rs")).exists(),
        "the target {name} has no program"
    );
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

#[test]
fn every_file_of_every_corpus() {
    for (name, target) in TARGETS {
        corpus(name).iter().for_each(|bytes| target(bytes));
    }
}

proptest! {
    #[test]
    fn damage_to_every_corpus(
        file in any::<prop::sample::Index>(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        end in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        for (name, target) in TARGETS {
            let mut bytes = file.get(&corpus(name)).clone();
            for (place, value) in &damage {
                if !bytes.is_empty() {
                    let place = place.index(bytes.len());
                    bytes[place] = *value;
                }
            }
            if is_cut && !bytes.is_empty() {
                bytes.truncate(end.index(bytes.len()));
            }
            target(&bytes);
        }
    }
}
