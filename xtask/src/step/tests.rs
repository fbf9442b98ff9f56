use super::*;

#[test]
fn counts_add_up_and_print() {
    let mut total = Counts::default();
    assert!(!total.is_success());
    total += Counts {
        passed: 2,
        failed: 0,
        skipped: 0,
    };
    assert!(total.is_success());
    assert_eq!(total.to_string(), "2 passed, 0 failed");
    total += Counts {
        passed: 1,
        failed: 3,
        skipped: 4,
    };
    assert!(!total.is_success());
    assert_eq!(total.to_string(), "3 passed, 3 failed, 4 skipped");
}

#[test]
fn a_failing_step_passes_its_error_on() {
    let error = step("test", || anyhow::bail!("reason")).unwrap_err();
    assert_eq!(error.to_string(), "reason");
    assert_eq!(
        step("test", || Ok(Outcome::UpToDate)).unwrap(),
        Outcome::UpToDate
    );
}
