//! What a case says: that it passed, failed or could not be run.

use std::fmt::{Debug, Display};
use std::panic::Location;

use crate::status::{Code, Result, Status};

/// Why a case ends early.
#[derive(Debug)]
pub(crate) enum Stop {
    Failed(String),
    Skipped(String),
}

pub(crate) type Check<T = ()> = std::result::Result<T, Stop>;

impl Stop {
    #[track_caller]
    pub(crate) fn failed(what: impl Display) -> Self {
        Self::Failed(format!("{what}\n  at {}", Location::caller()))
    }

    pub(crate) fn skipped(why: impl Into<String>) -> Self {
        Self::Skipped(why.into())
    }
}

/// An error where none was expected. The place is that of the question mark.
impl From<Status> for Stop {
    #[track_caller]
    fn from(status: Status) -> Self {
        Self::failed(status)
    }
}

#[track_caller]
pub(crate) fn check(holds: bool, what: &str) -> Check {
    if holds {
        return Ok(());
    }
    Err(Stop::failed(format_args!("it does not hold that {what}")))
}

#[track_caller]
pub(crate) fn equal<T: PartialEq<U> + Debug, U: Debug>(found: T, expected: U, what: &str) -> Check {
    if found == expected {
        return Ok(());
    }
    Err(Stop::failed(format_args!(
        "{what} is wrong\n  found:    {found:?}\n  expected: {expected:?}"
    )))
}

/// The result must be an error of this code.
#[track_caller]
pub(crate) fn refused<T: Debug>(result: Result<T>, code: Code, what: &str) -> Check<Status> {
    match result {
        Err(status) if status.code() == code => Ok(status),
        Err(status) => Err(Stop::failed(format_args!(
            "{what} should fail with {code}, but fails with {status}"
        ))),
        Ok(value) => Err(Stop::failed(format_args!(
            "{what} should fail with {code}, but gives {value:?}"
        ))),
    }
}

/// The result must be an error of this code that says `text`.
#[track_caller]
pub(crate) fn refused_saying<T: Debug>(
    result: Result<T>,
    code: Code,
    text: &str,
    what: &str,
) -> Check {
    let status = refused(result, code, what)?;
    if status.message().contains(text) {
        return Ok(());
    }
    Err(Stop::failed(format_args!(
        "the error of {what} should say `{text}`, but is {status}"
    )))
}
