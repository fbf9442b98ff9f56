use super::*;

#[track_caller]
fn check_tree(name: &str) {
    let (_, check) = CHECKS.iter().find(|(known, _)| *known == name).unwrap();
    let findings = check(&Workspace::find()).unwrap();
    assert!(
        findings.problems.is_empty(),
        "tidy {name}:\n{}",
        findings.problems.join("\n")
    );
}

#[test]
fn layers_of_the_tree() {
    check_tree("layers");
}

#[test]
fn modules_of_the_tree() {
    check_tree("modules");
}

#[test]
fn files_of_the_tree() {
    check_tree("files");
}

#[test]
fn docs_of_the_tree() {
    check_tree("docs");
}

#[test]
fn licences_of_the_tree() {
    check_tree("licences");
}

#[test]
fn proto_hash_of_the_tree() {
    check_tree("proto-hash");
}
