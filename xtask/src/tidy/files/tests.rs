use super::*;

fn findings(path: &str, text: &str) -> Findings {
    let mut findings = Findings::default();
    look_at(
        &SourceFile {
            path: path.to_owned(),
            text: text.to_owned(),
        },
        &mut findings,
    );
    findings
}

#[track_caller]
fn check_refused(path: &str, text: &str, why: &str) {
    let problems = findings(path, text).problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains(why), "{problems:?}");
}

#[test]
fn long_files_are_warned_about_and_then_refused() {
    let lines = |n: usize| "x\n".repeat(n);
    let of = |n| findings("a/src/x.rs", &lines(n));
    assert!(of(700).warnings.is_empty() && of(700).problems.is_empty());
    assert!(of(701).warnings.len() == 1 && of(701).problems.is_empty());
    check_refused("a/src/x.rs", &lines(1001), "1001 lines");
    assert!(
        findings("a/src/proto/gen/x.rs", &lines(5000))
            .problems
            .is_empty()
    );
    assert!(findings("README.md", &lines(5000)).problems.is_empty());
}

#[test]
fn white_space_and_machine_folders_are_refused() {
    check_refused("a.md", "one \ntwo\n", "a.md:1: white space");
    check_refused("a.md", "one\r\n", "white space");
    check_refused("a.md", "one", "no end");
    check_refused("a/mod.rs", "x\n", "mod.rs");
    for [start, end] in MACHINE_FOLDERS {
        check_refused("a.md", &format!("see {start}{end}x\n"), "of one machine");
        assert!(
            findings("a.md", &format!("target{start}{end}x\n"))
                .problems
                .is_empty()
        );
    }
}
