//! STR: arrays of byte strings, which the host keeps.

mod life;
mod make;
mod split;

use std::sync::Arc;

use bytes::Bytes;

use super::{Case, case};
use crate::array::ArrayRef;
use crate::conformance::check::{Check, equal, refused_saying};
use crate::conformance::data::shape;
use crate::conformance::fixture::Fixture;
use crate::dtype::DType;
use crate::host_buffer::{HostBuffer, HostData};
use crate::sharding::ShardingRef;
use crate::status::{Code, Result, Status};
use crate::value::STRINGS_ON_DELETED;

pub(super) const TABLES: &[&[Case]] = &[make::CASES, split::CASES, life::CASES];

/// The strings `string-FIRST` and so on.
fn strings(numbers: std::ops::Range<usize>) -> Vec<Bytes> {
    numbers
        .map(|number| format!("string-{number}").into())
        .collect()
}

fn buffer(dims: &[i64], strings: &[Bytes]) -> Check<HostBuffer<'static>> {
    let data = HostData::Strings(strings.into());
    Ok(HostBuffer::dense(data, DType::String, shape(dims)?))
}

#[track_caller]
fn put(fx: &Fixture, dims: &[i64], strings: &[Bytes], sharding: &ShardingRef) -> Check<ArrayRef> {
    fx.needs(fx.caps.strings, "arrays of strings")?;
    fx.put_buffer(buffer(dims, strings)?, sharding)
}

/// `[2]` strings on the first device.
#[track_caller]
fn two(fx: &Fixture) -> Check<ArrayRef> {
    put(fx, &[2], &strings(0..2), &fx.single(0)?)
}

#[track_caller]
fn reads(fx: &Fixture, array: &ArrayRef, expected: &[Bytes], what: &str) -> Check {
    equal(&fx.read_strings(array)?[..], expected, what)
}

fn injected() -> Status {
    Status::internal("injected from the test")
}

/// The error for a deleted array, which is another one than that of arrays of numbers.
#[track_caller]
fn refused_as_deleted<T: std::fmt::Debug>(result: Result<T>, what: &str) -> Check {
    refused_saying(result, Code::FailedPrecondition, STRINGS_ON_DELETED, what)
}

/// A deleted array.
fn deleted(fx: &Fixture) -> Check<ArrayRef> {
    let array = two(fx)?;
    fx.value(&array.delete())?;
    Ok(Arc::clone(&array))
}
