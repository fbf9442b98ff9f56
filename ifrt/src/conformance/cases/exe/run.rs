//! Running executables.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Case, case, counting, each_way, numbers};
use crate::array::{ArrayCopySemantics, ArrayRef};
use crate::client::Client;
use crate::conformance::check::{Check, Stop, check, equal, refused};
use crate::conformance::data::{Host, i32s};
use crate::conformance::fixture::{Fixture, context, in_context};
use crate::conformance::program::ProgramKind;
use crate::dtype::DType;
use crate::executable::{ExecuteOptions, LoadedExecutableRef};
use crate::fake::{FakeClient, FakeOptions};
use crate::memory::MemoryKind;
use crate::program::CompileOptions;
use crate::sharding::Sharding;
use crate::status::{Code, Status};
use crate::value::{READY_ON_DELETED, ValueRef, to_arrays, to_values};

pub(super) const CASES: &[Case] = &[
    case("EXE-06", "run_with_status", exe_06),
    case("EXE-07", "run_on_a_bundle", exe_07),
    case("EXE-08", "run_on_bundles_into_slices", exe_08),
    case("EXE-09", "run_portable", exe_09),
    case("EXE-10", "foreign_argument_refused", exe_10),
    case("EXE-11", "cancel", exe_11),
    case("EXE-12", "run_without_status", exe_12),
    case("EXE-13", "run_of_nothing", exe_13),
    case("EXE-14", "donation", exe_14),
];

fn with_status() -> ExecuteOptions {
    ExecuteOptions {
        fill_status: true,
        ..ExecuteOptions::default()
    }
}

/// Runs `x + 1` and checks everything that came out.
fn adds_one(fx: &Fixture, executable: &LoadedExecutableRef, options: &ExecuteOptions) -> Check {
    let devices = fx.devices(1)?;
    let devices = executable.devices().is_none().then_some(&devices);
    let args = [numbers(fx)?];
    let run = in_context(|| executable.execute(&args, options, devices))?;
    equal(
        run.status.is_some(),
        options.fill_status,
        "whether there is a status",
    )?;
    if let Some(status) = &run.status {
        fx.value(status)?;
    }
    equal(run.outputs.len(), 1, "the number of outputs")?;
    let output = &run.outputs[0];
    fx.has_context(&(Arc::clone(output) as ValueRef))?;
    equal(output.dtype(), DType::S32, "the dtype")?;
    equal(fx.read(output)?, counting(1), "the output")?;
    equal(
        fx.read(&args[0])?,
        counting(0),
        "the argument, which is not donated",
    )
}

fn exe_06(fx: &Fixture) -> Check {
    let scope = context(20);
    let devices = fx.devices(1)?;
    let check = each_way(fx, ProgramKind::AddOne, &devices, |executable| {
        let context = executable.user_context().map(|context| context.id());
        equal(context, Some(20), "the user context of the executable")?;
        adds_one(fx, executable, &with_status())
    });
    drop(scope);
    check
}

/// Three arrays that begin with 0, 10 and 20.
fn three(fx: &Fixture) -> Check<Vec<ArrayRef>> {
    let array = |base| {
        fx.put(
            &Host::new(DType::S32, &[2, 3], counting(base))?,
            &fx.single(0)?,
        )
    };
    [0, 10, 20].into_iter().map(array).collect()
}

/// What `add_three` makes of [`three`].
const SUMS: [i32; 3] = [100, 210, 320];

fn exe_07(fx: &Fixture) -> Check {
    let devices = fx.devices(1)?;
    each_way(fx, ProgramKind::AddThree, &devices, |executable| {
        let reuse = ArrayCopySemantics::ReuseInput;
        let bundle = fx.client.bundle(&to_values(&three(fx)?), reuse)?;
        let run = executable.execute_bundle(&[bundle], &with_status())?;
        equal(run.outputs.len(), 1, "the number of bundles")?;
        let outputs = to_arrays(&run.outputs[0].values(reuse)?)?;
        equal(outputs.len(), SUMS.len(), "the number of outputs")?;
        for (output, base) in outputs.iter().zip(SUMS) {
            equal(fx.read(output)?, counting(base), "an output")?;
        }
        match &run.status {
            Some(status) => fx.value(status),
            None => Err(Stop::failed("the status that was asked for is missing")),
        }
    })
}

