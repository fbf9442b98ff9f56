//! The client: the contract over a server in another process, or on another machine.
//!
//! ```no_run
//! use ifrt::Client as _;
//! use ifrt_proxy::client::{ClientOptions, ProxyClient};
//!
//! # fn main() -> ifrt::Result<()> {
//! let client = ProxyClient::connect("grpc://127.0.0.1:8470", ClientOptions::new())?;
//! println!("{:?}", client.devices());
//! # Ok(())
//! # }
//! ```
//!
//! # What waits
//! Arrays and the results of executions get their handles here, so making, moving, deleting and
//! executing only put requests into a queue. These wait for the server: connecting; the first
//! execution of an executable, which tells what comes out, and executions whose arguments are of
//! another type than before; what only the server knows, once each: default layouts, default device
//! assignments, the texts and costs of executables.
//!
//! # What the server says
//! Nothing that it says is trusted. A response that makes no sense is an error of the request that it
//! answers. If nobody can tell which request that is, or if the connection is lost, the session is
//! over: everything that is pending and everything that is asked later fails with UNAVAILABLE, and a
//! new client has to be made.
//!
//! # Code map
//! - `transport`, `dial`, `io_thread`, `address`: connections and threads.
//! - `session`, `contexts`, `response`: requests and responses, deletions, the end.
//! - `host_transfer`, `host_span`: the contents of arrays.
//! - `device`, `array`, `make`, `rearrange`, `life`, `compiler`, `executable`: the contract.
//!
//! # What is not here
//! What the protocol has no message for, which is UNIMPLEMENTED: topologies, serialized executables,
//! modules of executables, cancellation, changes of device attributes.
//!
//! # Mirrors
//! `xla/python/ifrt_proxy/client`.

mod address;
mod array;
mod compiler;
mod contexts;
mod contract;
mod device;
mod dial;
mod executable;
mod host_span;
mod host_transfer;
mod io_thread;
mod life;
mod make;
mod options;
mod rearrange;
mod response;
mod session;
mod to_wire;
mod transport;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ifrt::serdes::attribute_map_from_proto;
use ifrt::{AttributeMap, DType, DeviceList, DeviceRef, Layout, MemoryKind, Result, Shape, Status};

use crate::proto::xla::ifrt::proxy::GetDefaultLayoutRequest;
use crate::proto::xla::ifrt::proxy::ifrt_request::Request;
use device::Devices;
use host_transfer::HostTransfer;
use life::Donations;
pub use options::{ClientOptions, DisconnectHook};
use response::body;
use session::Session;
use transport::Connection;

/// A runtime that a server has.
///
/// # Mirrors
/// `xla/python/ifrt_proxy/client/client.h`.
pub struct ProxyClient {
    this: Weak<Self>,
    connection: Connection,
    transfer: HostTransfer,
    devices: Devices,
    runtime_type: String,
    platform_name: String,
    platform_version: String,
    platform_id: u64,
    process_index: i32,
    attributes: AttributeMap,
    donations: Donations,
    layouts: Mutex<HashMap<LayoutKey, Layout>>,
}

/// What a default layout depends on. Devices of one kind have the same.
#[derive(PartialEq, Eq, Hash)]
struct LayoutKey {
    dtype: DType,
    shape: Shape,
    memory_kind: MemoryKind,
    device_kind: String,
    slice_index: Option<i64>,
}

