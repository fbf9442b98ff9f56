//! Executables: a handle on the server, and what the server says of it.
//!
//! What the server says is asked for once, right after the compilation, and is mostly here before it
//! is needed.
//!
//! # Mirrors
//! `xla/python/ifrt_proxy/client/executable.cc`.

mod execute;
mod metadata;
mod plan;

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use ifrt::executable::DeleteOptions;
use ifrt::serdes::{attribute_map_from_proto, status_from_proto};
use ifrt::user_context::{self, UserContextRef};
use ifrt::xla::HloSharding;
use ifrt::{
    ArrayRef, AttributeMap, Client, CompiledMemoryStats, Completion, DeviceId, DeviceList,
    DeviceRef, ExecuteOptions, ExecuteResult, Layout, LoadedExecutable, LoadedExecutableRef,
    Result, Status,
};

use super::ProxyClient;
use super::response::body;
use crate::proto::xla::ifrt::proxy::ifrt_request::Request;
use crate::proto::xla::ifrt::proxy::{
    CheckFutureRequest, CompileResponse, LoadedExecutableCostAnalysisRequest,
    LoadedExecutableDeleteOptionsProto, LoadedExecutableDestructRequest,
    LoadedExecutableHumanReadableProgramTextRequest, LoadedExecutableMetadataRequest,
    compile_response, loaded_executable_cost_analysis_response as cost,
    loaded_executable_human_readable_program_text_response as text,
};
use metadata::Metadata;
use plan::Plans;

/// The protocol versions that brought these requests.
const COST_ANALYSIS: i32 = 18;
const PROGRAM_TEXT: i32 = 19;
const DELETE_OPTIONS: i32 = 25;

/// An executable of the server.
pub(super) struct ProxyExecutable {
    client: Arc<ProxyClient>,
    handle: u64,
    name: String,
    num_devices: usize,
    devices: Option<DeviceList>,
    addressable_devices: Vec<DeviceRef>,
    fingerprint: Result<Option<Bytes>>,
    slice_sizes: Option<Vec<usize>>,
    user_context: Option<UserContextRef>,
    metadata: Completion<Arc<Metadata>>,
    cost: OnceLock<Result<AttributeMap>>,
    text: OnceLock<Result<String>>,
    deletion_stream_id: AtomicI64,
    /// What came out of earlier executions.
    plans: Plans,
}

impl ProxyExecutable {
    /// The executable that a compilation has made.
    ///
    /// # Errors
    /// INTERNAL if the server contradicts itself.
    pub(super) fn load(
        client: &Arc<ProxyClient>,
        response: CompileResponse,
        slice_sizes: Option<Vec<usize>>,
    ) -> Result<LoadedExecutableRef> {
        let session = client.session();
        let handle = response.loaded_executable_handle;
        if handle == 0 {
            return Err(Status::internal(
                "the server compiled a program but gave no handle for it",
            ));
        }
        if let Some(future_handle) = response.ready_future_handle {
            // A future has to be read, or the server keeps it.
            let request = CheckFutureRequest { future_handle };
            session.send_ignored(
                "loading an executable",
                Request::CheckFutureRequest(request),
            );
        }
        let request = LoadedExecutableMetadataRequest {
            loaded_executable_handle: handle,
        };
        let metadata = session.request(
            Request::LoadedExecutableMetadataRequest(request),
            |response| {
                let response = body!(response, LoadedExecutableMetadataResponse)?;
                Ok(Arc::new(Metadata::new(response)))
            },
        );
        let fingerprint = match response.fingerprint {
            None => Ok(None),
            Some(compile_response::Fingerprint::FingerprintValue(value)) => Ok(Some(value)),
            Some(compile_response::Fingerprint::FingerprintError(error)) => {
                status_from_proto(&error).map_or(Ok(None), Err)
            }
        };
        // From here on the drop tells the server to forget the executable.
        let mut executable = Self {
            client: Arc::clone(client),
            handle,
            name: response.name,
            num_devices: 0,
            devices: None,
            addressable_devices: Vec::new(),
            fingerprint,
            slice_sizes,
            user_context: user_context::current(),
            metadata,
            cost: OnceLock::new(),
            text: OnceLock::new(),
            deletion_stream_id: AtomicI64::new(0),
            plans: Plans::default(),
        };
        executable.num_devices = usize::try_from(response.num_devices).map_err(|_| {
            Status::internal(format!(
                "the server compiled a program for {} devices",
                response.num_devices
            ))
        })?;
        let lookup = |ids: &[i32]| -> Result<Vec<DeviceRef>> {
            let device = |id: &i32| client.lookup_device(DeviceId(*id));
            ids.iter().map(device).collect()
        };
        executable.addressable_devices = lookup(&response.addressable_device_ids)?;
        if !response.device_ids.is_empty() {
            executable.devices = Some(DeviceList::new(lookup(&response.device_ids)?));
        }
        Ok(Arc::new(executable))
    }

    /// What the server says of the executable.
    ///
    /// # Errors
    /// Those of the request; FAILED_PRECONDITION on the thread that would have to bring the answer.
    fn metadata(&self) -> Result<Arc<Metadata>> {
        if let Some(metadata) = self.metadata.peek() {
            return metadata;
        }
        self.client.session().may_wait()?;
        self.metadata.wait()
    }

    /// What the server says of the executable, where the contract has no error.
    fn metadata_or_log(&self, what: &str) -> Option<Arc<Metadata>> {
        self.metadata()
            .inspect_err(
                |status| tracing::warn!(%status, "the {what} of {} are not known", self.name),
            )
            .ok()
    }

