//! The envelope around values of several kinds: the name of the kind and its bytes.

use bytes::Bytes;

use crate::proto::xla::ifrt::Serialized;
use crate::status::{Result, Status};

/// All kinds of IFRT are named within it.
const NAMESPACE: &str = "xla::ifrt::";

/// Messages of a few bytes become structures of hundreds, so a reader that does not know how much
/// memory its peer may cost sets a limit. The largest machines need a tenth of this.
const MAX_BYTES: usize = 4 << 20;

/// The name of the kind, without the namespace, and the bytes. A foreign name becomes empty.
pub(super) fn open<'a>(serialized: &'a Serialized, what: &str) -> Result<(&'a str, Bytes)> {
    if serialized.data.len() > MAX_BYTES {
        return Err(Status::invalid_argument(format!(
            "a serialized {what} of {} bytes exceeds the limit of {MAX_BYTES}",
            serialized.data.len()
        )));
    }
    let name = serialized.type_name.strip_prefix(NAMESPACE);
    Ok((name.unwrap_or_default(), serialized.data.clone()))
}

/// The envelope of a kind of IFRT.
pub(super) fn seal(name: &str, data: impl Into<Bytes>) -> Serialized {
    Serialized {
        type_name: format!("{NAMESPACE}{name}"),
        data: data.into(),
    }
}
