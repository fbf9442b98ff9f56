//! Programs of the witness.

use std::sync::Arc;

use ifrt::xla::HloSharding;
use ifrt::{
    ArrayRef, Client, CompileOptions, Compiler, Completion, DeviceList, DeviceRef, ExecuteOptions,
    ExecuteResult, Layout, LoadedExecutable, LoadedExecutableRef, Program, Result,
};

use super::{Event, Witness, of};

#[derive(Debug)]
pub(super) struct WitnessCompiler {
    pub(super) client: Arc<Witness>,
    pub(super) inner: Arc<dyn Compiler>,
}

impl Compiler for WitnessCompiler {
    fn compile_and_load(
        &self,
        program: Program,
        options: CompileOptions,
    ) -> Completion<LoadedExecutableRef> {
        let client = Arc::clone(&self.client);
        let compiled = self.inner.compile_and_load(program, options);
        compiled.then(move |result| {
            let inner = result.clone()?;
            Ok(Arc::new(WitnessExecutable { client, inner }) as LoadedExecutableRef)
        })
    }
}

#[derive(Debug)]
struct WitnessExecutable {
    client: Arc<Witness>,
    inner: LoadedExecutableRef,
}

impl LoadedExecutable for WitnessExecutable {
    fn client(&self) -> Arc<dyn Client> {
        Arc::clone(&self.client) as Arc<dyn Client>
    }
    fn name(&self) -> &str {
        self.inner.name()
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
    fn output_memory_kinds(&self) -> Result<Vec<Vec<String>>> {
        self.inner.output_memory_kinds()
    }
    fn donatable_input_indices(&self) -> Result<Vec<usize>> {
        self.inner.donatable_input_indices()
    }
    fn execute(
        &self,
        args: &[ArrayRef],
        options: &ExecuteOptions,
        devices: Option<&DeviceList>,
    ) -> Result<ExecuteResult> {
        let inner = Witness::unwrap_all(args);
        let mut result = self.inner.execute(&inner, options, devices)?;
        for index in self.inner.donatable_input_indices()? {
            if !options.non_donatable_input_indices.contains(&index) {
                self.client.note(Event::Donated(of(&*args[index]).handle));
            }
        }
        result.outputs = self.client.wrap_all(std::mem::take(&mut result.outputs));
        Ok(result)
    }
}
