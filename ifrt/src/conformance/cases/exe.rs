//! EXE: executables. Cases run on what was compiled, and again on what was serialized and loaded.

mod query;
mod run;

use bytes::Bytes;

use super::{Case, case};
use crate::array::ArrayRef;
use crate::conformance::check::Check;
use crate::conformance::data::{Host, i32s};
use crate::conformance::fixture::Fixture;
use crate::conformance::program::ProgramKind;
use crate::device_list::DeviceList;
use crate::dtype::DType;
use crate::executable::LoadedExecutableRef;

pub(super) const TABLES: &[&[Case]] = &[query::CASES, run::CASES];

/// Calls `f` with the executable as it was compiled, and as it comes back from its bytes.
fn each_way(
    fx: &Fixture,
    kind: ProgramKind,
    devices: &DeviceList,
    f: impl Fn(&LoadedExecutableRef) -> Check,
) -> Check {
    let compiled = fx.load(kind, devices)?;
    f(&compiled)?;
    if fx.caps.serialized_executables {
        let portable = kind == ProgramKind::PortableAddOne;
        let devices = (!portable).then(|| devices.clone());
        f(&reload(fx, compiled.serialize()?, devices)?)?;
    }
    Ok(())
}

fn reload(
    fx: &Fixture,
    serialized: Bytes,
    devices: Option<DeviceList>,
) -> Check<LoadedExecutableRef> {
    let compiler = fx.client.default_compiler();
    fx.value(&compiler.deserialize_loaded_executable(serialized, devices))
}

/// The numbers from zero, `[2,3]`, on the first device.
fn numbers(fx: &Fixture) -> Check<ArrayRef> {
    fx.put(&Host::iota(DType::S32, &[2, 3])?, &fx.single(0)?)
}

/// The bytes of six numbers that count up from `base`.
fn counting(base: i32) -> Bytes {
    i32s(&(base..base + 6).collect::<Vec<_>>())
}
