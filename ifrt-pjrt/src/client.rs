//! [`PjrtClient`]: a plugin's client as an IFRT client.
//!
//! # Mirrors
//! `xla/python/pjrt_ifrt/pjrt_client.h`.

mod assemble;
mod copy;
mod make;
mod platform_id;
mod reshard;

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ifrt::array::{ArrayCopySemantics, ArrayRef, ShardSemantics};
use ifrt::array_hash::{HashMode, hash_values};
use ifrt::array_spec::ArraySpec;
use ifrt::attribute_map::AttributeMap;
use ifrt::client::{Client, HostShards};
use ifrt::compiler::CompilerRef;
use ifrt::completion::Completion;
use ifrt::device::{DeviceId, DeviceRef};
use ifrt::device_list::DeviceList;
use ifrt::dtype::DType;
use ifrt::host_buffer::HostBuffer;
use ifrt::layout::Layout;
use ifrt::memory::MemoryKind;
use ifrt::remap_plan::RemapPlan;
use ifrt::shape::Shape;
use ifrt::sharding::{Sharding, ShardingRef};
use ifrt::value::ValueRef;
use ifrt::{Code, Result, Status};

use crate::compiler::PjrtCompiler;
use crate::custom_calls;
use crate::device::{self, ClientId, PjrtDevice};
use crate::options::CreateOptions;
use crate::plugin::Plugin;
use crate::safe::api::MAJOR;
use crate::safe::buffer::Placement;
use crate::safe::client::Client as SafeClient;
use crate::safe::layout;
use crate::workers::Workers;

/// The name of this kind of runtime, the same as in C++: JAX and stored executables know it.
pub(crate) const RUNTIME_TYPE: &str = "pjrt_ifrt";

/// The kind of memory whose layout never depends on the device.
const UNPINNED_HOST: &str = "unpinned_host";

/// A plugin's client as an IFRT client.
///
/// The plugin's client lives until the last array, executable and clone of it is gone; then it is
/// destroyed on a thread of its own, since that waits for running work.
pub struct PjrtClient {
    this: Weak<Self>,
    id: ClientId,
    plugin: &'static Plugin,
    safe: SafeClient,
    platform_version: String,
    attributes: AttributeMap,
    devices: Vec<DeviceRef>,
    addressable_devices: Vec<DeviceRef>,
    /// The devices by their position in the plugin's list.
    by_position: Vec<DeviceRef>,
    layouts: Mutex<HashMap<(DType, Shape), Layout>>,
    workers: Arc<Workers>,
}

/// What a client did with its buffers so far, for whoever watches a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BufferCounts {
    /// Buffers that were made.
    pub made: u64,
    /// Buffers that were freed by their last user, because that takes next to nothing.
    pub freed_in_place: u64,
    /// Buffers that were freed by the thread that frees.
    pub freed_by_reaper: u64,
}

impl BufferCounts {
    /// The buffers that exist.
    pub fn live(&self) -> u64 {
        self.made
            .saturating_sub(self.freed_in_place)
            .saturating_sub(self.freed_by_reaper)
    }
}

impl PjrtClient {
    /// Makes a client of the plugin at `plugin`, loading it if need be.
    ///
    /// # Blocking
    /// Takes as long as the plugin needs to find its devices.
    ///
    /// # Errors
    /// Those of [`Plugin::load`] and of the plugin.
    pub fn create(plugin: &Path, options: &CreateOptions) -> Result<Arc<Self>> {
        Self::from_plugin(Plugin::load(plugin)?, options)
    }

