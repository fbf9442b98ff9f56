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
//! # Memory kinds
//! Readers take an absent kind and `device` for the same; writers always write the kind. Peers of
//! every age understand that, while they differ in what an absent kind means to them.
//!
//! # What is not here
//! - A registry: the kinds are closed, so reading is a `match` over their names.
//! - The modules inside programs and the options of XLA, which are passed on as bytes, because a
//!   message that is decoded and encoded again loses the fields that we do not know.
//! - IFRT IR, which is passed on whole.
//!
//! # Mirrors
//! `xla/python/ifrt/serdes.h`, `serdes_version.h` and the `*_serdes.cc` files.

mod array_spec;
mod envelope;
mod execute_options;
mod layout;
mod program;
mod remap_plan;
mod shape;
mod sharding;
mod sharding_param;
mod sharding_spec;
mod status;
mod value;
mod version;

pub use array_spec::{
    abstract_array_spec_from_proto, abstract_array_spec_to_proto, array_spec_from_proto,
    array_spec_to_proto,
};
pub use execute_options::{execute_options_from_proto, execute_options_to_proto};
pub use layout::{
    compact_layout_from_proto, compact_layout_to_proto, layout_from_proto, layout_to_proto,
    xla_layout_from_proto, xla_layout_to_proto,
};
pub use program::{
    compile_options_from_proto, compile_options_to_proto, program_from_proto, program_to_proto,
};
pub use remap_plan::{remap_plan_from_proto, remap_plan_to_proto};
pub use shape::{
    dynamic_shape_from_proto, dynamic_shape_to_proto, index_domain_from_proto,
    index_domain_to_proto, index_from_proto, index_to_proto, shape_from_proto, shape_to_proto,
};
pub use sharding::{sharding_from_proto, sharding_to_proto};
pub use sharding_spec::{sharding_spec_from_proto, sharding_spec_to_proto};
pub use status::{result_from_proto, status_from_proto, status_to_proto};
pub use value::{
    attribute_map_from_proto, attribute_map_to_proto, device_list_from_proto, device_list_to_proto,
    dtype_from_proto, dtype_to_proto,
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

/// The error for a value that has no form at the version that the reader knows.
fn unsupported(version: SerDesVersion, what: &str, with: &str) -> Status {
    Status::failed_precondition(format!(
        "Unsupported IFRT SerDes version {} for {what} serialization{with}",
        version.number()
    ))
}

/// The error for a message that lacks a field without which it means nothing.
fn missing(what: &str, field: &str) -> Status {
    Status::invalid_argument(format!("{what} has no {field}"))
}