fn exe_08(fx: &Fixture) -> Check {
    let devices = fx.devices(1)?;
    let (program, mut options) = fx.program(ProgramKind::AddThree, &devices)?;
    let CompileOptions::Xla(xla) = &mut options else {
        return Err(Stop::skipped("the options of the program know no bundles"));
    };
    xla.outputs_bundle_slice_sizes = Some(vec![2, 1]);
    let compiler = fx.client.default_compiler();
    let executable = fx.value(&compiler.compile_and_load(program, options))?;
    let reuse = ArrayCopySemantics::ReuseInput;
    let arrays = to_values(&three(fx)?);
    let inputs = [
        fx.client.bundle(&arrays[..1], reuse)?,
        fx.client.bundle(&arrays[1..], reuse)?,
    ];
    let run = executable.execute_bundle(&inputs, &ExecuteOptions::default())?;
    let sizes: Vec<usize> = run
        .outputs
        .iter()
        .map(|bundle| bundle.num_values())
        .collect();
    equal(sizes, vec![2, 1], "the sizes of the bundles")?;
    let mut sums = SUMS.into_iter();
    for bundle in &run.outputs {
        for (output, base) in to_arrays(&bundle.values(reuse)?)?.iter().zip(sums.by_ref()) {
            equal(fx.read(output)?, counting(base), "an output")?;
        }
    }
    fx.value(&inputs[0].delete())?;
    let gone = executable.execute_bundle(&inputs, &ExecuteOptions::default());
    refused(
        gone,
        Code::FailedPrecondition,
        "running on a deleted bundle",
    )?;
    Ok(())
}

fn exe_09(fx: &Fixture) -> Check {
    fx.needs(fx.caps.portable_executables, "portable executables")?;
    let devices = fx.devices(1)?;
    each_way(fx, ProgramKind::PortableAddOne, &devices, |executable| {
        equal(executable.devices(), None, "the devices")?;
        adds_one(fx, executable, &with_status())
    })
}

fn exe_10(fx: &Fixture) -> Check {
    let devices = fx.devices(1)?;
    let stranger = FakeClient::new(FakeOptions::default());
    let device = Arc::clone(&stranger.devices()[0]);
    let sharding = Sharding::single_device(device, MemoryKind::default());
    let buffer = Host::iota(DType::S32, &[2, 3])?.buffer();
    let foreign = stranger.make_array_from_host_buffer(buffer, sharding, None)?;
    each_way(fx, ProgramKind::AddOne, &devices, |executable| {
        let args = [Arc::clone(&foreign)];
        let run = executable.execute(&args, &ExecuteOptions::default(), None);
        refused(run, Code::InvalidArgument, "running on a foreign array")?;
        Ok(())
    })
}

fn exe_11(fx: &Fixture) -> Check {
    let devices = fx.devices(1)?;
    each_way(fx, ProgramKind::AddOne, &devices, |executable| {
        let args = [numbers(fx)?];
        let run = executable.execute(&args, &with_status(), None)?;
        let error = Status::cancelled("the case has no use for it");
        if let Some(handle) = &run.cancellation_handle {
            fx.client.cancel_execution(handle, error.clone());
            fx.client.cancel_execution(handle, error.clone());
        }
        let read = fx.result(&run.outputs[0].copy_to_host(None))?;
        match read {
            Ok(value) => equal(value.into_bytes()?, counting(1), "the output"),
            Err(status) => equal(status.code(), error.code(), "the code of the output"),
        }
    })
}

fn exe_12(fx: &Fixture) -> Check {
    let devices = fx.devices(1)?;
    each_way(fx, ProgramKind::AddOne, &devices, |executable| {
        adds_one(fx, executable, &ExecuteOptions::default())
    })
}

fn exe_13(fx: &Fixture) -> Check {
    let devices = fx.devices(1)?;
    each_way(fx, ProgramKind::Nothing, &devices, |executable| {
        let run = executable.execute(&[], &with_status(), None)?;
        equal(run.outputs.len(), 0, "the number of outputs")?;
        match &run.status {
            Some(status) => fx.value(status),
            None => Err(Stop::failed("the status that was asked for is missing")),
        }
    })
}

fn exe_14(fx: &Fixture) -> Check {
    let devices = fx.devices(1)?;
    each_way(fx, ProgramKind::Donate, &devices, |executable| {
        let (donated, kept) = (numbers(fx)?, numbers(fx)?);
        let earlier = donated.copy_to_host(None);
        let options = ExecuteOptions {
            non_donatable_input_indices: BTreeSet::from([1]),
            ..with_status()
        };
        let args = [Arc::clone(&donated), Arc::clone(&kept)];
        let run = executable.execute(&args, &options, None)?;
        check(
            donated.is_deleted(),
            "the donated argument counts as deleted",
        )?;
        let gone = Err(Status::invalid_argument(READY_ON_DELETED));
        equal(
            fx.result(&donated.ready())?,
            gone,
            "ready of the donated argument",
        )?;
        check(!kept.is_deleted(), "the other argument lives")?;
        fx.ready(&kept)?;
        let read = fx.value(&earlier)?.into_bytes()?;
        equal(read, counting(0), "the read that began before")?;
        if let Some(status) = &run.status {
            fx.value(status)?;
        }
        equal(run.outputs.len(), 2, "the number of outputs")?;
        equal(
            fx.read(&run.outputs[0])?,
            i32s(&[0, 2, 4, 6, 8, 10]),
            "the sum",
        )?;
        equal(fx.read(&run.outputs[1])?, i32s(&[0; 6]), "the difference")
    })
}
