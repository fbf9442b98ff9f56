//! The compile options that a runtime is given: a serialized `xla.CompileOptionsProto`.
//!
//! The proto is never empty (some plugins abort on an empty one) and never has debug options: a
//! dump of the defaults of one XLA version would be forced onto another. Tuning goes through
//! overrides by name instead.
//!
//! # Mirrors
//! `jax/_src/compiler.py`, `get_compile_options`.

use std::collections::BTreeMap;

use bytes::Bytes;
use ifrt::proto::xla::device_assignment_proto::ComputationDevice;
use ifrt::proto::xla::option_override_proto::Value;
use ifrt::proto::xla::{
    CompileOptionsProto, DeviceAssignmentProto, ExecutableBuildOptionsProto, OptionOverrideProto,
};
use ifrt::{DeviceList, Result, Status};
use prost::Message;

/// The value of a compiler option.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OptionValue {
    /// Text.
    String(String),
    /// A switch.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
}

macro_rules! from {
    ($($variant:ident: $type:ty;)*) => {
        $(impl From<$type> for OptionValue {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        })*
    };
}

from! {
    String: &str;
    String: String;
    Bool: bool;
    Int: i64;
    Float: f64;
}

/// Compiler options by name, for example `xla_cpu_enable_fast_math`.
pub type CompilerOptions = BTreeMap<String, OptionValue>;

/// The options for one partition per device, in the order of `devices`.
///
/// # Errors
/// INVALID_ARGUMENT without devices or with more than fit.
pub fn serialize(devices: &DeviceList, options: &CompilerOptions) -> Result<Bytes> {
    let too_many = |_| Status::invalid_argument(format!("too many devices: {}", devices.len()));
    let count = i32::try_from(devices.len()).map_err(too_many)?;
    if count == 0 {
        return Err(Status::invalid_argument(
            "a program needs at least one device",
        ));
    }
    let assignment = DeviceAssignmentProto {
        replica_count: 1,
        computation_count: count,
        computation_devices: devices
            .ids()
            .map(|id| ComputationDevice {
                replica_device_ids: vec![i64::from(id.0)],
            })
            .collect(),
    };
    let build = ExecutableBuildOptionsProto {
        device_ordinal: -1,
        num_replicas: 1,
        num_partitions: i64::from(count),
        use_spmd_partitioning: true,
        device_assignment: Some(assignment),
        // Runtimes fall back to the older partitioner by themselves where a module asks for it.
        use_shardy_partitioner: true,
        ..ExecutableBuildOptionsProto::default()
    };
    let value = |value: &OptionValue| match value {
        OptionValue::String(text) => Value::StringField(text.clone()),
        OptionValue::Bool(flag) => Value::BoolField(*flag),
        OptionValue::Int(number) => Value::IntField(*number),
        OptionValue::Float(number) => Value::DoubleField(*number),
    };
    let proto = CompileOptionsProto {
        executable_build_options: Some(build),
        env_option_overrides: options
            .iter()
            .map(|(name, option)| {
                let value = Some(value(option));
                (name.clone(), OptionOverrideProto { value })
            })
            .collect(),
        ..CompileOptionsProto::default()
    };
    Ok(proto.encode_to_vec().into())
}
