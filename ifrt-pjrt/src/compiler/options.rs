//! Compile options: what this runtime has to know of them, and what plugins do not survive.
//!
//! The options are passed on as they came: decoding and encoding them again would lose what newer
//! versions put in.

use std::sync::Arc;

use bytes::Bytes;
use ifrt::device::DeviceId;
use ifrt::device_list::DeviceList;
use ifrt::proto::xla::device_assignment_proto::ComputationDevice;
use ifrt::proto::xla::{CompileOptionsProto, DeviceAssignmentProto, ExecutableBuildOptionsProto};
use ifrt::{Client, Result, Status};
use prost::Message;

use crate::client::PjrtClient;
use crate::device::PjrtDevice;

/// Compile options that a plugin can be given.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    /// The serialized `CompileOptionsProto`.
    pub(crate) bytes: Bytes,
    /// The devices in the order of the assignment; `None` if the options do not name them.
    pub(crate) devices: Option<DeviceList>,
    /// The program runs on any one device.
    pub(crate) is_portable: bool,
}

fn invalid(message: impl Into<String>) -> Status {
    Status::invalid_argument(message)
}

impl Checked {
    /// Checks a serialized `CompileOptionsProto`; `devices` override its device assignment.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for options that cannot be read, that ask for no replica, for more devices
    /// than there are, or for devices that there are not.
    pub(crate) fn new(
        client: &Arc<PjrtClient>,
        bytes: &Bytes,
        devices: Option<DeviceList>,
    ) -> Result<Self> {
        let options = CompileOptionsProto::decode(bytes.clone())
            .map_err(|error| invalid(format!("the compile options cannot be read: {error}")))?;
        let is_portable = options.compile_portable_executable;
        let build = options.executable_build_options.ok_or_else(|| {
            invalid(
                "the compile options have no build options; set num_replicas and num_partitions",
            )
        })?;
        let (num_replicas, num_partitions) = counts(client, &build)?;
        if let Some(devices) = &devices {
            for device in devices {
                PjrtDevice::position_of(device, client.id())?;
            }
            if devices.len() != num_replicas * num_partitions {
                return Err(invalid(format!(
                    "{} devices were given for {num_replicas} replicas of {num_partitions} \
                     partitions",
                    devices.len()
                )));
            }
        }
        let assigned = build
            .device_assignment
            .as_ref()
            .map(|assignment| read_assignment(client, assignment, num_replicas, num_partitions))
            .transpose()?;
        let devices = match (devices, &assigned) {
            (None, None) if num_replicas * num_partitions == 1 && !is_portable => {
                ordinal(client, build.device_ordinal)?
            }
            (devices, _) => devices,
        };
        if is_portable {
            return Ok(Self {
                bytes: bytes.clone(),
                devices: None,
                is_portable,
            });
        }
        match (devices, assigned) {
            (Some(devices), assigned) if assigned.as_ref() != Some(&devices) => {
                let bytes = with_assignment(bytes, &devices, num_replicas, num_partitions)?;
                Ok(Self {
                    bytes,
                    devices: Some(devices),
                    is_portable,
                })
            }
            (_, assigned) => Ok(Self {
                bytes: bytes.clone(),
                devices: assigned,
                is_portable,
            }),
        }
    }
}

fn counts(client: &PjrtClient, build: &ExecutableBuildOptionsProto) -> Result<(usize, usize)> {
    let available = client.devices().len();
    let count = |name: &str, value: i64| {
        usize::try_from(value)
            .ok()
            .filter(|value| (1..=available.max(1)).contains(value))
            .ok_or_else(|| {
                invalid(format!(
                    "the compile options have {name} = {value}; it must be at least 1 and at most \
                     the number of devices, which is {available}"
                ))
            })
    };
    let replicas = count("num_replicas", build.num_replicas)?;
    let partitions = count("num_partitions", build.num_partitions)?;
    match replicas.checked_mul(partitions) {
        Some(wanted) if wanted <= available => Ok((replicas, partitions)),
        _ => Err(invalid(format!(
            "the compile options ask for {replicas} replicas of {partitions} partitions, but there \
             are {available} devices"
        ))),
    }
}

