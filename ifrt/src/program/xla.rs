//! [`XlaCompileOptions`] and what can be read in them.
//!
//! # Mirrors
//! `xla/python/pjrt_ifrt/xla_compiler.h`, `xla/pjrt/pjrt_executable.h`.

use bytes::Bytes;
use prost::Message;

use crate::client::Client;
use crate::device::DeviceId;
use crate::device_list::DeviceList;
use crate::proto::xla::{CompileOptionsProto, DeviceAssignmentProto};
use crate::status::{Result, Status};

/// How to compile a StableHLO module.
#[derive(Clone, Debug, Default)]
pub struct XlaCompileOptions {
    /// A serialized `xla.CompileOptionsProto`. It goes to the compiler as it is, because a
    /// message that is decoded and encoded again loses the fields that we do not know.
    pub compile_options: Bytes,
    /// The devices to run on, in the order of the device assignment; `None` takes them from the
    /// options. Not on the wire.
    pub devices: Option<DeviceList>,
    /// How many outputs go into each bundle of an execution with bundles.
    pub outputs_bundle_slice_sizes: Option<Vec<usize>>,
}

impl XlaCompileOptions {
    /// What we know of the options, to look at only.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the bytes are no `CompileOptionsProto`.
    pub fn view(&self) -> Result<CompileOptionsProto> {
        Ok(CompileOptionsProto::decode(self.compile_options.clone())?)
    }

    /// The devices to run on, in the order of the device assignment: the ones given, else those
    /// that the options name, else the ones that `client` takes by default.
    ///
    /// # Blocking
    /// May be a round trip in a remote runtime, if the options say nothing about devices.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for malformed options and for devices that do not exist; those of
    /// [`Client::default_device_assignment`].
    ///
    /// # Mirrors
    /// `GetDeviceListFromXlaCompileOptions`.
    pub fn resolve_devices(&self, client: &dyn Client) -> Result<DeviceList> {
        if let Some(devices) = &self.devices {
            return Ok(devices.clone());
        }
        let options = self.view()?;
        let build = options.executable_build_options.unwrap_or_default();
        if let Some(assignment) = &build.device_assignment {
            return device_assignment(assignment, client);
        }
        if options.compile_portable_executable {
            let first = client.addressable_devices().first().cloned();
            let first = first.ok_or_else(|| {
                Status::invalid_argument("a portable executable needs an addressable device")
            })?;
            return Ok(DeviceList::new([first]));
        }
        if build.device_ordinal >= 0 {
            let id = i32::try_from(build.device_ordinal).map_err(|_| {
                Status::invalid_argument(format!(
                    "the device ordinal {} of the compile options is too large",
                    build.device_ordinal
                ))
            })?;
            return Ok(DeviceList::new([client.lookup_device(DeviceId(id))?]));
        }
        let count = |number: i64, what: &str| {
            usize::try_from(number).map_err(|_| {
                Status::invalid_argument(format!("the compile options ask for {number} {what}"))
            })
        };
        let replicas = count(build.num_replicas, "replicas")?;
        let partitions = count(build.num_partitions, "partitions")?;
        client
            .default_device_assignment(replicas, partitions)?
            .into_iter()
            .flatten()
            .map(|id| client.lookup_device(id))
            .collect()
    }
}

/// The devices of an assignment, replica by replica.
fn device_assignment(proto: &DeviceAssignmentProto, client: &dyn Client) -> Result<DeviceList> {
    let (replicas, partitions) = (proto.replica_count, proto.computation_count);
    let is_complete = usize::try_from(partitions) == Ok(proto.computation_devices.len())
        && proto
            .computation_devices
            .iter()
            .all(|one| usize::try_from(replicas) == Ok(one.replica_device_ids.len()));
    if !is_complete {
        return Err(Status::invalid_argument(format!(
            "the device assignment of the compile options does not list the devices of {replicas} \
             replicas and {partitions} partitions"
        )));
    }
    let replicas = usize::try_from(replicas).unwrap_or_default();
    let mut devices = Vec::new();
    for replica in 0..replicas {
        for partition in &proto.computation_devices {
            let id = partition.replica_device_ids[replica];
            let id = i32::try_from(id).map_err(|_| {
                Status::invalid_argument(format!("No matching device found for device_id {id}"))
            })?;
            devices.push(client.lookup_device(DeviceId(id))?);
        }
    }
    Ok(devices.into_iter().collect())
}
