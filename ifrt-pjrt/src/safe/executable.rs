//! [`LoadedExecutable`]: a compiled program on its devices.

mod execute;
mod query;

use std::sync::Arc;

use ifrt::Result;

use super::bytes::{lent, lent_list};
use super::client::Client;
use super::exit;
use super::handle::Handle;
use crate::sys::api::{
    ClientCompile, ExecutableDeserializeAndLoad, ExecutableDestroy, ExecutableNumOutputs,
    LoadedExecutableAddressableDevices, LoadedExecutableDestroy,
    LoadedExecutableGetDeviceAssignment, LoadedExecutableGetExecutable,
};
use crate::sys::client::{ClientCompileArgs, Program};
use crate::sys::executable::{
    ExecutableDeserializeAndLoadArgs, ExecutableDestroyArgs, ExecutableNumOutputsArgs,
    LoadedExecutableAddressableDevicesArgs, LoadedExecutableDestroyArgs,
    LoadedExecutableGetDeviceAssignmentArgs, LoadedExecutableGetExecutableArgs,
};
use crate::sys::{self, Function};

pub(crate) use execute::Launch;

/// A compiled program on its devices. Dropping it takes no time: it is freed on the thread that
/// frees, and executions that are under way go on.
#[derive(Debug)]
pub(crate) struct LoadedExecutable {
    client: Client,
    raw: Handle<sys::LoadedExecutable>,
    /// S7: borrows from `raw`.
    executable: Handle<sys::Executable>,
    /// The addressable devices in the order of the assignment, as positions in the client's list.
    devices: Vec<usize>,
    num_outputs: usize,
}

impl LoadedExecutable {
    /// Compiles an MLIR module and loads it. Takes long.
    ///
    /// The caller has checked the module and the options: plugins abort on options without
    /// replicas and misread bytecode without a version.
    ///
    /// # Errors
    /// Those of the compiler.
    pub(crate) fn compile(client: &Client, module: &[u8], options: &[u8]) -> Result<Arc<Self>> {
        const FORMAT: &[u8] = b"mlir";
        // The reader of MLIR text looks at the byte after the end, and goes on if it is not zero.
        let terminated = [module, b"\0"].concat();
        let program = Program {
            code: terminated.as_ptr().cast_mut(),
            code_size: module.len(),
            format: FORMAT.as_ptr(),
            format_size: FORMAT.len(),
            ..Program::NEW
        };
        let mut args = ClientCompileArgs {
            client: client.raw(),
            program: &raw const program,
            compile_options: options.as_ptr(),
            compile_options_size: options.len(),
            ..ClientCompileArgs::NEW
        };
        // SAFETY: S3 and S4; the plugin reads the program and does not write it.
        unsafe { client.api().call::<ClientCompile>(&mut args) }?;
        Self::from_raw(client, Handle::new(args.executable, ClientCompile::NAME)?)
    }

    /// Loads what [`LoadedExecutable::serialize`] gave.
    ///
    /// # Errors
    /// Those of the plugin.
    pub(crate) fn deserialize(client: &Client, bytes: &[u8], options: &[u8]) -> Result<Arc<Self>> {
        let mut args = ExecutableDeserializeAndLoadArgs {
            client: client.raw(),
            serialized_executable: bytes.as_ptr(),
            serialized_executable_size: bytes.len(),
            overridden_serialized_compile_options: match options {
                [] => std::ptr::null(),
                options => options.as_ptr(),
            },
            overridden_serialized_compile_options_size: options.len(),
            ..ExecutableDeserializeAndLoadArgs::NEW
        };
        // SAFETY: S3 and S4.
        unsafe { client.api().call::<ExecutableDeserializeAndLoad>(&mut args) }?;
        let raw = Handle::new(args.loaded_executable, ExecutableDeserializeAndLoad::NAME)?;
        Self::from_raw(client, raw)
    }

    fn from_raw(client: &Client, raw: Handle<sys::LoadedExecutable>) -> Result<Arc<Self>> {
        exit::follow();
        let api = client.api();
        let loaded = Loaded {
            client,
            raw: Some(raw),
        };
        let mut args = LoadedExecutableGetExecutableArgs {
            loaded_executable: raw.as_ptr(),
            ..LoadedExecutableGetExecutableArgs::NEW
        };
        // SAFETY: S3, S4 and S7.
        unsafe { api.call::<LoadedExecutableGetExecutable>(&mut args) }?;
        let executable = Handle::new(args.executable, LoadedExecutableGetExecutable::NAME)?;
        // From here on the destructor frees both.
        let mut this = Self {
            client: client.clone(),
            raw: loaded.release(raw),
            executable,
            devices: Vec::new(),
            num_outputs: 0,
        };
        this.devices = this.read_devices()?;
        this.num_outputs = this.read_num_outputs()?;
        Ok(Arc::new(this))
    }

