//! The end of the process while clients are being destroyed.
//!
//! A client is destroyed on a thread of its own, which a process that ends does not wait for; the
//! plugin's statics would go while that thread still uses them, and some plugins abort then. So the
//! process waits for clients that are on their way out, and what comes later stays as it is.

use std::ffi::c_int;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ifrt::Completion;

/// Destroying a client waits for running programs. A process that is to end does so for this long.
const PATIENCE: Duration = Duration::from_secs(10);

/// A plugin makes its statics when it is first used for something; these many uses are followed.
const FOLLOWED_USES: u32 = 32;

static ENDING: Mutex<Ending> = Mutex::new(Ending {
    has_begun: false,
    clients: Vec::new(),
});

struct Ending {
    /// The process is ending.
    has_begun: bool,
    /// Each is ready when its client is gone.
    clients: Vec<Completion>,
}

unsafe extern "C" {
    fn atexit(f: extern "C" fn()) -> c_int;
}

/// Whether a client may still be destroyed; if so, a process that ends will wait until it is gone.
pub(super) fn may_destroy(gone: Completion) -> bool {
    let mut ending = lock();
    if ending.has_begun {
        return false;
    }
    ending.clients.retain(|other| !other.is_ready());
    ending.clients.push(gone);
    drop(ending);
    register();
    true
}

/// To be called after the plugin has done something of a new kind.
///
/// The order matters: what was registered last runs first, so the plugin still has the statics that
/// it has made by now.
pub(super) fn follow() {
    static USES: AtomicU32 = AtomicU32::new(0);
    if USES.fetch_add(1, Ordering::Relaxed) < FOLLOWED_USES {
        register();
    }
}

fn register() {
    // SAFETY: S13.
    if unsafe { atexit(wait) } != 0 {
        tracing::warn!("a process that ends now will not wait for its clients");
    }
}

/// Nothing is logged here: subscribers may be gone.
extern "C" fn wait() {
    // An unwinding panic must not reach C, and there is nobody left to tell.
    let _waited = catch_unwind(|| {
        let mut ending = lock();
        ending.has_begun = true;
        let clients = std::mem::take(&mut ending.clients);
        drop(ending);
        let deadline = Instant::now() + PATIENCE;
        for gone in clients {
            gone.wait_timeout(deadline.saturating_duration_since(Instant::now()));
        }
    });
}

fn lock() -> MutexGuard<'static, Ending> {
    ENDING.lock().unwrap_or_else(PoisonError::into_inner)
}
