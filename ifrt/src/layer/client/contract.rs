//! [`Client`] for the layer: every operation is handed down and shown to the observer.

use std::sync::Arc;

use super::LayeredClient;
use crate::array::{ArrayCopySemantics, ArrayRef, ShardSemantics};
use crate::array_hash::HashMode;
use crate::array_spec::ArraySpec;
use crate::attribute_map::AttributeMap;
use crate::bundle::BundleRef;
use crate::client::{AttributeCallback, AttributeSubscription, Client, HostShards, ReadShards};
use crate::compiler::CompilerRef;
use crate::completion::Completion;
use crate::device::{DeviceId, DeviceRef};
use crate::device_list::DeviceList;
use crate::dtype::DType;
use crate::executable::CancellationHandle;
use crate::host_buffer::{HostBuffer, HostData, HostValue};
use crate::layer::executable::LayeredCompiler;
use crate::layer::{Call, Observer, Op};
use crate::layout::Layout;
use crate::memory::MemoryKind;
use crate::remap_plan::RemapPlan;
use crate::shape::Shape;
use crate::sharding::ShardingRef;
use crate::status::{Result, Status};
use crate::topology::TopologyRef;
use crate::tuple::TupleRef;
use crate::value::ValueRef;

/// The bytes of a host buffer; strings count what they hold.
fn host_bytes(buffer: &HostBuffer<'_>) -> u64 {
    let len = match &buffer.data {
        HostData::Borrowed(data) => data.len(),
        HostData::Shared(data) => data.len(),
        HostData::Strings(strings) => strings.iter().map(bytes::Bytes::len).sum(),
    };
    u64::try_from(len).unwrap_or(u64::MAX)
}

/// The devices that all specs share.
fn common_devices<'a>(mut specs: impl Iterator<Item = &'a ArraySpec>) -> Option<&'a DeviceList> {
    let first = specs.next()?.sharding.devices();
    specs
        .all(|spec| spec.sharding.devices() == first)
        .then_some(first)
}

impl<O: Observer> Client for LayeredClient<O> {
    fn runtime_type(&self) -> &str {
        self.inner.runtime_type()
    }

    fn platform_name(&self) -> &str {
        self.inner.platform_name()
    }

    fn platform_version(&self) -> &str {
        self.inner.platform_version()
    }

    fn platform_id(&self) -> u64 {
        self.inner.platform_id()
    }

    fn to_shared(&self) -> Option<Arc<dyn Client>> {
        self.this.upgrade().map(|this| this as Arc<dyn Client>)
    }

    fn process_index(&self) -> i32 {
        self.inner.process_index()
    }

    fn attributes(&self) -> &AttributeMap {
        self.inner.attributes()
    }

    fn devices(&self) -> &[DeviceRef] {
        self.inner.devices()
    }

    fn addressable_devices(&self) -> &[DeviceRef] {
        self.inner.addressable_devices()
    }

    fn all_devices(&self) -> &[DeviceRef] {
        self.inner.all_devices()
    }

    fn lookup_device(&self, id: DeviceId) -> Result<DeviceRef> {
        self.inner.lookup_device(id)
    }

    fn lookup_addressable_device(&self, local_hardware_id: i32) -> Result<DeviceRef> {
        self.inner.lookup_addressable_device(local_hardware_id)
    }

    fn default_device_assignment(
        &self,
        num_replicas: usize,
        num_partitions: usize,
    ) -> Result<Vec<Vec<DeviceId>>> {
        self.observe_plain(&self.call(Op::DefaultDeviceAssignment, &[]), || {
            self.inner
                .default_device_assignment(num_replicas, num_partitions)
        })
    }

    fn default_compiler(&self) -> CompilerRef {
        let inner = self.inner.default_compiler();
        match self.arc() {
            Ok(layer) => Arc::new(LayeredCompiler::new(layer, inner)),
            // Nobody holds the layer any more, so nobody is left to observe for.
            Err(_) => inner,
        }
    }

    fn default_layout(
        &self,
        dtype: DType,
        shard_shape: &Shape,
        device: &DeviceRef,
        memory_kind: &MemoryKind,
    ) -> Result<Layout> {
        let call = Call {
            dtype: Some(dtype),
            shape: Some(shard_shape),
            ..self.call(Op::DefaultLayout, &[])
        };
        self.observe_plain(&call, || {
            self.inner
                .default_layout(dtype, shard_shape, device, memory_kind)
        })
    }

