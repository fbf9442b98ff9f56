//! The process groups that are alive, so that an interrupt can end them.
//!
//! The children are in groups of their own and do not receive the interrupt of the terminal.

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long interrupted children may take to end by themselves.
const GRACE: Duration = Duration::from_secs(5);

static GROUPS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
static CHANGED: Condvar = Condvar::new();

fn groups() -> MutexGuard<'static, BTreeSet<i32>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds the group of a child that was started.
pub(super) fn add(group: Pid) {
    groups().insert(group.as_raw_nonzero().get());
}

/// Removes the group of a child that ended and is not yet reaped.
pub(super) fn remove(group: Pid) {
    groups().remove(&group.as_raw_nonzero().get());
    CHANGED.notify_all();
}

/// Sends a signal to every group that is alive.
fn signal_all(alive: &BTreeSet<i32>, signal: Signal) {
    for group in alive.iter().filter_map(|&raw| Pid::from_raw(raw)) {
        // A group that ended in between needs no signal.
        kill_process_group(group, signal).unwrap_or_default();
    }
}

/// Ends all children and then this process when it is interrupted, terminated or hung up.
///
/// # Errors
/// The handlers cannot be installed.
pub(crate) fn end_children_on_signals() -> Result<()> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP]).context("installing the signal handlers")?;
    std::thread::spawn(move || {
        if let Some(number) = signals.forever().next() {
            let alive = groups();
            signal_all(&alive, Signal::TERM);
            let (alive, _) = CHANGED
                .wait_timeout_while(alive, GRACE, |alive| !alive.is_empty())
                .unwrap_or_else(PoisonError::into_inner);
            signal_all(&alive, Signal::KILL);
            std::process::exit(128 + number);
        }
    });
    Ok(())
}
