//! Running an executable on bundles, for runtimes that know only arrays.

use super::{BundleRef, gone};
use crate::array::ArrayCopySemantics;
use crate::executable::{ExecuteBundleResult, ExecuteOptions, LoadedExecutable};
use crate::status::{Result, Status};
use crate::value::{ValueRef, to_arrays, to_values};

/// Runs `executable` on the values of `args`, one bundle after the other.
///
/// The outputs come in bundles of `slice_sizes` values each, or all in one.
///
/// # Blocking
/// As [`LoadedExecutable::execute`].
///
/// # Errors
/// FAILED_PRECONDITION if a bundle is gone; INVALID_ARGUMENT if a value is no array or the sizes do
/// not add up to the number of outputs; those of [`LoadedExecutable::execute`].
///
/// # Mirrors
/// `xla/python/ifrt/client_impl_util.h`, `LoadedExecutableExecuteBundle`.
///
/// # Conformance
/// EXE-07, EXE-08.
pub fn execute_bundle<E: LoadedExecutable + ?Sized>(
    executable: &E,
    args: &[BundleRef],
    slice_sizes: Option<&[usize]>,
    options: &ExecuteOptions,
) -> Result<ExecuteBundleResult> {
    let mut values = Vec::new();
    for bundle in args {
        if bundle.is_deleted() {
            return Err(gone());
        }
        values.extend(bundle.values(ArrayCopySemantics::ReuseInput)?);
    }
    let result = executable.execute(&to_arrays(&values)?, options, None)?;
    let outputs = to_values(&result.outputs);
    let client = executable.client();
    let bundle = |run: &[ValueRef]| client.bundle(run, ArrayCopySemantics::DonateInput);
    let outputs = match slice_sizes {
        None => vec![bundle(&outputs)?],
        Some(sizes) => super::split(&outputs, sizes)
            .map_err(|_| {
                Status::invalid_argument(format!(
                    "bundles of {sizes:?} values do not make up the {} outputs of {}",
                    outputs.len(),
                    executable.name()
                ))
            })?
            .into_iter()
            .map(bundle)
            .collect::<Result<_>>()?,
    };
    Ok(ExecuteBundleResult {
        status: result.status,
        outputs,
        cancellation_handle: result.cancellation_handle,
    })
}
