//! The end of the process while clients are being destroyed.
//!
//! A client is destroyed on a thread of its own, which a process that ends does not wait for; the
//! plugin's statics would go while that thread still uses them, and some plugins abort then. So the
//! process waits for clients that are on their way out.
//!
//! What is not here: clients that somebody still holds. They stay as they are.

use std::ffi::c_int;
use std::panic::catch_unwind;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ifrt::Completion;

/// Destroying a client waits for running programs. A process that is to end does so for this long.
const PATIENCE: Duration = Duration::from_secs(10);

/// Ready when its client is gone.
static ENDING: Mutex<Vec<Completion>> = Mutex::new(Vec::new());

unsafe extern "C" {
    fn atexit(f: extern "C" fn()) -> c_int;
}

/// Makes the process wait for this when it ends.
///
/// The order matters: what was registered last runs first. By now the plugin has made the statics
/// that its client needs, so it still has them when this runs.
pub(super) fn wait_for(gone: Completion) {
    let mut ending = lock();
    ending.retain(|other| !other.is_ready());
    ending.push(gone);
    drop(ending);
    // SAFETY: S13.
    if unsafe { atexit(wait) } != 0 {
        tracing::warn!("a process that ends now will not wait for its clients");
    }
}

/// Nothing is logged here: subscribers may be gone.
extern "C" fn wait() {
    // An unwinding panic must not reach C, and there is nobody left to tell.
    let _waited = catch_unwind(|| {
        let ending = std::mem::take(&mut *lock());
        let deadline = Instant::now() + PATIENCE;
        for gone in ending {
            gone.wait_timeout(deadline.saturating_duration_since(Instant::now()));
        }
    });
}

fn lock() -> MutexGuard<'static, Vec<Completion>> {
    ENDING.lock().unwrap_or_else(PoisonError::into_inner)
}
