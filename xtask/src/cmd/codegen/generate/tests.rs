use super::super::compile::{OWNERS, compile};
use super::super::workspace_root;
use super::{check, extern_paths, generate};

#[test]
fn the_committed_code_is_what_the_definitions_give() {
    check(workspace_root(), &compile(workspace_root()).unwrap()).unwrap();
}

#[test]
fn each_crate_holds_its_own_packages_only() {
    let compiled = compile(workspace_root()).unwrap();
    let names = |owner_idx| {
        generate(&compiled, owner_idx)
            .unwrap()
            .into_keys()
            .collect::<Vec<_>>()
    };
    assert_eq!(OWNERS.map(|owner| owner.folder), ["ifrt", "ifrt-proxy"]);
    assert_eq!(
        names(0),
        [
            "mod.rs",
            "tensorflow.error.rs",
            "tensorflow.rs",
            "xla.ifrt.rs",
            "xla.rs"
        ]
    );
    assert_eq!(
        names(1),
        ["mod.rs", "xla.ifrt.proto.rs", "xla.ifrt.proxy.rs"]
    );
}

#[test]
fn foreign_types_are_named_one_by_one() {
    let compiled = compile(workspace_root()).unwrap();
    assert_eq!(extern_paths(&compiled, 0), []);
    let paths = extern_paths(&compiled, 1);
    let expected = (
        ".xla.ifrt.Serialized".to_owned(),
        "::ifrt::proto::xla::ifrt::Serialized".to_owned(),
    );
    assert!(paths.contains(&expected), "{paths:?}");
    // A package as an entry would swallow the packages of the proxy.
    assert!(
        paths
            .iter()
            .all(|(path, _)| path != ".xla" && path != ".xla.ifrt"),
        "{paths:?}"
    );
}