    fn default_layout_of(
        &self,
        dtype: DType,
        shape: &Shape,
        sharding: &ShardingRef,
    ) -> Result<Layout> {
        let call = Call {
            dtype: Some(dtype),
            shape: Some(shape),
            devices: Some(sharding.devices()),
            ..self.call(Op::DefaultLayout, &[])
        };
        self.observe_plain(&call, || {
            self.inner.default_layout_of(dtype, shape, sharding)
        })
    }

    fn topology_for_devices(&self, devices: &DeviceList) -> Result<TopologyRef> {
        let call = Call {
            devices: Some(devices),
            ..self.call(Op::TopologyForDevices, &[])
        };
        self.observe_plain(&call, || self.inner.topology_for_devices(devices))
    }

    fn subscribe_to_attribute_changes(
        &self,
        devices: &DeviceList,
        names: Option<&[String]>,
        callback: AttributeCallback,
    ) -> Result<Box<dyn AttributeSubscription>> {
        let call = Call {
            devices: Some(devices),
            ..self.call(Op::SubscribeToAttributeChanges, &[])
        };
        self.observe_plain(&call, || {
            self.inner
                .subscribe_to_attribute_changes(devices, names, callback)
        })
    }

    fn make_array_from_host_buffer(
        &self,
        buffer: HostBuffer<'_>,
        sharding: ShardingRef,
        layout: Option<Layout>,
    ) -> Result<ArrayRef> {
        let (shape, devices) = (buffer.shape.clone(), sharding.devices().clone());
        let call = Call {
            dtype: Some(buffer.dtype),
            shape: Some(&shape),
            devices: Some(&devices),
            bytes: Some(host_bytes(&buffer)),
            ..self.call(Op::MakeArrayFromHostBuffer, &[])
        };
        self.observe(
            &call,
            || {
                self.inner
                    .make_array_from_host_buffer(buffer, sharding, layout)
            },
            |array| self.wrap_array(array).map(|(array, id)| (array, vec![id])),
        )
    }

    fn make_arrays_from_host_buffer_shards(
        &self,
        arrays: Vec<HostShards<'_>>,
    ) -> Result<Vec<ArrayRef>> {
        let devices = common_devices(arrays.iter().map(|array| &array.spec)).cloned();
        let buffers = arrays.iter().flat_map(|array| &array.buffers);
        let bytes = buffers.map(|(_, buffer)| host_bytes(buffer));
        let call = Call {
            devices: devices.as_ref(),
            bytes: Some(bytes.fold(0, u64::saturating_add)),
            ..self.call(Op::MakeArraysFromHostBufferShards, &[])
        };
        self.observe_arrays(&call, || {
            self.inner.make_arrays_from_host_buffer_shards(arrays)
        })
    }

    fn copy_arrays_to_host_buffer_shards(
        &self,
        arrays: &[ReadShards],
    ) -> Result<Vec<Completion<Vec<HostValue>>>> {
        let unwrap = |read: &ReadShards| {
            let (array, id) = self.unwrap_array(&read.array);
            let reads = read.reads.clone();
            (ReadShards { array, reads }, id)
        };
        let (inner, ids): (Vec<_>, Vec<_>) = arrays.iter().map(unwrap).unzip();
        let call = self.call(Op::CopyArraysToHostBufferShards, &ids);
        self.observe_plain(&call, || {
            self.inner.copy_arrays_to_host_buffer_shards(&inner)
        })
    }

    fn make_error_arrays(&self, error: Status, specs: &[ArraySpec]) -> Result<Vec<ArrayRef>> {
        let call = Call {
            devices: common_devices(specs.iter()),
            ..self.call(Op::MakeErrorArrays, &[])
        };
        self.observe_arrays(&call, || self.inner.make_error_arrays(error, specs))
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
        let (inner, ids) = self.unwrap_arrays(arrays);
        let (whole, devices) = (shape.clone(), sharding.devices().clone());
        let call = Call {
            dtype: Some(dtype),
            shape: Some(&whole),
            devices: Some(&devices),
            ..self.call(Op::AssembleArray, &ids)
        };
        self.observe(
            &call,
            || {
                self.inner
                    .assemble_array(dtype, shape, sharding, &inner, copy, shards)
            },
            |array| self.wrap_array(array).map(|(array, id)| (array, vec![id])),
        )
    }

