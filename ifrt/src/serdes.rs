//! The values of the contract on the wire.
//!
//! Each value has a pair of functions, `NAME_from_proto` and `NAME_to_proto`. Reading never trusts:
//! numbers are checked, devices must exist, unknown kinds and newer formats are errors.
//!
//! # Versions
//! One number covers all formats ([`SerDesVersion`]). A writer is told the newest version that the
//! reader knows and stores in the message the version at which *that* format last changed, which is
//! mostly 0 and therefore absent. A reader looks only at the number in the message.
//!
//! # What is not here
//! Programs and compile options, which are passed on as bytes ([`crate::program`]).
//!
//! # Mirrors
//! `xla/python/ifrt/serdes.h`, `serdes_version.h` and the `*_serdes.cc` files.

mod array_spec;
mod execute_options;
mod layout;
mod remap_plan;
mod sharding;
mod status;
mod value;
mod version;

pub use array_spec::{array_spec_from_proto, array_spec_to_proto};
pub use execute_options::{execute_options_from_proto, execute_options_to_proto};
pub use layout::{layout_from_proto, layout_to_proto, xla_layout_from_proto, xla_layout_to_proto};
pub use remap_plan::{remap_plan_from_proto, remap_plan_to_proto};
pub use sharding::{sharding_from_proto, sharding_to_proto};
pub use status::{result_from_proto, status_from_proto, status_to_proto};
pub use value::{
    attribute_map_from_proto, attribute_map_to_proto, device_list_from_proto, device_list_to_proto,
    dtype_from_proto, dtype_to_proto, shape_from_proto, shape_to_proto,
};
pub use version::SerDesVersion;

use crate::status::{Result, Status};

/// Refuses a format that is newer than the one that is understood here.
fn check_version(found: i32, newest: i32, what: &str) -> Result<()> {
    if (0..=newest).contains(&found) {
        return Ok(());
    }
    Err(Status::failed_precondition(format!(
        "Unsupported IFRT SerDes version {found} for {what} deserialization"
    )))
}

/// The error for a message that lacks a field without which it means nothing.
fn missing(what: &str, field: &str) -> Status {
    Status::invalid_argument(format!("{what} has no {field}"))
}

