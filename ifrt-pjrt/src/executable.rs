//! [`PjrtLoadedExecutable`]: a compiled program on its devices.
//!
//! # Mirrors
//! `xla/python/pjrt_ifrt/pjrt_executable.h`.

mod execute;
mod metadata;
mod program;
pub(crate) mod serialized;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use ifrt::array::ArrayRef;
use ifrt::attribute_map::AttributeMap;
use ifrt::client::Client;
use ifrt::device::DeviceRef;
use ifrt::device_list::DeviceList;
use ifrt::executable::{
    CompiledMemoryStats, ExecutableVersion, ExecuteOptions, ExecuteResult, HloModule,
    LoadedExecutable, LoadedExecutableRef,
};
use ifrt::layout::Layout;
use ifrt::user_context::{self, UserContextRef};
use ifrt::xla::HloSharding;
use ifrt::{Code, Result, Status};

use crate::client::PjrtClient;
use crate::safe;
use metadata::Metadata;

pub(crate) use metadata::Hints;

/// A compiled program on its devices.
pub struct PjrtLoadedExecutable {
    client: Arc<PjrtClient>,
    safe: Arc<safe::executable::LoadedExecutable>,
    meta: Metadata,
    outputs_bundle_slice_sizes: Option<Vec<usize>>,
    user_context: Option<UserContextRef>,
}

impl PjrtLoadedExecutable {
    /// Takes an executable and asks it for what every run needs to know.
    ///
    /// # Errors
    /// Those of the plugin; INTERNAL if its answers contradict each other.
    pub(crate) fn load(
        client: &Arc<PjrtClient>,
        safe: Arc<safe::executable::LoadedExecutable>,
        hints: Hints,
    ) -> Result<LoadedExecutableRef> {
        let outputs_bundle_slice_sizes = hints.outputs_bundle_slice_sizes.clone();
        let meta = Metadata::read(client, &safe, hints)?;
        if let Some(sizes) = &outputs_bundle_slice_sizes
            && sizes
                .iter()
                .try_fold(0_usize, |sum, size| sum.checked_add(*size))
                != Some(meta.outputs.len())
        {
            return Err(Status::invalid_argument(format!(
                "bundles of {sizes:?} outputs do not hold the {} outputs of the program",
                meta.outputs.len()
            )));
        }
        Ok(Arc::new(Self {
            client: Arc::clone(client),
            safe,
            meta,
            outputs_bundle_slice_sizes,
            user_context: user_context::current(),
        }))
    }
}

impl LoadedExecutable for PjrtLoadedExecutable {
    fn client(&self) -> Arc<dyn Client> {
        Arc::clone(&self.client) as _
    }

    fn name(&self) -> &str {
        &self.meta.name
    }

    fn user_context(&self) -> Option<UserContextRef> {
        self.user_context.clone()
    }

    fn num_devices(&self) -> usize {
        self.meta.devices.as_ref().map_or(1, DeviceList::len)
    }

    fn devices(&self) -> Option<&DeviceList> {
        self.meta.devices.as_ref()
    }

    fn addressable_devices(&self) -> &[DeviceRef] {
        &self.meta.addressable_devices
    }

    fn fingerprint(&self) -> Result<Option<Bytes>> {
        match self.safe.fingerprint() {
            Ok(fingerprint) if fingerprint.is_empty() => Ok(None),
            Err(status) if status.code() == Code::Unimplemented => Ok(None),
            fingerprint => fingerprint.map(|fingerprint| Some(fingerprint.into())),
        }
    }

    fn executable_version(&self) -> Result<ExecutableVersion> {
        serialized::version(&self.client).map(ExecutableVersion::Xla)
    }

    fn serialize(&self) -> Result<Bytes> {
        let sizes = self.outputs_bundle_slice_sizes.as_deref();
        serialized::save(&self.client, &self.safe, &self.meta, sizes)
    }

    fn parameter_shardings(&self) -> Option<Vec<HloSharding>> {
        self.meta.parameter_shardings.clone()
    }

    fn output_shardings(&self) -> Option<Vec<HloSharding>> {
        self.meta.output_shardings.clone()
    }

    fn parameter_layouts(&self) -> Result<Vec<Layout>> {
        let inputs = self.meta.inputs.as_ref();
        match self.safe.parameter_layouts() {
            // Older plugins only tell them in the program.
            Err(status) if status.code() == Code::Unimplemented => inputs
                .and_then(|inputs| inputs.iter().map(|i| i.parameter.layout.clone()).collect())
                .ok_or(status),
            layouts => layouts,
        }
    }

    fn output_layouts(&self) -> Result<Vec<Layout>> {
        self.safe.output_layouts()
    }

    fn hlo_modules(&self) -> Result<Vec<HloModule>> {
        program::module_of(&self.safe).map(|module| vec![module])
    }

    fn output_memory_kinds(&self) -> Result<Vec<Vec<String>>> {
        let kinds = self
            .meta
            .outputs
            .iter()
            .map(|output| output.memory_kind.name().to_owned());
        Ok(vec![kinds.collect()])
    }

    fn donatable_input_indices(&self) -> Result<Vec<usize>> {
        self.meta.donatable.clone().ok_or_else(|| {
            Status::unimplemented("the plugin does not tell which inputs its programs consume")
        })
    }

    fn compiled_memory_stats(&self) -> Result<CompiledMemoryStats> {
        self.safe.memory_stats()
    }

    fn size_of_generated_code_bytes(&self) -> i64 {
        self.safe.generated_code_bytes().unwrap_or_else(|status| {
            tracing::debug!(%status, "the plugin does not tell the size of a program");
            0
        })
    }

    fn cost_analysis(&self) -> Result<AttributeMap> {
        self.safe.cost_analysis()
    }

    fn outputs_bundle_slice_sizes(&self) -> Option<&[usize]> {
        self.outputs_bundle_slice_sizes.as_deref()
    }

    fn execute(
        &self,
        args: &[ArrayRef],
        options: &ExecuteOptions,
        devices: Option<&DeviceList>,
    ) -> Result<ExecuteResult> {
        execute::execute(self, args, options, devices)
    }
}

impl fmt::Debug for PjrtLoadedExecutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PjrtLoadedExecutable")
            .field("name", &self.meta.name)
            .field("devices", &self.meta.devices)
            .field("outputs", &self.meta.outputs.len())
            .finish_non_exhaustive()
    }
}
