//! The kernels that every client has.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Kernel, KernelCall, Tensor};
use crate::dtype::DType;
use crate::fake::elements::{filled, host_bytes};
use crate::host_buffer::HostValue;
use crate::status::{Result, Status};

pub(super) fn standard() -> HashMap<String, Kernel> {
    let kernels: [(&str, Kernel); 5] = [
        ("identity", Arc::new(identity)),
        ("add", Arc::new(add)),
        ("add_one", Arc::new(add_one)),
        ("zeros", Arc::new(zeros)),
        ("fail", Arc::new(fail)),
    ];
    let named = kernels.into_iter();
    named
        .map(|(name, kernel)| (name.to_owned(), kernel))
        .collect()
}

fn identity(call: &KernelCall<'_>) -> Result<Vec<HostValue>> {
    Ok(call
        .inputs
        .iter()
        .map(|input| input.value.clone())
        .collect())
}

fn add(call: &KernelCall<'_>) -> Result<Vec<HostValue>> {
    let Some((first, rest)) = call.inputs.split_first() else {
        return Err(Status::invalid_argument("add needs a parameter"));
    };
    let mut sum = bytes(first)?.to_vec();
    for input in rest {
        if input.dtype != first.dtype {
            return Err(Status::invalid_argument(
                "add needs parameters of one dtype",
            ));
        }
        sum = add_elements(first.dtype, &sum, bytes(input)?)?;
    }
    Ok(vec![HostValue::Bytes(sum.into())])
}

fn add_one(call: &KernelCall<'_>) -> Result<Vec<HostValue>> {
    let increment = |input: &Tensor| {
        let data = bytes(input)?;
        let one = one(input.dtype)?;
        let ones = one.repeat(data.len() / one.len());
        let sum = add_elements(input.dtype, data, &ones)?;
        Ok(HostValue::Bytes(sum.into()))
    };
    call.inputs.iter().map(increment).collect()
}

fn zeros(call: &KernelCall<'_>) -> Result<Vec<HostValue>> {
    let make = |(dtype, shape): &_| {
        let data = filled(host_bytes(*dtype, shape)?, 0)?;
        Ok(HostValue::Bytes(data.into()))
    };
    call.outputs.iter().map(make).collect()
}

fn fail(_: &KernelCall<'_>) -> Result<Vec<HostValue>> {
    Err(Status::internal("the kernel `fail` fails"))
}

fn bytes(tensor: &Tensor) -> Result<&[u8]> {
    match &tensor.value {
        HostValue::Bytes(data) => Ok(data),
        HostValue::Strings(_) => Err(Status::invalid_argument("the fake does not add strings")),
    }
}

macro_rules! arithmetic {
    ($($variant:ident: $type:ty, $one:literal, $add:expr;)*) => {
        /// The sums of the elements of two arrays.
        fn add_elements(dtype: DType, left: &[u8], right: &[u8]) -> Result<Vec<u8>> {
            if left.len() != right.len() {
                return Err(Status::invalid_argument("add needs parameters of one shape"));
            }
            match dtype {
                $(DType::$variant => {
                    let left = left.as_chunks().0.iter();
                    let pairs = left.zip(right.as_chunks().0);
                    let add: fn($type, $type) -> $type = $add;
                    let sum = |(left, right): (&_, &_)| {
                        add(<$type>::from_ne_bytes(*left), <$type>::from_ne_bytes(*right))
                            .to_ne_bytes()
                    };
                    Ok(pairs.flat_map(sum).collect())
                })*
                _ => Err(no_arithmetic(dtype)),
            }
        }

        /// The number one.
        fn one(dtype: DType) -> Result<Vec<u8>> {
            match dtype {
                $(DType::$variant => Ok(<$type>::to_ne_bytes($one).to_vec()),)*
                _ => Err(no_arithmetic(dtype)),
            }
        }
    };
}

arithmetic! {
    S8: i8, 1, i8::wrapping_add;
    S16: i16, 1, i16::wrapping_add;
    S32: i32, 1, i32::wrapping_add;
    S64: i64, 1, i64::wrapping_add;
    U8: u8, 1, u8::wrapping_add;
    U16: u16, 1, u16::wrapping_add;
    U32: u32, 1, u32::wrapping_add;
    U64: u64, 1, u64::wrapping_add;
    F32: f32, 1.0, |left, right| left + right;
    F64: f64, 1.0, |left, right| left + right;
}

fn no_arithmetic(dtype: DType) -> Status {
    Status::unimplemented(format!("the fake does not add numbers of dtype {dtype}"))
}
