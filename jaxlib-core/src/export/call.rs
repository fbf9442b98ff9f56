//! [`ExportedCall`]: an exported function, compiled for devices.

use std::fmt;

use ifrt::{DType, DeviceList, HostBuffer, HostData, Result, Shape};

use super::{Contents, Exported, ExportedSharding};
use crate::array::Array;
use crate::aval::Aval;
use crate::client::Client;
use crate::device_put::device_put;
use crate::executable::{Arg, CompileRequest, LoadedExecutable};
use crate::mesh::Mesh;
use crate::messages;
use crate::named_sharding::NamedSharding;
use crate::partition_spec::PartitionSpec;
use crate::sharding::Sharding;
use crate::sync::Lock;

/// The calling conventions that are known.
const CALLING_CONVENTIONS: std::ops::RangeInclusive<u16> = 9..=10;

/// An exported function, compiled for devices.
pub struct ExportedCall {
    exported: Exported,
    executable: LoadedExecutable,
    /// The number of the platform, for a module that is for several.
    platform_index: Option<Array>,
    /// One per ordered effect: given to each call, which gives the next ones.
    tokens: Lock<Vec<Array>>,
}

impl Exported {
    /// Compiles the function for these devices.
    ///
    /// # Blocking
    /// Until it is compiled.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the function is for other platforms, another number of devices or another
    /// calling convention; UNIMPLEMENTED if it has symbolic dimensions; those of the compiler.
    pub fn compile(&self, client: &Client, devices: &DeviceList) -> Result<ExportedCall> {
        let contents = &*self.0;
        let platform = check(contents, client, devices)?;
        let mut in_avals = Vec::new();
        let mut in_shardings = Vec::new();
        if platform.is_some() {
            in_avals.push(Some(Aval::new(DType::S32, Shape::scalar())));
            in_shardings.push(None);
        }
        for _ in &contents.ordered_effects {
            // What a call gives is of another type than what stands for the first one.
            in_avals.push(None);
            in_shardings.push(None);
        }
        for &kept in &contents.kept {
            in_avals.push(Some(contents.in_avals[kept].to_runtime()?));
            in_shardings.push(on(contents.in_shardings.get(kept), devices)?);
        }
        let mut out_shardings = vec![None; contents.ordered_effects.len()];
        for position in 0..contents.out_avals.len() {
            out_shardings.push(on(contents.out_shardings.get(position), devices)?);
        }
        let is_spread = devices.len() > 1;
        let executable = LoadedExecutable::compile(
            client,
            CompileRequest {
                module: contents.module.clone(),
                devices: Some(devices.clone()),
                in_avals: Some(in_avals),
                in_shardings: is_spread.then_some(in_shardings),
                out_shardings: is_spread.then_some(out_shardings),
                ..CompileRequest::default()
            },
        )?;
        let everywhere = replicated(devices)?;
        let put = |aval: Aval, bytes: &[u8]| {
            let buffer = HostBuffer::dense(HostData::Borrowed(bytes), aval.dtype, aval.shape);
            device_put(client, &buffer, everywhere.clone())
        };
        let platform_index = match platform {
            Some(index) => Some(put(
                Aval::new(DType::S32, Shape::scalar()),
                &index.to_ne_bytes(),
            )?),
            None => None,
        };
        let tokens = contents
            .ordered_effects
            .iter()
            .map(|_| put(token(), &[]))
            .collect::<Result<_>>()?;
        Ok(ExportedCall {
            exported: self.clone(),
            executable,
            platform_index,
            tokens: Lock::new(tokens),
        })
    }
}

/// What stands for a token before the first call.
fn token() -> Aval {
    Aval::new(DType::Pred, Shape::new([0]).unwrap_or_default())
}

fn on(
    sharding: Option<&Option<ExportedSharding>>,
    devices: &DeviceList,
) -> Result<Option<Sharding>> {
    match sharding {
        Some(Some(sharding)) if devices.len() > 1 => sharding.on(devices).map(Some),
        _ => Ok(None),
    }
}

