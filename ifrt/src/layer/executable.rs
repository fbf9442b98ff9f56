//! Compilers and executables of a layered client.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::client::LayeredClient;
use super::{Call, Observer, Op};
use crate::array::ArrayRef;
use crate::attribute_map::AttributeMap;
use crate::bundle::BundleRef;
use crate::client::Client;
use crate::compiler::{Compiler, CompilerRef, DeserializeOptions};
use crate::completion::Completion;
use crate::device::DeviceRef;
use crate::device_list::DeviceList;
use crate::executable::{
    CompiledMemoryStats, DeleteOptions, ExecutableRef, ExecutableVersion, ExecuteBundleResult,
    ExecuteOptions, ExecuteResult, HloModule, LoadedExecutable, LoadedExecutableRef,
    MpmdLoadedExecutable,
};
use crate::host_callback::LoadedHostCallbackRef;
use crate::layout::Layout;
use crate::program::{CompileOptions, Program};
use crate::status::Result;
use crate::topology::TopologyRef;
use crate::user_context::UserContextRef;
use crate::xla::HloSharding;

pub(super) struct LayeredCompiler<O: Observer> {
    layer: Arc<LayeredClient<O>>,
    inner: CompilerRef,
}

impl<O: Observer> LayeredCompiler<O> {
    pub(super) const fn new(layer: Arc<LayeredClient<O>>, inner: CompilerRef) -> Self {
        Self { layer, inner }
    }

    fn load(
        &self,
        op: Op,
        run: impl FnOnce() -> Completion<LoadedExecutableRef>,
    ) -> Completion<LoadedExecutableRef> {
        let call = self.layer.call(op, &[]);
        let loaded = self.layer.observe_completion(&call, run);
        let layer = Arc::clone(&self.layer);
        loaded.then(move |result| {
            let inner = result.clone()?;
            let id = layer.next_id();
            let wrapped: LoadedExecutableRef = Arc::new(LayeredExecutable { layer, inner, id });
            Ok(wrapped)
        })
    }
}

impl<O: Observer> Compiler for LayeredCompiler<O> {
    fn compile_and_load(
        &self,
        program: Program,
        options: CompileOptions,
    ) -> Completion<LoadedExecutableRef> {
        self.load(Op::CompileAndLoad, || {
            self.inner.compile_and_load(program, options)
        })
    }

    fn compile_and_load_with_host_callbacks(
        &self,
        program: Program,
        options: CompileOptions,
        host_callbacks: Vec<LoadedHostCallbackRef>,
    ) -> Completion<LoadedExecutableRef> {
        self.load(Op::CompileAndLoad, || {
            self.inner
                .compile_and_load_with_host_callbacks(program, options, host_callbacks)
        })
    }

    fn compile(
        &self,
        program: Program,
        topology: &TopologyRef,
        options: CompileOptions,
    ) -> Completion<ExecutableRef> {
        let call = self.layer.call(Op::Compile, &[]);
        self.layer
            .observe_completion(&call, || self.inner.compile(program, topology, options))
    }

    fn is_executable_version_compatible(
        &self,
        version: &ExecutableVersion,
        devices: &DeviceList,
    ) -> Result<()> {
        self.inner
            .is_executable_version_compatible(version, devices)
    }

    fn deserialize_loaded_executable(
        &self,
        serialized: Bytes,
        devices: Option<DeviceList>,
    ) -> Completion<LoadedExecutableRef> {
        self.load(Op::DeserializeLoadedExecutable, || {
            self.inner
                .deserialize_loaded_executable(serialized, devices)
        })
    }

    fn deserialize_loaded_executable_with(
        &self,
        serialized: Bytes,
        options: DeserializeOptions,
    ) -> Completion<LoadedExecutableRef> {
        self.load(Op::DeserializeLoadedExecutable, || {
            self.inner
                .deserialize_loaded_executable_with(serialized, options)
        })
    }
}

impl<O: Observer> fmt::Debug for LayeredCompiler<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.inner, f)
    }
}

struct LayeredExecutable<O: Observer> {
    layer: Arc<LayeredClient<O>>,
    inner: LoadedExecutableRef,
    id: u64,
}

impl<O: Observer> LayeredExecutable<O> {
    fn call<'a>(&'a self, op: Op, inputs: &'a [u64]) -> Call<'a> {
        Call {
            executable: Some(self.id),
            devices: self.inner.devices(),
            ..self.layer.call(op, inputs)
        }
    }
}

