//! Every id of the conformance list that is about values has a test here or beside the code.
//!
//! The cases that a runtime runs are counted in `ifrt::conformance`. The others are ordinary tests
//! whose names begin with their ids, so the sources are searched for names: `sh_05_...` stands for
//! one id, `ix_01_and_ix_05_...` for two, `rp_06_to_08_...` for a range.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

type Id = (String, u32);

/// How many ids each group has.
const COUNTS: [(&str, u32); 15] = [
    ("DT", 4),
    ("SH", 16),
    ("IX", 8),
    ("MK", 10),
    ("AM", 4),
    ("DLT", 7),
    ("LY", 18),
    ("SHD", 31),
    ("SSP", 32),
    ("HSH", 20),
    ("SD", 18),
    ("RP", 24),
    ("UC", 25),
    ("BH", 6),
    ("VU", 2),
];

const NO_REGISTRY: &str = "asks an open registry of types; ours is a match over all kinds";
const NEEDS_DEVICES: &str = "is about the devices of a sharding, which a spec has not";
const NO_OK_STATUS: &str = "is about a status without an error, which cannot be made here";

/// The ids without a test, and why.
const NOT_APPLICABLE: &[(&str, u32, &str)] = &[
    (
        "DT",
        2,
        "is about an invalid dtype, which does not exist here",
    ),
    ("SSP", 10, NEEDS_DEVICES),
    ("SSP", 14, NEEDS_DEVICES),
    ("SSP", 15, NEEDS_DEVICES),
    ("SSP", 21, NEEDS_DEVICES),
    (
        "SSP",
        31,
        "asks a sharding for its spec, which SHD-31 and SSP-32 do",
    ),
    ("SD", 1, NO_REGISTRY),
    ("SD", 2, NO_REGISTRY),
    ("SD", 3, NO_REGISTRY),
    (
        "SD",
        16,
        "compares parsed modules; a program stays the bytes that it came as",
    ),
    ("SD", 18, "needs a GPU executable"),
    ("UC", 9, "registers no context, for which there is no value"),
    ("UC", 16, NO_OK_STATUS),
    ("UC", 19, NO_OK_STATUS),
    ("UC", 22, NO_OK_STATUS),
];

/// The ids at the beginning of a test's name.
fn ids_in(name: &str) -> Vec<Id> {
    let mut ids: Vec<Id> = Vec::new();
    let mut group = None;
    let mut is_range = false;
    for word in name.split('_') {
        let upper = word.to_uppercase();
        let number = word.parse::<u32>().ok().filter(|_| word.len() == 2);
        if let (Some(group), Some(number)) = (&group, number) {
            let first = match ids.last() {
                Some((_, last)) if is_range => last + 1,
                _ => number,
            };
            ids.extend((first..=number).map(|number| (String::clone(group), number)));
            is_range = false;
        } else if COUNTS.iter().any(|(name, _)| *name == upper) {
            group = Some(upper);
        } else if word == "to" && !ids.is_empty() {
            is_range = true;
        } else if word != "and" || ids.is_empty() {
            break;
        }
    }
    ids
}

/// The names of the functions marked as tests below a folder, those of property tests included.
fn test_names(folder: &Path, names: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            test_names(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            for part in text.split("#[test]").skip(1) {
                let name = part
                    .split_once("fn ")
                    .and_then(|(_, rest)| rest.split_once('('));
                names.extend(name.map(|(name, _)| name.to_owned()));
            }
        }
    }
}

#[test]
fn every_id_about_values_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut names = Vec::new();
    test_names(&root.join("src"), &mut names);
    test_names(&root.join("tests"), &mut names);
    let mut tested: BTreeSet<Id> = names.iter().flat_map(|name| ids_in(name)).collect();
    for (group, number, reason) in NOT_APPLICABLE {
        let id = ((*group).to_owned(), *number);
        assert!(!reason.is_empty());
        assert!(
            tested.insert(id),
            "{group}-{number:02} has a test and a reason for none"
        );
    }
    for (group, count) in COUNTS {
        for number in 1..=count {
            assert!(
                tested.remove(&(group.to_owned(), number)),
                "{group}-{number:02} has no test"
            );
        }
    }
    assert!(tested.is_empty(), "not on the list: {tested:?}");
}

#[test]
fn ids_are_read_from_names() {
    let id = |group: &str, number| (group.to_owned(), number);
    assert_eq!(ids_in("sh_05_products"), [id("SH", 5)]);
    assert_eq!(
        ids_in("ix_01_and_ix_05_to_ix_07_all"),
        [id("IX", 1), id("IX", 5), id("IX", 6), id("IX", 7)]
    );
    assert_eq!(
        ids_in("rp_06_to_08_10"),
        [id("RP", 6), id("RP", 7), id("RP", 8), id("RP", 10)]
    );
    assert_eq!(ids_in("share_and_sh_05"), []);
}
