//! The end of the process, in bounded time.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use ifrt::{Client, Result};
use tokio::runtime::Runtime;

/// How long the plugin may take to give its devices back.
const GRACE: Duration = Duration::from_secs(2);

/// Ends the threads and the client of the plugin, or gives up waiting for them.
///
/// Work that hangs in the plugin must not keep a server alive that was told to stop.
pub(crate) fn within_grace(runtime: Runtime, served: Result<Arc<dyn Client>>) -> Result<()> {
    let (ended, end) = mpsc::channel();
    let spawned = thread::Builder::new()
        .name("exit".to_owned())
        .spawn(move || {
            runtime.shutdown_timeout(GRACE);
            let served = served.map(drop);
            // The receiver may have given up; then nobody wants to know.
            drop(ended.send(served));
        });
    if let Err(error) = spawned {
        tracing::warn!("cannot end in order: {error}");
        return Ok(());
    }
    match end.recv_timeout(2 * GRACE) {
        Ok(served) => served,
        Err(_elapsed) => {
            tracing::warn!(
                "the plugin did not give its devices back within {:?}",
                2 * GRACE
            );
            Ok(())
        }
    }
}
