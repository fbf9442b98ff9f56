//! [`Client`]: a client of a plugin, with its devices and memories.

mod enumerate;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ifrt::attribute_map::AttributeMap;
use ifrt::{Completion, Promise, Result, Status};

use super::api::Api;
use super::bytes::{lent, lent_text};
use super::exit;
use super::handle::Handle;
use super::named_value::NamedValues;
use super::reaper::Reaper;
use crate::sys;
use crate::sys::api::{
    ClientCreate, ClientDefaultDeviceAssignment, ClientDestroy, ClientPlatformName,
    ClientPlatformVersion, ClientProcessIndex,
};
use crate::sys::client::{
    ClientCreateArgs, ClientDefaultDeviceAssignmentArgs, ClientDestroyArgs, ClientPlatformNameArgs,
    ClientPlatformVersionArgs, ClientProcessIndexArgs,
};

/// The platform whose frees are known to be cheap: what a small buffer costs was measured.
const CPU: &str = "cpu";

/// What a device says about itself. Devices and memories refer to each other by position.
#[derive(Debug)]
pub(crate) struct DeviceData {
    pub(super) raw: Handle<sys::Device>,
    pub(crate) id: i32,
    pub(crate) process_index: i32,
    pub(crate) local_hardware_id: Option<i32>,
    pub(crate) is_addressable: bool,
    pub(crate) kind: String,
    pub(crate) to_text: String,
    pub(crate) debug_string: String,
    pub(crate) attributes: AttributeMap,
    pub(crate) memories: Vec<usize>,
    pub(crate) default_memory: Option<usize>,
}

/// What a memory says about itself.
#[derive(Debug)]
pub(crate) struct MemoryData {
    pub(super) raw: Handle<sys::Memory>,
    pub(crate) id: i32,
    pub(crate) kind: String,
    pub(crate) to_text: String,
    pub(crate) debug_string: String,
    pub(crate) devices: Vec<usize>,
}

/// Counts of a client's buffers, for tests and for whoever watches a server.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) made: AtomicU64,
    pub(crate) freed_in_place: AtomicU64,
    pub(crate) freed_by_reaper: AtomicU64,
}

/// A client. A cheap clone; the C client goes when the last clone is gone, on a thread of its own.
#[derive(Clone, Debug)]
pub(crate) struct Client(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    api: &'static Api,
    raw: Handle<sys::Client>,
    reaper: Reaper,
    devices: Vec<Arc<DeviceData>>,
    memories: Vec<Arc<MemoryData>>,
    platform_name: String,
    platform_version: String,
    process_index: i32,
    counters: Arc<Counters>,
    gone: Completion,
    /// Fulfilled when the C client is destroyed. Taken once, by the destructor.
    promise: Option<Promise>,
}

impl Client {
    /// Makes a client.
    ///
    /// `options` must have been checked; see [`crate::options`].
    ///
    /// # Errors
    /// Those of the plugin.
    pub(crate) fn create(api: &'static Api, options: &AttributeMap) -> Result<Self> {
        let reaper = Reaper::start()?;
        let options = NamedValues::new(options);
        let mut args = ClientCreateArgs {
            create_options: options.as_ptr(),
            num_options: options.len(),
            ..ClientCreateArgs::NEW
        };
        // SAFETY: S3; the options have types that plugins know.
        if let Err(status) = unsafe { api.call::<ClientCreate>(&mut args) } {
            reaper.close(|| {});
            return Err(status);
        }
        exit::follow();
        let raw = match Handle::new(args.client, "PJRT_Client_Create") {
            Ok(raw) => raw,
            Err(status) => {
                reaper.close(|| {});
                return Err(status);
            }
        };
        let (promise, gone) = Completion::pair();
        // From here on the destructor frees the C client, whatever fails.
        let mut inner = Inner {
            api,
            raw,
            reaper,
            devices: Vec::new(),
            memories: Vec::new(),
            platform_name: String::new(),
            platform_version: String::new(),
            process_index: 0,
            counters: Arc::default(),
            gone,
            promise: Some(promise),
        };
        inner.platform_name = inner.read_platform_name()?;
        inner.platform_version = inner.read_platform_version()?;
        inner.process_index = inner.read_process_index()?;
        (inner.devices, inner.memories) = enumerate::devices_and_memories(api, raw)?;
        Ok(Self(Arc::new(inner)))
    }

