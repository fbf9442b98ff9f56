//! Mocks of programs and of what runs them.

use std::sync::Arc;

use bytes::Bytes;
use mockall::mock;

use crate::array::ArrayRef;
use crate::attribute_map::AttributeMap;
use crate::bundle::BundleRef;
use crate::client::Client;
use crate::compiler::{Compiler, DeserializeOptions};
use crate::completion::Completion;
use crate::device::DeviceRef;
use crate::device_list::DeviceList;
use crate::executable::{
    CompiledMemoryStats, DeleteOptions, Executable, ExecutableRef, ExecutableVersion,
    ExecuteBundleResult, ExecuteOptions, ExecuteResult, HloModule, LoadedExecutable,
    LoadedExecutableRef,
};
use crate::host_callback::{HostCallback, LoadedHostCallback, LoadedHostCallbackRef};
use crate::layout::Layout;
use crate::program::{CompileOptions, Program};
use crate::status::Result;
use crate::topology::TopologyRef;
use crate::user_context::UserContextRef;
use crate::xla::HloSharding;

mock! {
    /// A mock of [`Compiler`].
    pub Compiler {}

    impl Compiler for Compiler {
        fn compile_and_load(
            &self,
            program: Program,
            options: CompileOptions,
        ) -> Completion<LoadedExecutableRef>;
        fn compile_and_load_with_host_callbacks(
            &self,
            program: Program,
            options: CompileOptions,
            host_callbacks: Vec<LoadedHostCallbackRef>,
        ) -> Completion<LoadedExecutableRef>;
        fn compile(
            &self,
            program: Program,
            topology: &TopologyRef,
            options: CompileOptions,
        ) -> Completion<ExecutableRef>;
        fn is_executable_version_compatible(
            &self,
            version: &ExecutableVersion,
            devices: &DeviceList,
        ) -> Result<()>;
        fn deserialize_loaded_executable(
            &self,
            serialized: Bytes,
            devices: Option<DeviceList>,
        ) -> Completion<LoadedExecutableRef>;
        fn deserialize_loaded_executable_with(
            &self,
            serialized: Bytes,
            options: DeserializeOptions,
        ) -> Completion<LoadedExecutableRef>;
    }
}

mock! {
    /// A mock of [`Executable`].
    pub Executable {}

    impl Executable for Executable {
        fn name(&self) -> &str;
        fn num_devices(&self) -> usize;
        fn fingerprint(&self) -> Result<Option<Bytes>>;
        fn serialize(&self) -> Result<Bytes>;
        fn size_of_generated_code_bytes(&self) -> i64;
        fn compiled_memory_stats(&self) -> Result<CompiledMemoryStats>;
        fn parameter_shardings(&self) -> Option<Vec<HloSharding>>;
        fn output_shardings(&self) -> Option<Vec<HloSharding>>;
        fn parameter_layouts(&self) -> Result<Vec<Layout>>;
        fn output_layouts(&self) -> Result<Vec<Layout>>;
        fn hlo_modules(&self) -> Result<Vec<HloModule>>;
        fn output_memory_kinds(&self) -> Result<Vec<Vec<String>>>;
        fn cost_analysis(&self) -> Result<AttributeMap>;
    }
}

mock! {
    /// A mock of [`LoadedExecutable`].
    ///
    /// Its devices live for ever (`Box::leak` in a test), because a mock cannot lend what it owns
    /// inside an `Option`.
    pub LoadedExecutable {}

    impl LoadedExecutable for LoadedExecutable {
        fn client(&self) -> Arc<dyn Client>;
        fn name(&self) -> &str;
        fn user_context(&self) -> Option<UserContextRef>;
        fn num_devices(&self) -> usize;
        fn devices(&self) -> Option<&'static DeviceList>;
        fn addressable_devices(&self) -> &[DeviceRef];
        fn fingerprint(&self) -> Result<Option<Bytes>>;
        fn executable_version(&self) -> Result<ExecutableVersion>;
        fn serialize(&self) -> Result<Bytes>;
        fn parameter_shardings(&self) -> Option<Vec<HloSharding>>;
        fn output_shardings(&self) -> Option<Vec<HloSharding>>;
        fn parameter_layouts(&self) -> Result<Vec<Layout>>;
        fn output_layouts(&self) -> Result<Vec<Layout>>;
        fn hlo_modules(&self) -> Result<Vec<HloModule>>;
        fn output_memory_kinds(&self) -> Result<Vec<Vec<String>>>;
        fn donatable_input_indices(&self) -> Result<Vec<usize>>;
        fn compiled_memory_stats(&self) -> Result<CompiledMemoryStats>;
        fn size_of_generated_code_bytes(&self) -> i64;
        fn cost_analysis(&self) -> Result<AttributeMap>;
        fn human_readable_program_text(&self) -> Result<String>;
        fn execute<'a>(
            &self,
            args: &[ArrayRef],
            options: &ExecuteOptions,
            devices: Option<&'a DeviceList>,
        ) -> Result<ExecuteResult>;
        fn execute_bundle(
            &self,
            args: &[BundleRef],
            options: &ExecuteOptions,
        ) -> Result<ExecuteBundleResult>;
        fn set_delete_options(&self, options: DeleteOptions);
    }
}

mock! {
    /// A mock of [`HostCallback`].
    pub HostCallback {}

    impl HostCallback for HostCallback {
        fn serialize(&self) -> Bytes;
    }
}

mock! {
    /// A mock of [`LoadedHostCallback`].
    pub LoadedHostCallback {}

    impl LoadedHostCallback for LoadedHostCallback {
        fn client(&self) -> Arc<dyn Client>;
        fn serialize(&self) -> Result<Bytes>;
    }
}
