//! Reads the closing lines of test runners.

use crate::step::Counts;

/// Adds up what nextest says, lines like
/// `     Summary [   0.5s] 5 tests run: 3 passed (1 slow), 1 failed, 1 timed out, 2 skipped`.
///
/// What is skipped there was left out by the filter of the user, so it is not counted.
pub(super) fn nextest(lines: &[&str]) -> Counts {
    lines
        .iter()
        .filter_map(|line| nextest_line(line))
        .fold(Counts::default(), sum)
}

fn nextest_line(line: &str) -> Option<Counts> {
    let (_, rest) = line
        .trim_start()
        .strip_prefix("Summary [")?
        .split_once("] ")?;
    let (_, rest) = rest.split_once(" run: ")?;
    let mut counts = Counts::default();
    for part in rest.split(", ") {
        let (number, what) = part.split_once(' ')?;
        let number: u64 = number.parse().ok()?;
        match what.split(" (").next()? {
            "passed" => counts.passed += number,
            "skipped" => {}
            // "failed", "timed out", "exec failed": whatever else there is, it is no success.
            _ => counts.failed += number,
        }
    }
    Some(counts)
}

/// Adds up what the test harness of Rust says, lines like
/// `test result: ok. 3 passed; 1 failed; 2 ignored; 0 measured; 4 filtered out; finished in 0.00s`.
pub(super) fn libtest(lines: &[&str]) -> Counts {
    lines
        .iter()
        .filter_map(|line| libtest_line(line))
        .fold(Counts::default(), sum)
}

fn libtest_line(line: &str) -> Option<Counts> {
    let (_, rest) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut counts = Counts::default();
    for part in rest.split("; ") {
        let Some((number, what)) = part.split_once(' ') else {
            continue;
        };
        let Ok(number) = number.parse::<u64>() else {
            continue;
        };
        match what {
            "passed" => counts.passed += number,
            "failed" => counts.failed += number,
            "ignored" => counts.skipped += number,
            _ => {}
        }
    }
    Some(counts)
}

/// Reads what Python's unittest says at its end: `Ran 16 tests in 1.2s`, and then `OK`,
/// `OK (skipped=1)` or `FAILED (failures=1, errors=2)`.
pub(super) fn unittest(lines: &[&str]) -> Counts {
    let ran = lines.iter().find_map(|line| {
        let (number, rest) = line.strip_prefix("Ran ")?.split_once(" test")?;
        rest.contains(" in ").then_some(())?;
        number.parse::<u64>().ok()
    });
    let mut counts = Counts::default();
    for line in lines {
        let ends = ["OK (", "FAILED ("];
        let Some(inside) = ends.iter().find_map(|end| line.strip_prefix(end)) else {
            continue;
        };
        for part in inside.trim_end_matches(')').split(", ") {
            let Some((what, number)) = part.split_once('=') else {
                continue;
            };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            match what {
                "skipped" => counts.skipped += number,
                "expected failures" => {}
                _ => counts.failed += number,
            }
        }
    }
    counts.passed = ran
        .unwrap_or(0)
        .saturating_sub(counts.failed + counts.skipped);
    counts
}

fn sum(mut total: Counts, more: Counts) -> Counts {
    total += more;
    total
}

#[cfg(test)]
mod tests;