fn replicated(devices: &DeviceList) -> Result<Sharding> {
    let mesh = Mesh::new(devices.clone(), [("devices", devices.len())])?;
    Ok(NamedSharding::new(&mesh, PartitionSpec::default())?.into())
}

/// Checks that the function can run there; gives the number of the platform if the module wants it.
fn check(contents: &Contents, client: &Client, devices: &DeviceList) -> Result<Option<i32>> {
    let name = &contents.function_name;
    let version = contents.calling_convention_version;
    if !CALLING_CONVENTIONS.contains(&version) {
        return Err(messages::calling_convention(
            name,
            version,
            CALLING_CONVENTIONS,
        ));
    }
    let own = canonical(client.runtime().platform_name());
    let platforms = &contents.platforms;
    let index = platforms.iter().position(|platform| platform == own);
    if index.is_none() && !contents.is_any_platform {
        return Err(messages::platform_mismatch(name, platforms, own));
    }
    if devices.len() != contents.nr_devices {
        return Err(messages::device_count_mismatch(
            name,
            contents.nr_devices,
            devices.len(),
        ));
    }
    let avals = contents.in_avals.iter().chain(&contents.out_avals);
    if let Some(aval) = avals.into_iter().find(|aval| !aval.is_static()) {
        return Err(messages::needs_shape_refinement(name, aval));
    }
    if platforms.len() == 1 {
        return Ok(None);
    }
    // A function whose platform is not checked runs as what it was exported for first.
    Ok(Some(i32::try_from(index.unwrap_or(0)).unwrap_or(0)))
}

/// The name that JAX uses for a platform when it lowers.
fn canonical(platform: &str) -> &str {
    match platform {
        "host" | "Host" => "cpu",
        other => other,
    }
}

impl ExportedCall {
    /// The function.
    pub const fn exported(&self) -> &Exported {
        &self.exported
    }

    /// The compiled module.
    pub const fn executable(&self) -> &LoadedExecutable {
        &self.executable
    }

    /// Calls the function with the leaves of its arguments, in order.
    ///
    /// Ordered effects of one call come before those of the next. Calls from several threads at
    /// once have no order.
    ///
    /// # Blocking
    /// Only enqueues. The results become ready when the run is done.
    ///
    /// # Errors
    /// As [`LoadedExecutable::execute`].
    pub fn call(&self, args: &[Arg<'_>]) -> Result<Vec<Array>> {
        let contents = &*self.exported.0;
        self.check_args(args)?;
        let kept = contents.kept.iter().map(|kept| args[*kept]);
        let platform = self.platform_index.iter().map(Arg::Reference);
        if contents.ordered_effects.is_empty() {
            let args: Vec<Arg<'_>> = platform.chain(kept).collect();
            return self.executable.execute(&args);
        }
        let tokens = self.tokens.lock().clone();
        let args: Vec<Arg<'_>> = platform
            .chain(tokens.iter().map(Arg::Reference))
            .chain(kept)
            .collect();
        let mut results = self.executable.execute(&args)?;
        let rest = results.split_off(tokens.len().min(results.len()));
        *self.tokens.lock() = results;
        Ok(rest)
    }

    /// Also looks at the arguments that the module does not take.
    fn check_args(&self, args: &[Arg<'_>]) -> Result<()> {
        let expected = self.exported.in_avals();
        if args.len() != expected.len() {
            return Err(messages::argument_count(expected.len(), args.len()));
        }
        let mut mismatches = Vec::new();
        for (position, (arg, expected)) in args.iter().zip(expected).enumerate() {
            arg.array().check_alive()?;
            let expected = expected.to_runtime()?;
            if arg.array().aval() != &expected {
                mismatches.push((position, expected, arg.array().aval().clone()));
            }
        }
        if mismatches.is_empty() {
            return Ok(());
        }
        Err(messages::argument_types(&mismatches))
    }
}

impl fmt::Debug for ExportedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExportedCall")
            .field("exported", &self.exported)
            .field("executable", &self.executable)
            .finish_non_exhaustive()
    }
}
