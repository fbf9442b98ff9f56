//! The programs as modules of the fake.

use std::sync::Arc;

use prost::Message;

use super::ProgramKind;
use crate::device_list::DeviceList;
use crate::dtype::DType;
use crate::fake::FakeClient;
use crate::fake::program::{FakeProgram, Kernel, KernelCall, Output, Parameter};
use crate::host_buffer::HostValue;
use crate::memory::MemoryKind;
use crate::program::{CompileOptions, HloProgram, Program, XlaCompileOptions};
use crate::proto::xla::CompileOptionsProto;
use crate::shape::Shape;
use crate::status::{Result, Status};
use crate::xla::HloSharding;

const KINDS: [ProgramKind; 9] = [
    ProgramKind::AddSub,
    ProgramKind::Add,
    ProgramKind::Four,
    ProgramKind::AddOne,
    ProgramKind::PortableAddOne,
    ProgramKind::AddThree,
    ProgramKind::Nothing,
    ProgramKind::Donate,
    ProgramKind::Token,
];

/// Makes the programs known to a fake client.
///
/// # Errors
/// None that the suite can cause: the types of the programs are written here.
pub fn register_fake_programs(client: &FakeClient) -> Result<()> {
    for kind in KINDS {
        client.register_program(name(kind), program(kind)?);
    }
    Ok(())
}

/// The module of a program, for a client that [`register_fake_programs`] was called with.
#[allow(
    clippy::unnecessary_wraps,
    reason = "has the form of the method that it answers for"
)]
pub fn fake_module(kind: ProgramKind, devices: &DeviceList) -> Option<(Program, CompileOptions)> {
    let portable = kind == ProgramKind::PortableAddOne;
    let options = CompileOptionsProto {
        compile_portable_executable: portable,
        ..CompileOptionsProto::default()
    };
    let program = Program::Hlo(HloProgram {
        module: format!("fake:{}", name(kind)).into(),
    });
    let options = CompileOptions::Xla(XlaCompileOptions {
        compile_options: options.encode_to_vec().into(),
        devices: (!portable).then(|| devices.clone()),
        ..XlaCompileOptions::default()
    });
    Some((program, options))
}

const fn name(kind: ProgramKind) -> &'static str {
    match kind {
        ProgramKind::AddSub => "add_sub",
        ProgramKind::Add => "add",
        ProgramKind::Four => "four",
        ProgramKind::AddOne | ProgramKind::PortableAddOne => "add_one",
        ProgramKind::AddThree => "add_three",
        ProgramKind::Nothing => "nothing",
        ProgramKind::Donate => "donate",
        ProgramKind::Token => "token",
    }
}

/// Parameters as (sharding, donated), results as shardings, and what happens.
fn program(kind: ProgramKind) -> Result<FakeProgram> {
    let tiled = HloSharding::tile([2, 1])?;
    let whole = HloSharding::Replicated;
    let kept = (whole.clone(), false);
    let donated = (whole.clone(), true);
    let both = || vec![whole.clone(), whole.clone()];
    let (parameters, outputs, kernel): (Vec<_>, Vec<_>, Kernel) = match kind {
        ProgramKind::AddSub => (
            vec![(tiled.clone(), false), kept],
            vec![whole.clone(), tiled],
            Arc::new(add_sub),
        ),
        ProgramKind::Add => (
            vec![kept.clone(), kept],
            vec![whole.clone()],
            Arc::new(|call| Ok(vec![add_sub(call)?.swap_remove(0)])),
        ),
        ProgramKind::Four => (
            vec![donated.clone(), kept.clone(), donated, kept],
            [both(), both()].concat(),
            Arc::new(identity),
        ),
        ProgramKind::AddOne | ProgramKind::PortableAddOne => (
            vec![kept],
            vec![whole.clone()],
            Arc::new(|call| add_constants(call, &[1])),
        ),
        ProgramKind::AddThree => (
            vec![kept.clone(), kept.clone(), kept],
            [both(), vec![whole.clone()]].concat(),
            Arc::new(|call| add_constants(call, &[100, 200, 300])),
        ),
        ProgramKind::Nothing => (vec![], vec![], Arc::new(|_| Ok(vec![]))),
        ProgramKind::Donate => (vec![donated.clone(), donated], both(), Arc::new(add_sub)),
        ProgramKind::Token => return token(&tiled),
    };
    let shape = Shape::new([2, 3])?;
    let parameter = |(sharding, donated)| Parameter {
        dtype: DType::S32,
        shape: shape.clone(),
        sharding,
        donated,
    };
    Ok(FakeProgram {
        name: name(kind).to_owned(),
        parameters: parameters.into_iter().map(parameter).collect(),
        outputs: outputs
            .into_iter()
            .map(|sharding| output(DType::S32, &shape, sharding))
            .collect(),
        kernel,
    })
}

fn output(dtype: DType, shape: &Shape, sharding: HloSharding) -> Output {
    Output {
        dtype,
        shape: shape.clone(),
        sharding,
        memory_kind: MemoryKind::default(),
    }
}

fn token(tiled: &HloSharding) -> Result<FakeProgram> {
    let (scalar, shape) = (Shape::scalar(), Shape::new([4, 2])?);
    let types = [
        (DType::Token, &scalar, HloSharding::Replicated),
        (DType::S32, &shape, tiled.clone()),
    ];
    let parameter = |(dtype, shape, sharding): &(DType, &Shape, HloSharding)| Parameter {
        dtype: *dtype,
        shape: (*shape).clone(),
        sharding: sharding.clone(),
        donated: false,
    };
    Ok(FakeProgram {
        name: name(ProgramKind::Token).to_owned(),
        parameters: types.iter().map(parameter).collect(),
        outputs: types
            .iter()
            .map(|(dtype, shape, sharding)| output(*dtype, shape, sharding.clone()))
            .collect(),
        kernel: Arc::new(identity),
    })
}

fn identity(call: &KernelCall<'_>) -> Result<Vec<HostValue>> {
    Ok(call
        .inputs
        .iter()
        .map(|input| input.value.clone())
        .collect())
}

fn integers(value: &HostValue) -> Result<Vec<i32>> {
    let bytes = value.clone().into_bytes()?;
    let (numbers, rest) = bytes.as_chunks();
    if !rest.is_empty() {
        return Err(Status::invalid_argument("not a whole number of integers"));
    }
    Ok(numbers
        .iter()
        .map(|number| i32::from_ne_bytes(*number))
        .collect())
}

fn host(values: impl Iterator<Item = i32>) -> HostValue {
    HostValue::Bytes(values.flat_map(i32::to_ne_bytes).collect())
}

fn add_sub(call: &KernelCall<'_>) -> Result<Vec<HostValue>> {
    let [a, b] = call.inputs else {
        return Err(Status::invalid_argument("two arguments are needed"));
    };
    let (a, b) = (integers(&a.value)?, integers(&b.value)?);
    let with = |f: fn(i32, i32) -> i32| host(a.iter().zip(&b).map(|(a, b)| f(*a, *b)));
    Ok(vec![with(i32::wrapping_add), with(i32::wrapping_sub)])
}

fn add_constants(call: &KernelCall<'_>, constants: &[i32]) -> Result<Vec<HostValue>> {
    let pairs = call.inputs.iter().zip(constants);
    let add = |(input, constant): (&crate::fake::program::Tensor, &i32)| {
        let values = integers(&input.value)?;
        Ok(host(
            values
                .into_iter()
                .map(|value| value.wrapping_add(*constant)),
        ))
    };
    pairs.map(add).collect()
}
