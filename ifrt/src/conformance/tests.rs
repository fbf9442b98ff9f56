use std::collections::BTreeMap;

use super::cases::GROUPS;
use super::ids;

#[test]
fn each_id_of_the_list_is_there_exactly_once() {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let cases = GROUPS.iter().flat_map(|(_, tables)| tables.iter());
    for case in cases.copied().flatten() {
        *found.entry(case.id.to_owned()).or_default() += 1;
    }
    for (id, reason) in ids::NOT_APPLICABLE {
        assert!(!reason.is_empty(), "{id}");
        *found.entry((*id).to_owned()).or_default() += 1;
    }
    for id in ids::all() {
        assert_eq!(found.remove(&id), Some(1), "{id}");
    }
    assert!(found.is_empty(), "not on the list: {found:?}");
}

#[test]
fn names_are_words_and_differ() {
    let mut names = Vec::new();
    for (group, tables) in GROUPS {
        for case in tables.iter().copied().flatten() {
            let name = format!("{group}::{}", case.name());
            let words = name.split_once("::").unwrap().1;
            assert!(
                words
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'_'),
                "{name}"
            );
            names.push(name);
        }
    }
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
}