/// The device that the options name by its number alone. Plugins do not look at the number, so it is
/// turned into an assignment.
fn ordinal(client: &PjrtClient, ordinal: i64) -> Result<Option<DeviceList>> {
    if ordinal < 0 {
        return Ok(None);
    }
    let device = i32::try_from(ordinal)
        .map_err(|_| invalid(format!("device_ordinal {ordinal} is no device")))
        .and_then(|id| client.lookup_device(DeviceId(id)));
    match device {
        Ok(device) => Ok(Some(DeviceList::new([device]))),
        // Zero is also what stands there if nothing was written.
        Err(_) if ordinal == 0 => Ok(None),
        Err(status) => Err(status),
    }
}

/// The devices of an assignment, replica by replica.
pub(crate) fn read_assignment(
    client: &PjrtClient,
    assignment: &DeviceAssignmentProto,
    num_replicas: usize,
    num_partitions: usize,
) -> Result<DeviceList> {
    let fits = usize::try_from(assignment.replica_count) == Ok(num_replicas)
        && usize::try_from(assignment.computation_count) == Ok(num_partitions)
        && assignment.computation_devices.len() == num_partitions
        && assignment
            .computation_devices
            .iter()
            .all(|partition| partition.replica_device_ids.len() == num_replicas);
    if !fits {
        return Err(invalid(format!(
            "the device assignment is not for {num_replicas} replicas of {num_partitions} partitions"
        )));
    }
    let mut devices = Vec::with_capacity(num_replicas * num_partitions);
    for replica in 0..num_replicas {
        for partition in &assignment.computation_devices {
            let id = partition
                .replica_device_ids
                .get(replica)
                .copied()
                .unwrap_or(-1);
            let device = i32::try_from(id)
                .map_err(|_| invalid(format!("the device assignment names device {id}")))
                .and_then(|id| client.lookup_device(DeviceId(id)))?;
            devices.push(device);
        }
    }
    let mut ids: Vec<DeviceId> = devices.iter().map(|device| device.id()).collect();
    ids.sort_unstable();
    if let Some(twice) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(invalid(format!(
            "the device assignment names device {} twice",
            twice[0]
        )));
    }
    Ok(DeviceList::new(devices))
}

/// The same options with a device assignment.
///
/// A decoder merges messages that follow each other, so the assignment is appended and nothing else
/// is touched. An assignment that is there already would be merged with it, not replaced, so then
/// the lists must not differ.
fn with_assignment(
    bytes: &Bytes,
    devices: &DeviceList,
    num_replicas: usize,
    num_partitions: usize,
) -> Result<Bytes> {
    let before = CompileOptionsProto::decode(bytes.clone())?;
    if before
        .executable_build_options
        .is_some_and(|build| build.device_assignment.is_some())
    {
        return Err(invalid(
            "the devices that were given differ from the device assignment of the compile options",
        ));
    }
    let too_many = |_| invalid("too many devices");
    let ids: Vec<i64> = devices.ids().map(|id| i64::from(id.0)).collect();
    let assignment = DeviceAssignmentProto {
        replica_count: i32::try_from(num_replicas).map_err(too_many)?,
        computation_count: i32::try_from(num_partitions).map_err(too_many)?,
        computation_devices: (0..num_partitions)
            .map(|partition| ComputationDevice {
                replica_device_ids: ids
                    .iter()
                    .skip(partition)
                    .step_by(num_partitions)
                    .copied()
                    .collect(),
            })
            .collect(),
    };
    let added = CompileOptionsProto {
        executable_build_options: Some(ExecutableBuildOptionsProto {
            device_assignment: Some(assignment),
            ..ExecutableBuildOptionsProto::default()
        }),
        ..CompileOptionsProto::default()
    };
    Ok(Bytes::from(
        [bytes.as_ref(), &added.encode_to_vec()].concat(),
    ))
}
