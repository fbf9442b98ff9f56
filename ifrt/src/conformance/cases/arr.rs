//! ARR, XAR, PRX: arrays and host transfer.

mod assemble;
mod copy;
mod failed;
mod hash;
mod host;
mod life;
mod shards;

use std::sync::Arc;

use super::{Case, case};
use crate::array::ArrayRef;
use crate::conformance::check::{Check, Stop, check, equal};
use crate::conformance::data::Host;
use crate::conformance::fixture::Fixture;
use crate::sharding::ShardingRef;
use crate::status::{Code, Result};
use crate::value::ValueRef;

pub(super) use copy::{moves_shards, to_every_memory};

pub(super) const TABLES: &[&[Case]] = &[
    host::CASES,
    shards::CASES,
    failed::CASES,
    assemble::CASES,
    copy::CASES,
    hash::CASES,
    life::CASES,
];

/// Checks what an array says of itself: that it is what was asked for, where it was asked for.
#[track_caller]
fn is_made_of(fx: &Fixture, array: &ArrayRef, host: &Host, sharding: &ShardingRef) -> Check {
    equal(array.dtype(), host.dtype, "the dtype")?;
    equal(array.shape(), &host.shape, "the shape")?;
    check(
        Arc::ptr_eq(array.sharding(), sharding),
        "the array has the very sharding that it was made with",
    )?;
    check(
        Arc::ptr_eq(&array.client(), &fx.client),
        "the array belongs to its client",
    )?;
    let value = Arc::clone(array) as ValueRef;
    fx.has_context(&value)?;
    let again = value.into_array();
    check(
        again.is_some_and(|again| Arc::ptr_eq(&again, array)),
        "the value is the array",
    )
}

/// The operation must be refused at once or make an array that fails.
#[track_caller]
fn refused_now_or_later(
    fx: &Fixture,
    made: Result<Vec<ArrayRef>>,
    code: Code,
    what: &str,
) -> Check {
    let status = match made {
        Err(status) => status,
        Ok(arrays) => {
            let first = arrays
                .first()
                .ok_or_else(|| Stop::failed(format_args!("{what} gives no array and no error")))?;
            match fx.result(&first.ready())? {
                Err(status) => status,
                Ok(()) => return Err(Stop::failed(format_args!("{what} succeeds"))),
            }
        }
    };
    equal(status.code(), code, &format!("the code of {what}"))
}