    fn copy_arrays(
        &self,
        arrays: &[ArrayRef],
        devices: Option<DeviceList>,
        memory_kind: Option<MemoryKind>,
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        let (inner, ids) = self.unwrap_arrays(arrays);
        let target = devices.clone();
        let call = Call {
            devices: target.as_ref(),
            ..self.call(Op::CopyArrays, &ids)
        };
        self.observe_arrays(&call, || {
            self.inner.copy_arrays(&inner, devices, memory_kind, copy)
        })
    }

    fn remap_arrays(
        &self,
        plan: &RemapPlan,
        arrays: &[ArrayRef],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        let (inner, ids) = self.unwrap_arrays(arrays);
        self.observe_arrays(&self.call(Op::RemapArrays, &ids), || {
            self.inner.remap_arrays(plan, &inner, copy)
        })
    }

    fn bitcast_arrays(
        &self,
        arrays: &[ArrayRef],
        specs: &[ArraySpec],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        let (inner, ids) = self.unwrap_arrays(arrays);
        let call = Call {
            devices: common_devices(specs.iter()),
            ..self.call(Op::BitcastArrays, &ids)
        };
        self.observe_arrays(&call, || self.inner.bitcast_arrays(&inner, specs, copy))
    }

    fn reshard_arrays(
        &self,
        arrays: &[ArrayRef],
        specs: &[ArraySpec],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        let (inner, ids) = self.unwrap_arrays(arrays);
        let call = Call {
            devices: common_devices(specs.iter()),
            ..self.call(Op::ReshardArrays, &ids)
        };
        self.observe_arrays(&call, || self.inner.reshard_arrays(&inner, specs, copy))
    }

    fn hash_values(&self, values: &[ValueRef], mode: HashMode) -> Completion<Vec<u64>> {
        let (inner, ids) = self.unwrap_values(values);
        self.observe_completion(&self.call(Op::HashValues, &ids), || {
            self.inner.hash_values(&inner, mode)
        })
    }

    fn make_tuple(&self, values: &[ValueRef]) -> Result<TupleRef> {
        let (inner, ids) = self.unwrap_values(values);
        self.observe(
            &self.call(Op::MakeTuple, &ids),
            || self.inner.make_tuple(&inner),
            |tuple| {
                let (tuple, id) = self.wrap_tuple(tuple, values.to_vec())?;
                Ok((tuple, vec![id]))
            },
        )
    }

    fn bundle(&self, values: &[ValueRef], copy: ArrayCopySemantics) -> Result<BundleRef> {
        let (inner, ids) = self.unwrap_values(values);
        self.observe(
            &self.call(Op::Bundle, &ids),
            || self.inner.bundle(&inner, copy),
            |bundle| self.wrap_bundle(bundle),
        )
    }

    fn concat_bundles(&self, bundles: &[BundleRef], copy: ArrayCopySemantics) -> Result<BundleRef> {
        let (inner, ids) = self.unwrap_bundles(bundles);
        self.observe(
            &self.call(Op::ConcatBundles, &ids),
            || self.inner.concat_bundles(&inner, copy),
            |bundle| self.wrap_bundle(bundle),
        )
    }

    fn cancel_execution(&self, handle: &CancellationHandle, error: Status) {
        let pending = self.observer.begin(&self.call(Op::CancelExecution, &[]));
        let cancel = || self.inner.cancel_execution(handle, error);
        self.observer.within(&pending, cancel);
        self.observer.end(pending, Ok(&[]));
    }

    fn ready(&self, values: &[ValueRef]) -> Completion {
        let (inner, ids) = self.unwrap_values(values);
        self.observe_completion(&self.call(Op::Ready, &ids), || self.inner.ready(&inner))
    }

    fn delete_values(&self, values: &[ValueRef]) -> Completion {
        let (inner, ids) = self.unwrap_values(values);
        self.observe_completion(&self.call(Op::DeleteValues, &ids), || {
            self.inner.delete_values(&inner)
        })
    }
}