    /// Makes a client of a plugin that is loaded.
    ///
    /// # Blocking
    /// Takes as long as the plugin needs to find its devices.
    ///
    /// # Errors
    /// Those of the plugin.
    pub fn from_plugin(plugin: &'static Plugin, options: &CreateOptions) -> Result<Arc<Self>> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let safe = SafeClient::create(plugin.api(), options.attributes()).map_err(|status| {
            status.annotate(format_args!(
                "while making a client of {} with the options [{options}]",
                plugin.path().display()
            ))
        })?;
        if safe.is_cpu() {
            custom_calls::register(plugin)?;
        }
        let id = ClientId(NEXT_ID.fetch_add(1, Ordering::Relaxed));
        let by_id = device::of_client(id, &safe);
        let devices: Vec<DeviceRef> = by_id
            .iter()
            .map(|d| -> DeviceRef { Arc::clone(d) as _ })
            .collect();
        let mut by_position: Vec<Option<DeviceRef>> = vec![None; devices.len()];
        for device in &devices {
            let slot = by_position.get_mut(PjrtDevice::position_of(device, id)?);
            *slot.ok_or_else(|| Status::internal("a device has no place"))? =
                Some(Arc::clone(device));
        }
        let addressable_devices = devices
            .iter()
            .filter(|device| device.is_addressable())
            .cloned()
            .collect();
        tracing::info!(
            client_id = id.0,
            platform = safe.platform_name(),
            devices = devices.len(),
            "client made"
        );
        Ok(Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            id,
            plugin,
            platform_version: format!("PJRT C API\n{}", safe.platform_version()),
            attributes: attributes(plugin),
            devices,
            addressable_devices,
            by_position: by_position.into_iter().flatten().collect(),
            layouts: Mutex::default(),
            workers: Workers::new("pjrt-compile"),
            safe,
        }))
    }

    /// The plugin of this client.
    pub fn plugin(&self) -> &'static Plugin {
        self.plugin
    }

    /// What happened to the buffers of this client so far.
    pub fn buffer_counts(&self) -> BufferCounts {
        let counters = self.safe.counters();
        BufferCounts {
            freed_in_place: counters.freed_in_place.load(Ordering::Relaxed),
            freed_by_reaper: counters.freed_by_reaper.load(Ordering::Relaxed),
            made: counters.made.load(Ordering::Relaxed),
        }
    }

    /// Ready when the plugin's client has been destroyed, which happens some time after the last
    /// reference to this client, its arrays and its executables is gone.
    pub fn gone(&self) -> Completion {
        self.safe.gone()
    }

    pub(crate) fn arc(&self) -> Result<Arc<Self>> {
        self.this
            .upgrade()
            .ok_or_else(|| Status::internal("the client is being dropped"))
    }

    pub(crate) fn id(&self) -> ClientId {
        self.id
    }

    pub(crate) fn safe(&self) -> &SafeClient {
        &self.safe
    }

    pub(crate) fn workers(&self) -> &Arc<Workers> {
        &self.workers
    }

    pub(crate) fn is_cpu(&self) -> bool {
        self.safe.is_cpu()
    }

    /// The device at a position in the plugin's list.
    pub(crate) fn device_at(&self, position: usize) -> Result<&DeviceRef> {
        self.by_position
            .get(position)
            .ok_or_else(|| Status::internal(format!("the client has no device {position}")))
    }

    /// Where the addressable shards of an array live, in their order.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a device of another client or an unknown memory kind.
    pub(crate) fn placements(&self, sharding: &Sharding) -> Result<Vec<Placement>> {
        let devices = sharding.devices();
        // A device of another client is refused, also if it could not be reached.
        for device in devices {
            PjrtDevice::position_of(device, self.id)?;
        }
        devices
            .iter()
            .filter(|device| device.is_addressable())
            .map(|device| PjrtDevice::placement(device, sharding.memory_kind(), self.id))
            .collect()
    }

    /// The layout if it differs from the one that arrays have unless told otherwise.
    pub(crate) fn custom_layout(
        &self,
        dtype: DType,
        shape: &Shape,
        layout: Option<&Layout>,
    ) -> Option<Layout> {
        let layout = layout?;
        let is_default = match self.device_layout(dtype, shape) {
            Ok(default) => {
                // Plugins differ in whether they mention how types below a byte are packed.
                default == *layout
                    || default.is_descending()
                        && layout.is_descending()
                        && default.minor_to_major().len() == layout.minor_to_major().len()
            }
            Err(_) => layout.is_descending() && layout.minor_to_major().len() == shape.rank(),
        };
        (!is_default).then(|| layout.clone())
    }

    /// The layout that arrays have unless told otherwise.
    ///
    /// # Errors
    /// Those of the plugin.
    pub(crate) fn device_layout(&self, dtype: DType, shape: &Shape) -> Result<Layout> {
        if matches!(dtype, DType::Token | DType::Opaque | DType::String) {
            return Ok(Layout::descending(shape.rank()));
        }
        let key = (dtype, shape.clone());
        let lock = || self.layouts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(layout) = lock().get(&key) {
            return Ok(layout.clone());
        }
        let layout = match layout::default_of_client(&self.safe, dtype, shape) {
            Err(status) if status.code() == Code::Unimplemented => Layout::descending(shape.rank()),
            result => result?,
        };
        let mut layouts = lock();
        // The shapes come from users, so their number is bounded; the answer can be asked again.
        const MAX_LAYOUTS: usize = 1024;
        if layouts.len() >= MAX_LAYOUTS {
            layouts.clear();
        }
        layouts.insert(key, layout.clone());
        Ok(layout)
    }
}

