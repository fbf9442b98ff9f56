//! The conformance suite of the contract through a client and a server of the proxy: over the fake
//! runtime and over the CPU plugin. Each client has a server of its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of tests fail as tests do"
)]

use std::any::Any;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, Weak};

use ifrt::conformance::program::{fake_module, register_fake_programs, stablehlo};
use ifrt::conformance::{self, Backend, Caps, Listed, ProgramKind};
use ifrt::fake::fault::FaultPlan;
use ifrt::fake::{FakeClient, FakeOptions};
use ifrt::{Client, CompileOptions, DeviceList, Program, Result, Status};
use ifrt_pjrt::{CreateOptions, PLUGIN_PATH_VARIABLE, PjrtClient};
use ifrt_proxy::client::{ClientOptions, ProxyClient};
use ifrt_proxy::server::{Listener, Server};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

const NO_TOKENS: &str = "plugins abort the process when a buffer of tokens is made or read";

const ANSWERS_AT_ONCE: &str = "the server answers a deletion before the runtime is done with it, and \
                               keeps to itself what becomes of it";

/// What the protocol can say of a runtime that can do everything.
const PROXY: Caps = Caps {
    // There is no message for it.
    serialized_executables: false,
    hlo_modules: false,
    ..Caps::ALL
};

/// A server over a runtime, for one client.
struct Served {
    client: Weak<ProxyClient>,
    runtime: Arc<dyn Client>,
    /// Dropping it stops the server.
    _stop: oneshot::Sender<()>,
}

/// The servers whose clients live.
struct Servers {
    tokio: Runtime,
    served: Mutex<Vec<Served>>,
}

impl Servers {
    fn new() -> Self {
        Self {
            tokio: Runtime::new().unwrap(),
            served: Mutex::default(),
        }
    }

    /// A client of a new server over this runtime.
    fn serve(&self, runtime: Arc<dyn Client>) -> Result<Arc<dyn Client>> {
        let address = "grpc://127.0.0.1:0".parse()?;
        let listener = self.tokio.block_on(Listener::bind(&address))?;
        let address = listener.address().to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let server = Server::builder(Arc::clone(&runtime)).build();
        self.tokio.spawn(async move {
            let served = server
                .serve(vec![listener], async { drop(stopped.await) })
                .await;
            served.expect("the server fails");
        });
        let client = ProxyClient::connect(&address, ClientOptions::new())?;
        let mut served = self.served.lock().unwrap();
        served.retain(|served| served.client.strong_count() > 0);
        served.push(Served {
            client: Arc::downgrade(&client),
            runtime,
            _stop: stop,
        });
        Ok(client)
    }

    /// The runtime that the server of this client has.
    fn behind(&self, client: &Arc<dyn Client>) -> Option<Arc<dyn Client>> {
        let any: &dyn Any = &**client;
        let client: *const ProxyClient = any.downcast_ref()?;
        let served = self.served.lock().unwrap();
        let found = served
            .iter()
            .find(|served| served.client.as_ptr() == client);
        found.map(|served| Arc::clone(&served.runtime))
    }
}

struct ProxyFake(Servers);

impl ProxyFake {
    fn make(&self, num_addressable: usize) -> Result<Arc<dyn Client>> {
        let fake = FakeClient::new(FakeOptions {
            num_devices: 8,
            num_addressable,
            ..FakeOptions::default()
        });
        register_fake_programs(&fake)?;
        self.0.serve(fake)
    }
}

impl Backend for ProxyFake {
    fn name(&self) -> &str {
        "proxy-fake"
    }

    fn client(&self) -> Result<Arc<dyn Client>> {
        self.make(8)
    }

    fn multi_process_client(&self) -> Result<Option<Arc<dyn Client>>> {
        self.make(4).map(Some)
    }

    fn caps(&self) -> Caps {
        PROXY
    }

    fn unsupported(&self) -> &[Listed<'_>] {
        &[
            (
                "new::NEW_01_slow_deletion_does_not_hold_the_caller",
                ANSWERS_AT_ONCE,
            ),
            (
                "new::NEW_02_failed_deletion_stays_failed_and_deleted",
                ANSWERS_AT_ONCE,
            ),
            (
                "new::NEW_03_deletion_that_never_ends_holds_nobody",
                ANSWERS_AT_ONCE,
            ),
            ("new::NEW_10_lost_promise_is_an_error", ANSWERS_AT_ONCE),
        ]
    }

    fn program(
        &self,
        kind: ProgramKind,
        devices: &DeviceList,
    ) -> Option<(Program, CompileOptions)> {
        fake_module(kind, devices)
    }

    fn faults(&self, client: &Arc<dyn Client>) -> Option<FaultPlan> {
        let behind = self.0.behind(client)?;
        let any: &dyn Any = &*behind;
        let fake = any.downcast_ref::<FakeClient>()?;
        Some(fake.faults().clone())
    }
}

struct ProxyPjrtCpu(Servers);

impl Backend for ProxyPjrtCpu {
    fn name(&self) -> &str {
        "proxy-pjrt-cpu"
    }

    fn client(&self) -> Result<Arc<dyn Client>> {
        let options = CreateOptions::parse(["cpu_device_count=8"])?;
        self.0.serve(PjrtClient::create(&plugin()?, &options)?)
    }

    fn caps(&self) -> Caps {
        Caps {
            // Neither the plugin nor the reference runtime above it reshards.
            reshard: false,
            // The plugin answers UNIMPLEMENTED.
            cost_analysis: false,
            ..PROXY
        }
    }

    fn unsupported(&self) -> &[Listed<'_>] {
        &[
            ("arr::ARR_25_tokens", NO_TOKENS),
            ("arr::ARR_40_copy_tokens", NO_TOKENS),
        ]
    }

    fn program(
        &self,
        kind: ProgramKind,
        devices: &DeviceList,
    ) -> Option<(Program, CompileOptions)> {
        stablehlo(kind, devices)
    }
}

/// The plugin that the environment names, else the one that `cargo xtask setup` installs.
fn plugin() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os(PLUGIN_PATH_VARIABLE) {
        return Ok(path.into());
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let path = root.join("target/xtask/plugins/pjrt_cpu.so");
    if path.exists() {
        return Ok(path);
    }
    Err(Status::failed_precondition(format!(
        "there is no CPU plugin at {}; run: cargo xtask setup (or set {PLUGIN_PATH_VARIABLE})",
        path.display()
    )))
}

fn main() -> ExitCode {
    conformance::main(vec![
        Arc::new(ProxyFake(Servers::new())),
        Arc::new(ProxyPjrtCpu(Servers::new())),
    ])
}
