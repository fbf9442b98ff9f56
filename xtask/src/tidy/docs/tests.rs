use super::*;

#[test]
fn a_module_doc_must_come_first_and_say_something() {
    assert!(has_module_doc("//! What it is.\nfn f() {}"));
    assert!(has_module_doc("\n  //! What it is.\n"));
    assert!(!has_module_doc("//!\nfn f() {}"));
    assert!(!has_module_doc("// What it is.\n//! Too late."));
    assert!(!has_module_doc("fn f() {}"));
    assert!(!has_module_doc(""));
}

#[test]
fn unknown_commands_are_found() {
    let file = SourceFile {
        path: "README.md".to_owned(),
        text: "`cargo xtask demo`, then\ncargo xtask fly, cargo xtask --help, cargo xtask NAME"
            .to_owned(),
    };
    assert_eq!(unknown_commands(&file, &["demo"]), [(2, "fly")]);
}