    fn needs(&self, protocol: i32, what: &str) -> Result<()> {
        let spoken = self.client.session().protocol();
        if spoken >= protocol {
            return Ok(());
        }
        Err(Status::unimplemented(format!(
            "{what} of executables need protocol {protocol}, but the server speaks {spoken}"
        )))
    }

    fn ask_cost(&self) -> Result<AttributeMap> {
        self.needs(COST_ANALYSIS, "cost analyses")?;
        let request = LoadedExecutableCostAnalysisRequest {
            loaded_executable_handle: self.handle,
        };
        let request = Request::LoadedExecutableCostAnalysisRequest(request);
        self.client.session().round_trip(request, |response| {
            match body!(response, LoadedExecutableCostAnalysisResponse)?.result {
                Some(cost::Result::Attributes(attributes)) => attribute_map_from_proto(&attributes),
                Some(cost::Result::Status(error)) => Err(error_or_nothing(&error)),
                None => Err(error_or_nothing(&Default::default())),
            }
        })
    }

    fn ask_text(&self) -> Result<String> {
        self.needs(PROGRAM_TEXT, "texts")?;
        let request = LoadedExecutableHumanReadableProgramTextRequest {
            loaded_executable_handle: self.handle,
        };
        let request = Request::LoadedExecutableHumanReadableProgramTextRequest(request);
        self.client.session().round_trip(request, |response| {
            let response = body!(response, LoadedExecutableHumanReadableProgramTextResponse)?;
            match response.result {
                Some(text::Result::HumanReadableProgramText(text)) => Ok(text),
                Some(text::Result::Status(error)) => Err(error_or_nothing(&error)),
                None => Err(error_or_nothing(&Default::default())),
            }
        })
    }
}

/// An error, also if the server says that there is none and gives nothing else.
fn error_or_nothing(error: &ifrt::proto::tensorflow::StatusProto) -> Status {
    status_from_proto(error)
        .unwrap_or_else(|| Status::internal("IFRT server sent an answer without content"))
}

impl LoadedExecutable for ProxyExecutable {
    fn client(&self) -> Arc<dyn Client> {
        Arc::clone(&self.client) as Arc<dyn Client>
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn user_context(&self) -> Option<UserContextRef> {
        self.user_context.clone()
    }

    fn num_devices(&self) -> usize {
        self.num_devices
    }

    fn devices(&self) -> Option<&DeviceList> {
        self.devices.as_ref()
    }

    fn addressable_devices(&self) -> &[DeviceRef] {
        &self.addressable_devices
    }

    fn fingerprint(&self) -> Result<Option<Bytes>> {
        self.fingerprint.clone()
    }

    fn parameter_shardings(&self) -> Option<Vec<HloSharding>> {
        let metadata = self.metadata_or_log("parameter shardings")?;
        metadata.parameter_shardings.clone()
    }

    fn output_shardings(&self) -> Option<Vec<HloSharding>> {
        let metadata = self.metadata_or_log("output shardings")?;
        metadata.output_shardings.clone()
    }

    fn parameter_layouts(&self) -> Result<Vec<Layout>> {
        self.metadata()?.parameter_layouts.clone()
    }

    fn output_layouts(&self) -> Result<Vec<Layout>> {
        self.metadata()?.output_layouts.clone()
    }

    fn output_memory_kinds(&self) -> Result<Vec<Vec<String>>> {
        self.metadata()?.output_memory_kinds.clone()
    }

    fn donatable_input_indices(&self) -> Result<Vec<usize>> {
        self.metadata()?.donatable_input_indices.clone()
    }

    fn compiled_memory_stats(&self) -> Result<CompiledMemoryStats> {
        self.metadata()?.compiled_memory_stats.clone()
    }

    fn size_of_generated_code_bytes(&self) -> i64 {
        self.metadata_or_log("sizes")
            .map_or(0, |metadata| metadata.size_of_generated_code_bytes)
    }

    fn cost_analysis(&self) -> Result<AttributeMap> {
        self.cost.get_or_init(|| self.ask_cost()).clone()
    }

    fn human_readable_program_text(&self) -> Result<String> {
        self.text.get_or_init(|| self.ask_text()).clone()
    }

    fn execute(
        &self,
        args: &[ArrayRef],
        options: &ExecuteOptions,
        devices: Option<&DeviceList>,
    ) -> Result<ExecuteResult> {
        execute::execute(self, args, options, devices)
    }

    fn outputs_bundle_slice_sizes(&self) -> Option<&[usize]> {
        self.slice_sizes.as_deref()
    }

    fn set_delete_options(&self, options: DeleteOptions) {
        self.deletion_stream_id
            .store(options.deletion_stream_id, Ordering::Relaxed);
    }
}

impl Drop for ProxyExecutable {
    fn drop(&mut self) {
        let session = self.client.session();
        let options = LoadedExecutableDeleteOptionsProto {
            deletion_stream_id: self.deletion_stream_id.load(Ordering::Relaxed),
        };
        let request = LoadedExecutableDestructRequest {
            loaded_executable_handle: self.handle,
            delete_options: (session.protocol() >= DELETE_OPTIONS).then_some(options),
        };
        session.send_ignored(
            "forgetting an executable",
            Request::LoadedExecutableDestructRequest(request),
        );
    }
}

impl fmt::Debug for ProxyExecutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyExecutable")
            .field("name", &self.name)
            .field("devices", &self.devices)
            .finish_non_exhaustive()
    }
}
