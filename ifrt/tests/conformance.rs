//! The conformance suite on the fake runtime, alone and under the tracing layer.

use std::any::Any;
use std::process::ExitCode;
use std::sync::Arc;

use ifrt::conformance::program::{fake_module, register_fake_programs};
use ifrt::conformance::{self, Backend, ProgramKind};
use ifrt::fake::fault::FaultPlan;
use ifrt::fake::{FakeClient, FakeOptions};
use ifrt::layer::{LayeredClient, Traced};
use ifrt::{Client, CompileOptions, DeviceList, Program, Result};

/// The fake with eight devices, perhaps under a layer.
struct Fake {
    name: &'static str,
    layer: fn(Arc<dyn Client>) -> Arc<dyn Client>,
}

impl Fake {
    fn make(&self, num_addressable: usize) -> Result<Arc<dyn Client>> {
        let client = FakeClient::new(FakeOptions {
            num_devices: 8,
            num_addressable,
            ..FakeOptions::default()
        });
        register_fake_programs(&client)?;
        Ok((self.layer)(client))
    }
}

impl Backend for Fake {
    fn name(&self) -> &str {
        self.name
    }

    fn client(&self) -> Result<Arc<dyn Client>> {
        self.make(8)
    }

    fn multi_process_client(&self) -> Result<Option<Arc<dyn Client>>> {
        self.make(4).map(Some)
    }

    fn program(
        &self,
        kind: ProgramKind,
        devices: &DeviceList,
    ) -> Option<(Program, CompileOptions)> {
        fake_module(kind, devices)
    }

    fn faults(&self, client: &Arc<dyn Client>) -> Option<FaultPlan> {
        let client: &dyn Any = &**client;
        if let Some(layered) = client.downcast_ref::<LayeredClient<Traced>>() {
            return self.faults(layered.inner());
        }
        let fake = client.downcast_ref::<FakeClient>()?;
        Some(fake.faults().clone())
    }
}

fn main() -> ExitCode {
    conformance::main(vec![
        Arc::new(Fake {
            name: "fake",
            layer: |client| client,
        }),
        Arc::new(Fake {
            name: "trace-fake",
            layer: Traced::wrap,
        }),
    ])
}
