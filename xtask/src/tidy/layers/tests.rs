use super::*;
use serde_json::{Value, json};

/// The manifests of the tree, as cargo describes them.
fn document() -> Value {
    let workspace = Workspace::find();
    let arguments = ["metadata", "--no-deps", "--format-version", "1"];
    let output = workspace.cargo(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

fn package<'a>(document: &'a mut Value, name: &str) -> &'a mut Value {
    let packages = document["packages"].as_array_mut().unwrap();
    packages
        .iter_mut()
        .find(|package| package["name"] == name)
        .unwrap()
}

/// Plants a dependency: `kind` is null, "dev" or "build", as cargo writes it.
fn plant(from: &str, to: &str, kind: Value, optional: bool) -> Vec<String> {
    let mut document = document();
    package(&mut document, from)["dependencies"]
        .as_array_mut()
        .unwrap()
        .push(json!({
            "name": to, "req": "*", "kind": kind, "optional": optional,
            "uses_default_features": true, "features": [], "target": null, "rename": null,
            "source": null, "registry": null,
        }));
    compare(&MetadataCommand::parse(document.to_string()).unwrap()).problems
}

#[track_caller]
fn check_refused(problems: &[String], words: &[&str]) {
    assert_eq!(problems.len(), 1, "{problems:?}");
    for word in words {
        assert!(problems[0].contains(word), "{problems:?}");
    }
}

#[test]
fn a_planted_edge_is_refused() {
    let problems = plant("ifrt-pjrt", "ifrt-proxy", Value::Null, false);
    check_refused(&problems, &["ifrt-pjrt", "normal", "ifrt-proxy"]);
    check_refused(
        &plant("ifrt", "xtask", json!("dev"), false),
        &["ifrt", "dev", "xtask"],
    );
    check_refused(
        &plant("xtask", "ifrt", Value::Null, false),
        &["xtask", "ifrt"],
    );
}

#[test]
fn an_allowed_edge_of_another_kind_is_refused() {
    let problems = plant("ifrt-proxy", "ifrt-pjrt", Value::Null, false);
    check_refused(&problems, &["ifrt-proxy", "normal", "ifrt-pjrt"]);
    let problems = plant("ifrt-pjrt", "ifrt", json!("build"), false);
    check_refused(&problems, &["ifrt-pjrt", "build", "ifrt"]);
}

#[test]
fn an_allowed_edge_is_not_refused() {
    assert_eq!(
        plant("ifrt-proxy", "ifrt-pjrt", Value::Null, true),
        Vec::<String>::new()
    );
    assert_eq!(
        plant("jax-api", "ifrt-proxy", Value::Null, true),
        Vec::<String>::new()
    );
}

#[test]
fn a_foreign_crate_in_the_wrong_layer_is_refused() {
    check_refused(
        &plant("ifrt", "tokio", Value::Null, true),
        &["ifrt", "tokio"],
    );
    check_refused(
        &plant("jaxlib-core", "tonic", json!("dev"), false),
        &["tonic"],
    );
}

#[test]
fn an_unknown_crate_is_refused() {
    let mut document = document();
    package(&mut document, "jax-api")["name"] = json!("newcomer");
    let problems = compare(&MetadataCommand::parse(document.to_string()).unwrap()).problems;
    assert!(
        problems
            .iter()
            .any(|problem| problem.contains("the crate newcomer")),
        "{problems:?}"
    );
}