    /// The addressable devices in the order of the assignment, as positions in the client's list.
    /// None for a portable program.
    pub(crate) fn devices(&self) -> &[usize] {
        &self.devices
    }

    /// The number of outputs on each device.
    pub(crate) fn num_outputs(&self) -> usize {
        self.num_outputs
    }

    fn read_devices(&self) -> Result<Vec<usize>> {
        let mut args = LoadedExecutableAddressableDevicesArgs {
            executable: self.raw.as_ptr(),
            ..LoadedExecutableAddressableDevicesArgs::NEW
        };
        // SAFETY: S3, S4 and S7.
        unsafe {
            self.client
                .api()
                .call::<LoadedExecutableAddressableDevices>(&mut args)
        }?;
        // SAFETY: S9; the list lives as long as the executable.
        let list = unsafe { lent_list(args.addressable_devices, args.num_addressable_devices) };
        list.iter()
            .map(|device| self.client.device_position(*device))
            .collect()
    }

    fn read_num_outputs(&self) -> Result<usize> {
        let mut args = ExecutableNumOutputsArgs {
            executable: self.executable.as_ptr(),
            ..ExecutableNumOutputsArgs::NEW
        };
        // SAFETY: S3, S4 and S7.
        unsafe { self.client.api().call::<ExecutableNumOutputs>(&mut args) }?;
        Ok(args.num_outputs)
    }

    /// The serialized `DeviceAssignmentProto`; `None` if the plugin does not tell.
    ///
    /// # Errors
    /// Those of the plugin.
    pub(crate) fn device_assignment(&self) -> Result<Option<Vec<u8>>> {
        let mut args = LoadedExecutableGetDeviceAssignmentArgs {
            executable: self.raw.as_ptr(),
            ..LoadedExecutableGetDeviceAssignmentArgs::NEW
        };
        // SAFETY: S3, S4 and S7.
        match unsafe {
            self.client
                .api()
                .call::<LoadedExecutableGetDeviceAssignment>(&mut args)
        } {
            Err(status) if status.code() == ifrt::Code::Unimplemented => return Ok(None),
            result => result?,
        }
        // SAFETY: S9; the bytes live until the deleter is called.
        let bytes = unsafe { lent(args.serialized_bytes, args.serialized_bytes_size) }.to_vec();
        if let Some(deleter) = args.serialized_device_assignment_deleter {
            // SAFETY: S9; the deleter came with the object and is called once.
            unsafe { deleter(args.serialized_device_assignment) };
        }
        Ok(Some(bytes))
    }
}

/// A loaded executable whose shell is not there yet.
struct Loaded<'a> {
    client: &'a Client,
    raw: Option<Handle<sys::LoadedExecutable>>,
}

impl Loaded<'_> {
    fn release(mut self, raw: Handle<sys::LoadedExecutable>) -> Handle<sys::LoadedExecutable> {
        self.raw = None;
        raw
    }
}

impl Drop for Loaded<'_> {
    fn drop(&mut self) {
        if let Some(raw) = self.raw {
            reap(self.client, raw, None);
        }
    }
}

impl Drop for LoadedExecutable {
    fn drop(&mut self) {
        reap(&self.client, self.raw, Some(self.executable));
    }
}

/// S7: destroys the shell, then what it borrows from.
fn reap(
    client: &Client,
    raw: Handle<sys::LoadedExecutable>,
    executable: Option<Handle<sys::Executable>>,
) {
    let api = client.api();
    client.reap(move || {
        let destroyed = executable.map_or(Ok(()), |executable| {
            let mut args = ExecutableDestroyArgs {
                executable: executable.as_ptr(),
                ..ExecutableDestroyArgs::NEW
            };
            // SAFETY: S3, S4 and S7.
            unsafe { api.call::<ExecutableDestroy>(&mut args) }
        });
        let mut args = LoadedExecutableDestroyArgs {
            executable: raw.as_ptr(),
            ..LoadedExecutableDestroyArgs::NEW
        };
        // SAFETY: S3, S4 and S7.
        let also = unsafe { api.call::<LoadedExecutableDestroy>(&mut args) };
        if let Err(status) = destroyed.and(also) {
            tracing::warn!(%status, "an executable cannot be freed");
        }
    });
}