/// The attributes of a client: those of its plugin, and those of this runtime.
fn attributes(plugin: &Plugin) -> AttributeMap {
    let mut attributes = plugin.attributes().clone();
    attributes.set("supports_executable_serialization", true);
    attributes.set("serialize_with_sdy", true);
    attributes.set("pjrt_c_api_major_version", i64::from(MAJOR));
    attributes.set("pjrt_c_api_minor_version", i64::from(plugin.api_minor()));
    attributes
}

impl Client for PjrtClient {
    fn to_shared(&self) -> Option<Arc<dyn Client>> {
        self.this.upgrade().map(|this| -> Arc<dyn Client> { this })
    }

    fn runtime_type(&self) -> &str {
        RUNTIME_TYPE
    }

    fn platform_name(&self) -> &str {
        self.safe.platform_name()
    }

    fn platform_version(&self) -> &str {
        &self.platform_version
    }

    fn platform_id(&self) -> u64 {
        platform_id::of(self.safe.platform_name())
    }

    fn process_index(&self) -> i32 {
        self.safe.process_index()
    }

    fn attributes(&self) -> &AttributeMap {
        &self.attributes
    }

    fn devices(&self) -> &[DeviceRef] {
        &self.devices
    }

    fn addressable_devices(&self) -> &[DeviceRef] {
        &self.addressable_devices
    }

    fn default_device_assignment(
        &self,
        num_replicas: usize,
        num_partitions: usize,
    ) -> Result<Vec<Vec<DeviceId>>> {
        let ids = self
            .safe
            .default_device_assignment(num_replicas, num_partitions)?;
        Ok(ids
            .into_iter()
            .map(|ids| ids.into_iter().map(DeviceId).collect())
            .collect())
    }

    fn default_compiler(&self) -> CompilerRef {
        Arc::new(PjrtCompiler::new(Weak::clone(&self.this)))
    }

    fn default_layout(
        &self,
        dtype: DType,
        shard_shape: &Shape,
        device: &DeviceRef,
        memory_kind: &MemoryKind,
    ) -> Result<Layout> {
        PjrtDevice::placement(device, memory_kind, self.id)?;
        if memory_kind.name() == UNPINNED_HOST {
            return Ok(Layout::descending(shard_shape.rank()));
        }
        self.device_layout(dtype, shard_shape)
    }

    fn make_array_from_host_buffer(
        &self,
        buffer: HostBuffer<'_>,
        sharding: ShardingRef,
        layout: Option<Layout>,
    ) -> Result<ArrayRef> {
        make::replicated(&self.arc()?, &buffer, sharding, layout)
    }

    fn make_arrays_from_host_buffer_shards(
        &self,
        arrays: Vec<HostShards<'_>>,
    ) -> Result<Vec<ArrayRef>> {
        make::from_shards(&self.arc()?, arrays)
    }

    fn make_error_arrays(&self, error: Status, specs: &[ArraySpec]) -> Result<Vec<ArrayRef>> {
        let client = self.arc()?;
        specs
            .iter()
            .map(|spec| make::failed(&client, &error, spec))
            .collect()
    }

    fn assemble_array(
        &self,
        dtype: DType,
        shape: Shape,
        sharding: ShardingRef,
        arrays: &[ArrayRef],
        copy: ArrayCopySemantics,
        shards: ShardSemantics,
    ) -> Result<ArrayRef> {
        assemble::assemble(&self.arc()?, dtype, shape, sharding, arrays, copy, shards)
    }

    fn copy_arrays(
        &self,
        arrays: &[ArrayRef],
        devices: Option<DeviceList>,
        memory_kind: Option<MemoryKind>,
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        copy::copy_arrays(&self.arc()?, arrays, devices, memory_kind, copy)
    }

    fn hash_values(&self, values: &[ValueRef], mode: HashMode) -> Completion<Vec<u64>> {
        hash_values(values, mode)
    }

    fn remap_arrays(
        &self,
        plan: &RemapPlan,
        arrays: &[ArrayRef],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        assemble::remap(&self.arc()?, plan, arrays, copy)
    }

    fn bitcast_arrays(
        &self,
        arrays: &[ArrayRef],
        specs: &[ArraySpec],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        copy::bitcast_arrays(&self.arc()?, arrays, specs, copy)
    }

    fn reshard_arrays(
        &self,
        arrays: &[ArrayRef],
        specs: &[ArraySpec],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        reshard::reshard_arrays(&self.arc()?, arrays, specs, copy)
    }
}

impl fmt::Debug for PjrtClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PjrtClient")
            .field("id", &self.id.0)
            .field("platform", &self.safe.platform_name())
            .field("devices", &self.devices.len())
            .finish_non_exhaustive()
    }
}