    pub(super) fn api(&self) -> &'static Api {
        self.0.api
    }

    pub(super) fn raw(&self) -> *mut sys::Client {
        self.0.raw.as_ptr()
    }

    /// Hands a job to the thread that frees; it runs before the C client is destroyed.
    pub(super) fn reap(&self, job: impl FnOnce() + Send + 'static) {
        self.0.reaper.push(job);
    }

    /// The minor version of the plugin's API.
    pub(crate) fn minor(&self) -> i32 {
        self.0.api.minor()
    }

    pub(crate) fn is_cpu(&self) -> bool {
        self.0.platform_name == CPU
    }

    pub(crate) fn platform_name(&self) -> &str {
        &self.0.platform_name
    }

    pub(crate) fn platform_version(&self) -> &str {
        &self.0.platform_version
    }

    pub(crate) fn process_index(&self) -> i32 {
        self.0.process_index
    }

    /// All devices, in the order of the plugin.
    pub(crate) fn devices(&self) -> &[Arc<DeviceData>] {
        &self.0.devices
    }

    /// All memories that this process can reach.
    pub(crate) fn memories(&self) -> &[Arc<MemoryData>] {
        &self.0.memories
    }

    pub(crate) fn counters(&self) -> &Arc<Counters> {
        &self.0.counters
    }

    /// Ready when the C client has been destroyed, after all that belonged to it.
    pub(crate) fn gone(&self) -> Completion {
        self.0.gone.clone()
    }

    pub(super) fn device_at(&self, position: usize) -> Result<&DeviceData> {
        self.0
            .devices
            .get(position)
            .map(|data| &**data)
            .ok_or_else(|| Status::internal(format!("the client has no device {position}")))
    }

    pub(super) fn memory_at(&self, position: usize) -> Result<&MemoryData> {
        self.0
            .memories
            .get(position)
            .map(|data| &**data)
            .ok_or_else(|| Status::internal(format!("the client has no memory {position}")))
    }

    /// The position of a device that the plugin named by its pointer.
    pub(super) fn device_position(&self, raw: *mut sys::Device) -> Result<usize> {
        self.0
            .devices
            .iter()
            .position(|device| device.raw.as_ptr() == raw)
            .ok_or_else(|| Status::internal("the plugin named a device that it did not list"))
    }

    /// The ids of the devices that a program runs on unless told otherwise, replica by replica.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if there are not enough devices: the plugin would invent ids or abort.
    pub(crate) fn default_device_assignment(
        &self,
        num_replicas: usize,
        num_partitions: usize,
    ) -> Result<Vec<Vec<i32>>> {
        let available = self.0.devices.len();
        let wanted = num_replicas
            .checked_mul(num_partitions)
            .filter(|n| (1..=available).contains(n));
        let (Some(wanted), Ok(replicas), Ok(partitions)) = (
            wanted,
            i32::try_from(num_replicas),
            i32::try_from(num_partitions),
        ) else {
            return Err(Status::invalid_argument(format!(
                "no default assignment for {num_replicas} replicas of {num_partitions} partitions: \
                 both must be at least 1, and the client has {available} devices"
            )));
        };
        let mut ids = vec![0_i32; wanted];
        let mut args = ClientDefaultDeviceAssignmentArgs {
            client: self.raw(),
            num_replicas: replicas,
            num_partitions: partitions,
            default_assignment_size: ids.len(),
            default_assignment: ids.as_mut_ptr(),
            ..ClientDefaultDeviceAssignmentArgs::NEW
        };
        // SAFETY: S3 and S4; the plugin fills as many ids as the size says.
        unsafe { self.api().call::<ClientDefaultDeviceAssignment>(&mut args) }?;
        Ok(ids.chunks(num_partitions).map(<[i32]>::to_vec).collect())
    }
}

impl Inner {
    fn read_platform_name(&self) -> Result<String> {
        let mut args = ClientPlatformNameArgs {
            client: self.raw.as_ptr(),
            ..ClientPlatformNameArgs::NEW
        };
        // SAFETY: S3 and S4.
        unsafe { self.api.call::<ClientPlatformName>(&mut args) }?;
        // SAFETY: S5 and S9.
        Ok(unsafe { lent_text(args.platform_name, args.platform_name_size) })
    }

    fn read_platform_version(&self) -> Result<String> {
        let mut args = ClientPlatformVersionArgs {
            client: self.raw.as_ptr(),
            ..ClientPlatformVersionArgs::NEW
        };
        // SAFETY: S3 and S4.
        unsafe { self.api.call::<ClientPlatformVersion>(&mut args) }?;
        // SAFETY: S5 and S9.
        let version = unsafe { lent(args.platform_version, args.platform_version_size) };
        Ok(String::from_utf8_lossy(version).into_owned())
    }

    fn read_process_index(&self) -> Result<i32> {
        let mut args = ClientProcessIndexArgs {
            client: self.raw.as_ptr(),
            ..ClientProcessIndexArgs::NEW
        };
        // SAFETY: S3 and S4.
        unsafe { self.api.call::<ClientProcessIndex>(&mut args) }?;
        Ok(args.process_index)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let (api, raw, promise) = (self.api, self.raw, self.promise.take());
        self.reaper.close(move || {
            let mut args = ClientDestroyArgs {
                client: raw.as_ptr(),
                ..ClientDestroyArgs::NEW
            };
            // SAFETY: S3 and S4; this is the last use of the client, on an ordinary thread.
            let result = unsafe { api.call::<ClientDestroy>(&mut args) };
            if let Err(status) = &result {
                tracing::warn!(%status, "a client cannot be destroyed");
            }
            if let Some(promise) = promise {
                promise.set(result);
            }
        });
    }
}

impl Counters {
    pub(super) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
