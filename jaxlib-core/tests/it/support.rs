//! What the tests share.

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ifrt::fake::{FakeClient, FakeOptions};
use ifrt::{DType, DeviceList, HostBuffer, HostData, Shape};
use ifrt_proxy::client::{ClientOptions, ProxyClient};
use ifrt_proxy::server::{Background, Server};
use jaxlib_core::{
    Array, Client, CompileRequest, LoadedExecutable, Mesh, NamedSharding, PartitionSpec, Sharding,
    Target, device_put,
};

use crate::witness::Witness;

/// Longer than anything takes that is not stuck.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// A client over a runtime with eight devices, and a witness of what the runtime is asked for.
pub(crate) struct Stage {
    pub(crate) client: Client,
    pub(crate) witness: Arc<Witness>,
}

/// A stage over a fake.
pub(crate) struct World {
    stage: Stage,
    pub(crate) fake: Arc<FakeClient>,
    /// What stands between the client and the fake; dropped last.
    server: Option<Background>,
}

impl Deref for World {
    type Target = Stage;

    fn deref(&self) -> &Stage {
        &self.stage
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(FakeOptions {
            num_devices: 8,
            ..FakeOptions::default()
        })
    }

    pub(crate) fn with(options: FakeOptions) -> Self {
        let fake = FakeClient::new(options);
        Self {
            stage: Stage::new(Arc::clone(&fake) as _),
            fake,
            server: None,
        }
    }

    /// A stage over a server over a fake.
    pub(crate) fn far() -> Self {
        let fake = FakeClient::new(FakeOptions {
            num_devices: 8,
            ..FakeOptions::default()
        });
        let address = "grpc://127.0.0.1:0".parse().unwrap();
        let server = Server::builder(Arc::clone(&fake) as _)
            .build()
            .in_background(&address)
            .unwrap();
        let address = server.address().to_string();
        let client = ProxyClient::connect(&address, ClientOptions::new()).unwrap();
        Self {
            stage: Stage::new(client),
            fake,
            server: Some(server),
        }
    }

    /// Waits until the runtime has freed everything.
    pub(crate) fn wait_until_empty(&self) {
        let began = Instant::now();
        while self.fake.live_buffers() > 0 {
            assert!(
                began.elapsed() < DEADLINE,
                "{} buffers after everything was dropped",
                self.fake.live_buffers()
            );
            std::thread::yield_now();
        }
    }

    /// Client, fake and witness, apart.
    pub(crate) fn into_parts(self) -> (Client, Arc<FakeClient>, Arc<Witness>) {
        assert!(self.server.is_none(), "the server would be gone");
        (self.stage.client, self.fake, self.stage.witness)
    }
}

impl Stage {
    pub(crate) fn new(runtime: Arc<dyn ifrt::Client>) -> Self {
        let witness = Witness::new(runtime);
        Self {
            client: Client::new(Arc::clone(&witness) as Arc<dyn ifrt::Client>),
            witness,
        }
    }

    /// The first `count` devices.
    pub(crate) fn devices(&self, count: usize) -> DeviceList {
        let devices = self.client.runtime().devices();
        devices[..count].iter().cloned().collect()
    }

    pub(crate) fn device(&self, position: usize) -> Sharding {
        Sharding::single_device(Arc::clone(&self.client.runtime().devices()[position]))
    }

    /// Split along the first dimension over this many devices.
    pub(crate) fn split(&self, count: usize) -> NamedSharding {
        let mesh = Mesh::new(self.devices(count), [("x", count)]).unwrap();
        NamedSharding::new(&mesh, PartitionSpec::new(["x".into()])).unwrap()
    }

    /// The whole array on this many devices.
    pub(crate) fn copies(&self, count: usize) -> NamedSharding {
        let mesh = Mesh::new(self.devices(count), [("x", count)]).unwrap();
        NamedSharding::new(&mesh, PartitionSpec::default()).unwrap()
    }

    pub(crate) fn put(&self, values: &[f32], target: impl Into<Target>) -> Array {
        let bytes = to_bytes(values);
        let count = i64::try_from(values.len()).unwrap();
        let shape = Shape::new([count]).unwrap();
        let buffer = HostBuffer::dense(HostData::Borrowed(&bytes), DType::F32, shape);
        device_put(&self.client, &buffer, target).unwrap()
    }

    pub(crate) fn compile(&self, module: &str) -> LoadedExecutable {
        let request = CompileRequest {
            module: module.to_owned().into(),
            ..CompileRequest::default()
        };
        LoadedExecutable::compile(&self.client, request).unwrap()
    }

    /// Compiles for the devices of this array.
    pub(crate) fn compile_for(&self, module: &str, array: &Array) -> LoadedExecutable {
        let request = CompileRequest {
            module: module.to_owned().into(),
            devices: Some(array.sharding().devices().clone()),
            ..CompileRequest::default()
        };
        LoadedExecutable::compile(&self.client, request).unwrap()
    }

    /// Waits until the runtime has heard of all deletions.
    pub(crate) fn drain(&self) {
        assert!(self.client.drain_deletions(DEADLINE), "a deletion is stuck");
    }
}

pub(crate) fn to_bytes(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_ne_bytes())
        .collect()
}

pub(crate) fn from_bytes(bytes: &[u8]) -> Vec<f32> {
    bytes
        .chunks_exact(4)
        .map(|chunk| f32::from_ne_bytes(chunk.try_into().unwrap()))
        .collect()
}

/// The contents of an array.
pub(crate) fn read(array: &Array) -> ifrt::Result<Vec<f32>> {
    Ok(from_bytes(array.to_host()?.bytes()?))
}
