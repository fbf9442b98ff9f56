//! Readiness and deletion.

use std::sync::Arc;

use super::{Case, case};
use crate::array::ArrayRef;
use crate::conformance::check::{Check, check, equal};
use crate::conformance::fixture::Fixture;
use crate::fake::fault::{Fault, Gate, Op, When};
use crate::host_buffer::HostValue;
use crate::status::Status;
use crate::value::{ValueRef, to_values};

pub(super) const CASES: &[Case] = &[
    case("ARR-50", "ready", arr_50),
    case("ARR-51", "ready_of_several", arr_51),
    case("ARR-52", "delete", arr_52),
    case("ARR-53", "delete_values", arr_53),
    case("ARR-54", "delete_twice", arr_54),
    case("ARR-55", "deleted_before_the_deletion_is_awaited", arr_55),
    case("PRX-01", "ready_waits_for_the_runtime", prx_01),
    case("PRX-02", "ready_brings_the_error_of_the_runtime", prx_02),
    case("PRX-03", "read_waits_for_the_runtime", prx_03),
    case("PRX-04", "read_brings_the_error_of_the_runtime", prx_04),
];

fn arr_50(fx: &Fixture) -> Check {
    fx.ready(&fx.standard()?)
}

fn standards(fx: &Fixture, count: usize) -> Check<Vec<ArrayRef>> {
    (0..count).map(|_| fx.standard()).collect()
}

fn arr_51(fx: &Fixture) -> Check {
    let values = to_values(&standards(fx, 4)?);
    fx.value(&fx.client.ready(&values))
}

fn arr_52(fx: &Fixture) -> Check {
    let array = fx.standard()?;
    fx.value(&array.delete())?;
    check(array.is_deleted(), "the array is deleted")
}

fn arr_53(fx: &Fixture) -> Check {
    let arrays = standards(fx, 10)?;
    fx.value(&arrays[0].delete())?;
    let values: Vec<ValueRef> = to_values(&arrays);
    fx.value(&fx.client.delete_values(&values))?;
    for (position, array) in arrays.iter().enumerate() {
        check(array.is_deleted(), &format!("array {position} is deleted"))?;
    }
    Ok(())
}

fn arr_54(fx: &Fixture) -> Check {
    let array = fx.standard()?;
    let (first, second) = (array.delete(), array.delete());
    fx.value(&first)?;
    fx.value(&second)
}

fn arr_55(fx: &Fixture) -> Check {
    let array = fx.standard()?;
    check(!array.is_deleted(), "a new array is not deleted")?;
    let deletion = array.delete();
    check(array.is_deleted(), "the array is deleted at return")?;
    fx.value(&deletion)
}

fn injected() -> Status {
    Status::internal("injected error")
}

fn prx_01(fx: &Fixture) -> Check {
    let (faults, gate) = (fx.faults()?, Gate::new());
    faults.add(Op::MakeArray, When::Once, Fault::Slow(gate.clone()));
    let array = fx.standard()?;
    let ready = array.ready();
    equal(ready.peek(), None, "the result before the runtime is done")?;
    gate.open();
    fx.value(&ready)
}

fn prx_02(fx: &Fixture) -> Check {
    fx.faults()?
        .add(Op::MakeArray, When::Once, Fault::Fail(injected()));
    let array = fx.standard()?;
    equal(fx.result(&array.ready())?, Err(injected()), "the result")
}

fn prx_03(fx: &Fixture) -> Check {
    let (faults, gate) = (fx.faults()?, Gate::new());
    let array = fx.standard()?;
    faults.add(Op::CopyToHost, When::Once, Fault::Slow(gate.clone()));
    let read = array.copy_to_host(None);
    equal(read.peek(), None, "the result before the runtime is done")?;
    gate.open();
    let expected = HostValue::Bytes(fx.read(&Arc::clone(&array))?);
    equal(fx.value(&read)?, expected, "the data")
}

fn prx_04(fx: &Fixture) -> Check {
    let array = fx.standard()?;
    fx.faults()?
        .add(Op::CopyToHost, When::Once, Fault::Fail(injected()));
    let read = fx.result(&array.copy_to_host(None))?;
    equal(read.err(), Some(injected()), "the result")
}
