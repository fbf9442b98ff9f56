//! [`Limits`]: what a client may make the server hold.

use std::time::Duration;

/// What a client may make the server hold.
///
/// A released client treats many errors as the end of its session, so the defaults are generous:
/// they keep a mistake from taking the whole machine, and an ordinary client never meets them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The largest single message, in bytes. Compile requests carry whole programs.
    pub max_message_bytes: usize,
    /// The requests of one session that may be queued or unanswered, in bytes. Beyond it the
    /// server stops reading, and the client's next dispatch waits.
    pub max_pending_request_bytes: usize,
    /// The host buffers of one session, in bytes: uploads that no request has used yet, and arrays
    /// that were read and not fetched yet. Beyond it uploads are discarded, and the arrays that were
    /// to be made from them fail.
    pub max_host_buffer_bytes: u64,
    /// The sessions at one time.
    pub max_sessions: usize,
    /// How often a silent connection is asked whether its peer lives; `None` never asks.
    pub keepalive_interval: Option<Duration>,
    /// How long a peer may take to answer that before its connection is closed. A program that is
    /// suspended (Ctrl-Z, a debugger) does not answer, and its session cannot be taken up again.
    pub keepalive_timeout: Duration,
    /// How long a shutdown waits for connections to close and for memory to be freed.
    pub shutdown_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // The format of the messages cannot say more.
            max_message_bytes: (1 << 31) - 1,
            max_pending_request_bytes: 1 << 30,
            max_host_buffer_bytes: 1 << 40,
            max_sessions: 1024,
            keepalive_interval: Some(Duration::from_secs(60)),
            keepalive_timeout: Duration::from_secs(3600),
            shutdown_grace: Duration::from_secs(5),
        }
    }
}
