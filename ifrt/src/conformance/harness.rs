//! Running the cases: judgment, watchdog, report.

use std::env;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use super::backend::Backend;
use super::cases::{Case, GROUPS};
use super::check::{Check, Stop};
use super::fixture::Fixture;

/// A case that takes longer has failed.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Environment variable: run only the backend of this name.
pub const BACKEND_VARIABLE: &str = "IFRT_CONFORMANCE_BACKEND";

/// Environment variable: append a line per case to this file: name, outcome, milliseconds and
/// detail, separated by tabs.
pub const REPORT_VARIABLE: &str = "IFRT_CONFORMANCE_REPORT";

/// Environment variable: if set, run only the cases that a backend lists as unsupported or as
/// expected failures, and fail for each that passes.
pub const VERIFY_VARIABLE: &str = "IFRT_CONFORMANCE_VERIFY_XFAIL";

/// What became of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
    /// It failed, as the backend says it does.
    ExpectedFailure(String),
}

/// Runs the suite for these backends, as the `main` function of a test without the standard
/// harness. The arguments of the command line are those of any test.
pub fn main(backends: Vec<Arc<dyn Backend>>) -> ExitCode {
    let arguments = Arguments::from_args();
    let wanted = env::var(BACKEND_VARIABLE).ok();
    let verify = env::var_os(VERIFY_VARIABLE).is_some();
    let mut trials = Vec::new();
    for backend in &backends {
        if wanted.as_deref().is_none_or(|name| name == backend.name()) {
            trials.extend(trials_of(backend, verify));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trials_of(backend: &Arc<dyn Backend>, verify: bool) -> Vec<Trial> {
    let cases = GROUPS.iter().flat_map(|(group, tables)| {
        let cases = tables.iter().copied().flatten();
        cases.map(move |case| (format!("{group}::{}", case.name()), case))
    });
    let mut trials = Vec::new();
    let mut names = Vec::new();
    for (name, case) in cases {
        let judge = Judge::new(&**backend, &name);
        names.push(name.clone());
        if verify && judge.reason().is_none() {
            continue;
        }
        trials.push(trial(backend, name, case, judge, verify));
    }
    trials.push(stale_patterns(backend, &names));
    trials
}

/// The lists of a backend must not name cases that do not exist.
fn stale_patterns(backend: &Arc<dyn Backend>, names: &[String]) -> Trial {
    let listed = backend
        .unsupported()
        .iter()
        .chain(backend.expected_failures());
    let stale = listed
        .filter(|(pattern, _)| !names.iter().any(|name| matches(pattern, name)))
        .map(|(pattern, _)| (*pattern).to_owned());
    let stale: Vec<String> = stale.collect();
    Trial::test(
        format!("{}::lists_name_existing_cases", backend.name()),
        move || {
            if stale.is_empty() {
                return Ok(());
            }
            Err(format!("no case has a name like {}", stale.join(" or ")).into())
        },
    )
}

fn trial(
    backend: &Arc<dyn Backend>,
    name: String,
    case: &'static Case,
    judge: Judge,
    verify: bool,
) -> Trial {
    let backend = Arc::clone(backend);
    let full_name = format!("{}::{name}", backend.name());
    Trial::ignorable_test(full_name.clone(), move || {
        let since = Instant::now();
        let outcome = if let (Some(reason), false) = (&judge.unsupported, verify) {
            Outcome::Skipped(format!("unsupported: {reason}"))
        } else {
            judge.judge(run_watched(&backend, case, DEADLINE))
        };
        report(&full_name, &outcome, since.elapsed())?;
        match outcome {
            Outcome::Passed | Outcome::ExpectedFailure(_) => Ok(Completion::Completed),
            Outcome::Skipped(reason) => Ok(Completion::ignored_with(reason)),
            Outcome::Failed(message) => Err(message.into()),
        }
    })
}

/// What a backend says about a case.
#[derive(Clone, Debug)]
struct Judge {
    unsupported: Option<String>,
    expected_failure: Option<String>,
}

impl Judge {
    fn new(backend: &dyn Backend, name: &str) -> Self {
        let find = |listed: &[(&str, &str)]| {
            let mut listed = listed.iter();
            let found = listed.find(|(pattern, _)| matches(pattern, name));
            found.map(|(_, reason)| (*reason).to_owned())
        };
        Self {
            unsupported: find(backend.unsupported()),
            expected_failure: find(backend.expected_failures()),
        }
    }

    fn reason(&self) -> Option<&String> {
        self.unsupported.as_ref().or(self.expected_failure.as_ref())
    }

    fn judge(&self, check: Check) -> Outcome {
        match (check, self.reason()) {
            (Ok(()), None) => Outcome::Passed,
            (Ok(()), Some(reason)) => Outcome::Failed(format!(
                "the case passes, but is listed with the reason `{reason}`: take it off the list"
            )),
            (Err(Stop::Failed(message)), None) => Outcome::Failed(message),
            (Err(Stop::Failed(message)), Some(reason)) => {
                Outcome::ExpectedFailure(format!("{reason}: {message}"))
            }
            (Err(Stop::Skipped(why)), _) => Outcome::Skipped(why),
        }
    }
}

/// Runs a case on a thread of its own. A thread that hangs is left behind: nothing can end it.
fn run_watched(backend: &Arc<dyn Backend>, case: &'static Case, deadline: Duration) -> Check {
    let (sender, receiver) = mpsc::channel();
    let backend = Arc::clone(backend);
    let run = move || {
        let check = catch_unwind(AssertUnwindSafe(|| {
            let fixture = Fixture::new(&backend)
                .map_err(|status| Stop::failed(format_args!("no client: {status}")))?;
            (case.run)(&fixture)
        }));
        let check = check.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(Stop::Failed(format!(
                "panic: {}",
                text.unwrap_or("of unknown cause")
            )))
        });
        // Whoever waited has given up if this fails.
        sender.send(check).unwrap_or_default();
    };
    let started = thread::Builder::new().name(case.name()).spawn(run);
    if let Err(error) = started {
        return Err(Stop::Failed(format!("no thread for the case: {error}")));
    }
    receiver.recv_timeout(deadline).unwrap_or_else(|_| {
        Err(Stop::Failed(format!(
            "{} hangs: it has not come to an end in {deadline:?}",
            case.name()
        )))
    })
}

fn report(name: &str, outcome: &Outcome, elapsed: Duration) -> Result<(), Failed> {
    let Some(path) = env::var_os(REPORT_VARIABLE) else {
        return Ok(());
    };
    let (word, detail) = match outcome {
        Outcome::Passed => ("passed", ""),
        Outcome::Failed(detail) => ("failed", detail.as_str()),
        Outcome::Skipped(detail) => ("skipped", detail.as_str()),
        Outcome::ExpectedFailure(detail) => ("expected failure", detail.as_str()),
    };
    let mut line = String::new();
    let detail = detail.replace(['\n', '\t'], " ");
    writeln!(line, "{name}\t{word}\t{}\t{detail}", elapsed.as_millis())?;
    // One write per line, so that the lines of several threads do not mix.
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .map_err(|error| format!("the report cannot be written: {error}").into())
}

/// True if `*` in `pattern` can stand for texts so that the whole is `name`.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match name.find(part) {
            Some(place) => name = &name[place + part.len()..],
            None => return false,
        }
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests;