impl<O: Observer> LoadedExecutable for LayeredExecutable<O> {
    fn client(&self) -> Arc<dyn Client> {
        Arc::clone(&self.layer) as Arc<dyn Client>
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn user_context(&self) -> Option<UserContextRef> {
        self.inner.user_context()
    }

    fn num_devices(&self) -> usize {
        self.inner.num_devices()
    }

    fn devices(&self) -> Option<&DeviceList> {
        self.inner.devices()
    }

    fn addressable_devices(&self) -> &[DeviceRef] {
        self.inner.addressable_devices()
    }

    fn fingerprint(&self) -> Result<Option<Bytes>> {
        self.inner.fingerprint()
    }

    fn executable_version(&self) -> Result<ExecutableVersion> {
        self.inner.executable_version()
    }

    fn serialize(&self) -> Result<Bytes> {
        let call = self.call(Op::Serialize, &[]);
        self.layer.observe_plain(&call, || self.inner.serialize())
    }

    fn parameter_shardings(&self) -> Option<Vec<HloSharding>> {
        self.inner.parameter_shardings()
    }

    fn output_shardings(&self) -> Option<Vec<HloSharding>> {
        self.inner.output_shardings()
    }

    fn parameter_layouts(&self) -> Result<Vec<Layout>> {
        self.inner.parameter_layouts()
    }

    fn output_layouts(&self) -> Result<Vec<Layout>> {
        self.inner.output_layouts()
    }

    fn hlo_modules(&self) -> Result<Vec<HloModule>> {
        self.inner.hlo_modules()
    }

    fn output_memory_kinds(&self) -> Result<Vec<Vec<String>>> {
        self.inner.output_memory_kinds()
    }

    fn donatable_input_indices(&self) -> Result<Vec<usize>> {
        self.inner.donatable_input_indices()
    }

    fn compiled_memory_stats(&self) -> Result<CompiledMemoryStats> {
        self.inner.compiled_memory_stats()
    }

    fn size_of_generated_code_bytes(&self) -> i64 {
        self.inner.size_of_generated_code_bytes()
    }

    fn cost_analysis(&self) -> Result<AttributeMap> {
        self.inner.cost_analysis()
    }

    fn human_readable_program_text(&self) -> Result<String> {
        self.inner.human_readable_program_text()
    }

    fn execute(
        &self,
        args: &[ArrayRef],
        options: &ExecuteOptions,
        devices: Option<&DeviceList>,
    ) -> Result<ExecuteResult> {
        let (inner, ids) = self.layer.unwrap_arrays(args);
        let call = Call {
            devices: devices.or_else(|| self.inner.devices()),
            ..self.call(Op::Execute, &ids)
        };
        self.layer.observe(
            &call,
            || self.inner.execute(&inner, options, devices),
            |result| {
                let (outputs, ids) = self.layer.wrap_arrays(result.outputs)?;
                Ok((ExecuteResult { outputs, ..result }, ids))
            },
        )
    }

    fn outputs_bundle_slice_sizes(&self) -> Option<&[usize]> {
        self.inner.outputs_bundle_slice_sizes()
    }

    fn execute_bundle(
        &self,
        args: &[BundleRef],
        options: &ExecuteOptions,
    ) -> Result<ExecuteBundleResult> {
        let (inner, ids) = self.layer.unwrap_bundles(args);
        self.layer.observe(
            &self.call(Op::ExecuteBundle, &ids),
            || self.inner.execute_bundle(&inner, options),
            |result| {
                let (mut outputs, mut ids) = (Vec::new(), Vec::new());
                for bundle in result.outputs {
                    let (bundle, id) = self.layer.wrap_bundle(bundle)?;
                    outputs.push(bundle);
                    ids.extend(id);
                }
                Ok((ExecuteBundleResult { outputs, ..result }, ids))
            },
        )
    }

    fn set_delete_options(&self, options: DeleteOptions) {
        self.inner.set_delete_options(options);
    }

    fn mpmd(&self) -> Option<&dyn MpmdLoadedExecutable> {
        self.inner.mpmd()
    }
}

impl<O: Observer> fmt::Debug for LayeredExecutable<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.inner, f)
    }
}
