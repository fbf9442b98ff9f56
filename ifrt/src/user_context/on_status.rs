//! Contexts on errors: attached as ids, kept alive, and expanded into text in the end.
//!
//! # Mirrors
//! `xla/python/ifrt/user_context_status_util.h`, and `CustomStatusExpanderRegistry` of
//! `xla/python/ifrt/user_context_registry.h`.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;

use super::registry::{TrackedUserContextRef, lookup, register};
use super::{USER_CONTEXT_PAYLOAD, UserContextRef};
use crate::status::{Result, Status};

/// Changes a status before it is shown, mostly by turning a payload into text.
pub type StatusExpander = Arc<dyn Fn(Status) -> Status + Send + Sync>;

/// Text that keeps a context alive for as long as the payload of a status lives.
struct HeldId {
    text: String,
    _context: TrackedUserContextRef,
}

impl AsRef<[u8]> for HeldId {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

fn with_held(status: Status, context: TrackedUserContextRef) -> Status {
    let held = HeldId {
        text: context.user_context().id().to_string(),
        _context: context,
    };
    status.with_payload(USER_CONTEXT_PAYLOAD, Bytes::from_owner(held))
}

/// The id that a status carries; the payload itself if it is none.
fn id_of(payload: &Bytes) -> Result<u64, &Bytes> {
    std::str::from_utf8(payload)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or(payload)
}

/// The status with the id of the context that caused it; the context is not kept alive.
#[must_use]
pub fn attach_id(status: Status, id: u64) -> Status {
    status.with_payload(USER_CONTEXT_PAYLOAD, id.to_string().into_bytes())
}

/// The status with the context that caused it, which lives as long as the status.
///
/// On the wire only the id is left.
#[must_use]
pub fn attach_ref(status: Status, context: UserContextRef) -> Status {
    with_held(status, register(context))
}

/// The status with the context whose id it carries, if somebody still holds that context.
///
/// For errors that came over the wire.
#[must_use]
pub fn reattach_refs(status: Status) -> Status {
    let id = status
        .payload(USER_CONTEXT_PAYLOAD)
        .and_then(|payload| id_of(payload).ok());
    match id.and_then(lookup) {
        Some(context) => with_held(status, context),
        None => status,
    }
}

/// When an expander runs, and the payload that it is for.
type Key = (i32, String);

static EXPANDERS: RwLock<BTreeMap<Key, StatusExpander>> = RwLock::new(BTreeMap::new());

/// The order of the expander of user contexts.
const STANDARD_ORDER: i32 = -1;

/// Adds an expander for statuses with the payload `payload`. Expanders run by ascending `order`;
/// `None` is after all others. That of user contexts has the order −1.
///
/// # Errors
/// ALREADY_EXISTS if there is one for that payload and order.
pub fn register_expander(
    payload: impl Into<String>,
    order: Option<i32>,
    expander: StatusExpander,
) -> Result<()> {
    let key = (order.unwrap_or(i32::MAX), payload.into());
    let mut expanders = EXPANDERS.write().unwrap_or_else(PoisonError::into_inner);
    if key == (STANDARD_ORDER, USER_CONTEXT_PAYLOAD.to_owned()) || expanders.contains_key(&key) {
        return Err(Status::already_exists(format!(
            "there is an expander for the payload {:?} with the order {}",
            key.1, key.0
        )));
    }
    expanders.insert(key, expander);
    Ok(())
}

/// The status as it is shown to people: the context as text after the message instead of an id in
/// a payload, and whatever [`register_expander`] added.
///
/// A context that nobody holds any more leaves a sentence that says so.
#[must_use]
pub fn expand(status: Status) -> Status {
    let standard = (STANDARD_ORDER, USER_CONTEXT_PAYLOAD.to_owned());
    // Expanders are foreign code, so none runs under the lock.
    let (before, after): (Vec<_>, Vec<_>) = EXPANDERS
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .iter()
        .map(|(key, expander)| (*key < standard, Arc::clone(expander)))
        .partition(|(is_before, _)| *is_before);
    let run = |status, (_, expander): (bool, StatusExpander)| expander(status);
    let status = before.into_iter().fold(status, run);
    after.into_iter().fold(expand_context(status), run)
}

fn expand_context(status: Status) -> Status {
    let Some(payload) = status.payload(USER_CONTEXT_PAYLOAD) else {
        return status;
    };
    let text = match id_of(payload) {
        Err(text) => format!(
            "(failed to parse a user context ID: {})",
            String::from_utf8_lossy(text)
        ),
        Ok(id) => lookup(id).map_or_else(
            || format!("(failed to find a user context for ID: {id})"),
            |context| context.user_context().debug_string(),
        ),
    };
    let message = format!("{}\n\t\n{text}", status.message());
    status
        .without_payload(USER_CONTEXT_PAYLOAD)
        .with_message(message)
}
