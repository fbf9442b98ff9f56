//! The end of the process while something is being destroyed.
//!
//! Buffers, executables and clients are destroyed on threads that a process that ends does not wait
//! for; the plugin's statics would go while such a thread still uses them, and some plugins abort
//! then. So the process waits for what is being destroyed, and what comes later stays as it is.

use std::ffi::c_int;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Destroying a client waits for running programs. A process that is to end does so for this long.
const PATIENCE: Duration = Duration::from_secs(10);

/// A plugin makes its statics when it is first used for something; these many uses are followed.
const FOLLOWED_USES: u32 = 64;

static STATE: Mutex<State> = Mutex::new(State {
    is_ending: false,
    passes: 0,
});

static ALL_BACK: Condvar = Condvar::new();

struct State {
    /// The process is ending.
    is_ending: bool,
    /// How many passes are out.
    passes: usize,
}

/// The permission to destroy something, for which a process that ends waits to be given back.
#[derive(Debug)]
pub(super) struct Pass(());

impl Pass {
    /// `None` if the process is ending, and takes everything along.
    pub(super) fn take() -> Option<Self> {
        let mut state = lock();
        if state.is_ending {
            return None;
        }
        state.passes += 1;
        Some(Self(()))
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut state = lock();
        state.passes -= 1;
        if state.is_ending && state.passes == 0 {
            ALL_BACK.notify_all();
        }
    }
}

unsafe extern "C" {
    fn atexit(f: extern "C" fn()) -> c_int;
}

/// To be called after the plugin has done something of a new kind.
///
/// The order matters: what was registered last runs first, so the plugin still has the statics that
/// it has made by now.
pub(super) fn follow() {
    static USES: AtomicU32 = AtomicU32::new(0);
    if USES.fetch_add(1, Ordering::Relaxed) >= FOLLOWED_USES {
        return;
    }
    // SAFETY: S13.
    if unsafe { atexit(wait) } != 0 {
        tracing::warn!("a process that ends now will not wait for what is being destroyed");
    }
}

/// Nothing is logged here: subscribers may be gone.
extern "C" fn wait() {
    // An unwinding panic must not reach C, and there is nobody left to tell.
    let _waited = catch_unwind(|| {
        let mut state = lock();
        state.is_ending = true;
        let waited = ALL_BACK.wait_timeout_while(state, PATIENCE, |state| state.passes > 0);
        drop(waited);
    });
}

fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}
