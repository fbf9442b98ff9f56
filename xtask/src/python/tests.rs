use super::*;

fn interpreter(minor: u32, has_venv: bool) -> Interpreter {
    Interpreter {
        executable: PathBuf::from("python"),
        minor,
        version: format!("3.{minor}.0"),
        machine: "x86_64".to_owned(),
        has_venv,
    }
}

#[test]
fn objects_to_other_versions_and_to_missing_modules() {
    assert_eq!(interpreter(11, true).objection(), None);
    assert_eq!(interpreter(14, true).objection(), None);
    assert_eq!(
        interpreter(10, true).objection().as_deref(),
        Some("not supported")
    );
    assert_eq!(
        interpreter(15, true).objection().as_deref(),
        Some("not supported")
    );
    assert!(
        interpreter(12, false)
            .objection()
            .unwrap()
            .contains("python3.12-venv")
    );
}

#[test]
fn a_named_interpreter_that_is_none_is_an_error() {
    let error = format!(
        "{:#}",
        find(Some(Path::new("/nonexistent/python"))).unwrap_err()
    );
    assert!(
        error.contains("--python /nonexistent/python cannot be used"),
        "{error}"
    );
}
