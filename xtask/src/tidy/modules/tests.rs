use super::*;

fn problems(path: &str, text: &str) -> Vec<String> {
    let mut findings = Findings::default();
    search(
        &SourceFile {
            path: path.to_owned(),
            text: text.to_owned(),
        },
        &mut findings,
    );
    findings.problems
}

#[track_caller]
fn check_refused(path: &str, text: &str, line: usize) {
    let found = problems(path, text);
    assert_eq!(found.len(), 1, "{path}: {found:?}");
    assert!(
        found[0].starts_with(&format!("{path}:{line}: ")),
        "{found:?}"
    );
}

#[track_caller]
fn check_allowed(path: &str, text: &str) {
    assert_eq!(problems(path, text), Vec::<String>::new());
}

#[test]
fn words_in_the_wrong_room_are_refused() {
    check_refused(
        "ifrt-pjrt/src/client.rs",
        "fn f() {\n    unsafe { g() }\n}",
        2,
    );
    check_refused("ifrt/src/array.rs", "unsafe impl Send for A {}", 1);
    check_refused("ifrt-pjrt/src/client.rs", "use crate::sys::Api;", 1);
    check_refused(
        "jaxlib-core/tests/it/main.rs",
        "#[tokio::test]\nfn f() {}",
        1,
    );
    check_refused(
        "ifrt-proxy/src/server/dispatch.rs",
        "use ifrt_pjrt::Plugin;",
        1,
    );
    check_refused(
        "ifrt-proxy/src/server/dispatch.rs",
        "use crate::client::Client;",
        1,
    );
}

#[test]
fn the_same_words_elsewhere_are_not() {
    check_allowed(
        "ifrt-pjrt/src/safe/call.rs",
        "unsafe { f() }; use crate::sys::Api;",
    );
    check_allowed(
        "ifrt-pjrt/src/lib.rs",
        "#![allow(unsafe_code, reason = \"unsafe\")]",
    );
    check_allowed(
        "ifrt/src/lib.rs",
        "// no tokio::spawn here, no unsafe\nfn f() {}",
    );
    check_allowed("ifrt/src/lib.rs", "let s = \"unsafe tokio::\";");
    check_allowed("ifrt-proxy/src/bin/server.rs", "use ifrt_pjrt::Plugin;");
    check_allowed("ifrt-proxy/src/server.rs", "tokio::spawn(f)");
    check_allowed("ifrt-pjrt/src/client.rs", "use std_sys::x; use subsys::y;");
}