impl ProxyClient {
    /// Connects to a server at `grpc://host:port`, `grpcs://host:port` or
    /// `grpc://unix:/path/to/socket`.
    ///
    /// # Blocking
    /// Until the server has told what it is, at most [`ClientOptions::connect_timeout`]. Must not be
    /// called on a thread that others wait for, such as that of an async executor.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a malformed address; UNAVAILABLE if there is no server;
    /// DEADLINE_EXCEEDED if it does not answer in time; FAILED_PRECONDITION if it speaks another
    /// version; otherwise what the server says, and an error for a server that contradicts itself.
    pub fn connect(address: &str, options: ClientOptions) -> Result<Arc<Self>> {
        let (connection, init) = transport::connect(address, options)?;
        let devices = Devices::new(&init)?;
        let attributes = match &init.client_attributes {
            Some(attributes) => attribute_map_from_proto(attributes)?,
            None => AttributeMap::new(),
        };
        let process_index = i32::try_from(init.process_index).unwrap_or_default();
        Ok(Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            transfer: HostTransfer::new(&connection),
            connection,
            devices,
            runtime_type: format!("proxy/{}", init.runtime_type),
            platform_name: init.platform_name,
            platform_version: init.platform_version,
            platform_id: init.platform_id,
            process_index,
            attributes,
            donations: Donations::default(),
            layouts: Mutex::default(),
        }))
    }

    /// The version of the protocol that is spoken with the server.
    pub fn protocol_version(&self) -> i32 {
        self.session().protocol()
    }

    /// Why the connection is over, if it is. Then the client is of no use any more.
    pub fn disconnected(&self) -> Option<Status> {
        self.session().ended()
    }

    fn session(&self) -> &Session {
        &self.connection.session
    }

    const fn transfer(&self) -> &HostTransfer {
        &self.transfer
    }

    const fn donations(&self) -> &Donations {
        &self.donations
    }

    /// This client as a shared object. It is one from the start, so only its own drop finds none.
    ///
    /// # Errors
    /// FAILED_PRECONDITION while it is dropped.
    fn shared(&self) -> Result<Arc<Self>> {
        let gone = || Status::failed_precondition("the client is being dropped");
        self.this.upgrade().ok_or_else(gone)
    }

    /// Checks that devices belong to this client.
    ///
    /// # Errors
    /// INVALID_ARGUMENT naming one that does not.
    fn check_devices(&self, devices: &DeviceList) -> Result<()> {
        let is_ours = |device: &&DeviceRef| {
            let own = self.devices.get(device.id());
            own.is_some_and(|own| Arc::ptr_eq(own, device))
        };
        match devices.iter().find(|device| !is_ours(device)) {
            None => Ok(()),
            Some(device) => Err(Status::invalid_argument(format!(
                "device {} belongs to another client",
                device.to_text()
            ))),
        }
    }

    /// The layout that the server gives such shards. Asked for once.
    fn default_layout_of_shard(
        &self,
        dtype: DType,
        shape: &Shape,
        device: &DeviceRef,
        memory_kind: &MemoryKind,
    ) -> Result<Layout> {
        self.check_devices(&DeviceList::new([Arc::clone(device)]))?;
        ifrt::device::find_memory(&**device, memory_kind)?;
        let key = LayoutKey {
            dtype,
            shape: shape.clone(),
            memory_kind: memory_kind.clone(),
            device_kind: device.kind().to_owned(),
            slice_index: device.attributes().get_i64("slice_index").ok(),
        };
        let lock = || self.layouts.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(&key).cloned();
        if let Some(layout) = known {
            return Ok(layout);
        }
        let kind = if memory_kind.is_default() {
            ""
        } else {
            memory_kind.name()
        };
        let request = GetDefaultLayoutRequest {
            dtype: Some(ifrt::serdes::dtype_to_proto(dtype)),
            dims: shape.dims().to_vec(),
            device_id: device.id().0,
            memory_kind: kind.to_owned(),
        };
        let request = Request::GetDefaultLayoutRequest(request);
        let layout = self.session().round_trip(request, |response| {
            let response = body!(response, GetDefaultLayoutResponse)?;
            std::str::from_utf8(&response.serialized_pjrt_layout)
                .map_err(|_| Status::internal("the server sent a layout that is no text"))
                .and_then(Layout::parse)
        })?;
        if layout.minor_to_major().len() != shape.rank() {
            return Err(Status::internal(format!(
                "the server sent the layout {layout} for the shape {shape}"
            )));
        }
        lock().insert(key, layout.clone());
        Ok(layout)
    }
}

impl Drop for ProxyClient {
    fn drop(&mut self) {
        self.session().close();
    }
}

impl fmt::Debug for ProxyClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyClient")
            .field("platform", &self.platform_name)
            .field("devices", &self.devices.primary.len())
            .field("session", self.session())
            .finish_non_exhaustive()
    }
}
