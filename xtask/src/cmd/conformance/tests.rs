use super::report::{counts, parse, table};
use super::*;
use crate::step::Counts;

const REPORT: &str = "\
fake::b::TWO\tfailed\t12\tit is wrong  at a.rs:1
fake::a::ONE\tpassed\t0\t
fake::c::THREE\tskipped\t3\tneeds 8 devices
fake::d::FOUR\texpected failure\t3\tnot yet
";

#[test]
fn reports_become_tables() {
    let rows = parse(REPORT).unwrap();
    assert_eq!(
        table(&rows),
        "\
fake::a::ONE    ok            0 ms
fake::b::TWO    FAILED       12 ms  it is wrong  at a.rs:1
fake::c::THREE  skipped       3 ms  needs 8 devices
fake::d::FOUR   xfail         3 ms  not yet
"
    );
    let expected = Counts {
        passed: 2,
        failed: 1,
        skipped: 1,
    };
    assert_eq!(counts(&rows), expected);
}

#[test]
fn other_lines_are_refused() {
    for line in [
        "",
        "name",
        "name\tgood\t1\t",
        "name\tpassed\tsoon\t",
        "name\tpassed\t1",
    ] {
        assert!(parse(&format!("{line}\n")).is_err(), "{line:?}");
    }
}

#[test]
fn each_backend_has_a_name_and_a_package_of_the_workspace() {
    let workspace = Workspace::find();
    let mut names = Vec::new();
    for backend in Backend::value_variants() {
        let tests = format!("{}/tests/conformance.rs", backend.package());
        let tests = fs::read_to_string(workspace.path(tests)).unwrap();
        let name = format!("\"{}\"", backend.name());
        assert!(tests.contains(&name), "{name}");
        names.push(name);
    }
    names.dedup();
    assert_eq!(names.len(), Backend::value_variants().len());
}
