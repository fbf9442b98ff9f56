//! Which files of JAX's tests a run takes.

use clap::ValueEnum;

/// A choice of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Set {
    /// A sample of a few files: minutes
    Smoke,
    /// Every test of all files that have to do with what a server does: hours
    Full,
}

impl Set {
    /// The names of the files, without the end `.py`.
    pub(super) const fn files(self) -> &'static [&'static str] {
        match self {
            Self::Smoke => &SMOKE,
            Self::Full => &FULL,
        }
    }

    /// How many tests are taken from each file; 0 stands for all.
    pub(super) const fn sample(self) -> usize {
        match self {
            Self::Smoke => 25,
            Self::Full => 0,
        }
    }
}

const SMOKE: [&str; 12] = [
    "array_test",
    "api_test",
    "pjit_test",
    "multi_device_test",
    "aot_test",
    "export_test",
    "layout_test",
    "memories_test",
    "mutable_array_test",
    "string_array_test",
    "linalg_test",
    "transfer_guard_test",
];

const FULL: [&str; 69] = [
    "array_test",
    "api_test",
    "pjit_test",
    "multi_device_test",
    "aot_test",
    "export_test",
    "layout_test",
    "memories_test",
    "dtypes_test",
    "shard_map_test",
    "jaxpr_effects_test",
    "mutable_array_test",
    "string_array_test",
    "pickle_test",
    "custom_api_test",
    "custom_linear_solve_test",
    "custom_partitioning_sharding_rule_test",
    "custom_partitioning_test",
    "custom_root_test",
    "lax_test",
    "lax_numpy_test",
    "lax_numpy_einsum_test",
    "lax_numpy_hijax_test",
    "lax_numpy_indexing_test",
    "lax_numpy_operators_test",
    "lax_numpy_reducers_test",
    "lax_numpy_setops_test",
    "lax_numpy_ufuncs_test",
    "lax_numpy_vectorize_test",
    "lax_control_flow_test",
    "lax_autodiff_test",
    "lax_vmap_test",
    "lax_vmap_op_test",
    "linalg_test",
    "linalg_sharding_test",
    "svd_test",
    "eigh_test",
    "qdwh_test",
    "fft_test",
    "random_test",
    "random_impl_test",
    "random_lax_test",
    "nn_test",
    "image_test",
    "lax_scipy_test",
    "lax_scipy_sparse_test",
    "lax_scipy_special_functions_test",
    "lax_scipy_spectral_dac_test",
    "scipy_fft_test",
    "scipy_interpolate_test",
    "scipy_ndimage_test",
    "scipy_optimize_test",
    "scipy_signal_test",
    "scipy_spatial_test",
    "scipy_stats_test",
    "sparse_test",
    "sparse_bcoo_bcsr_test",
    "sparsify_test",
    "checkify_test",
    "key_reuse_test",
    "shape_poly_test",
    "debug_nans_test",
    "transfer_guard_test",
    "garbage_collection_guard_test",
    "extend_test",
    "pmap_test",
    "batching_test",
    "errors_test",
    "device_test",
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_file_stands_twice_and_the_small_set_is_in_the_large_one() {
        let full: BTreeSet<_> = FULL.into_iter().collect();
        assert_eq!(full.len(), FULL.len());
        assert!(SMOKE.iter().all(|name| full.contains(name)));
    }
}
