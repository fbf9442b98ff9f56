//! Where our definitions differ from those of a deployed jaxlib on purpose.
//!
//! Every row has a reason. A row of [`PARTIAL`] or [`OPAQUE`] that explains nothing is an error, so
//! the table cannot rot; the others depend on the release that is compared.

#[cfg(test)]
mod tests;

use super::compare::{Change, Difference, Item};
use std::collections::BTreeSet;

/// The packages of which we mean to know every file.
pub(super) const WHOLE: &str = "xla.ifrt";

/// Files of those packages that we leave out.
const UNUSED_FILES: &[(&str, &str)] = &[(
    "xla/python/ifrt/ir/program_memory_trace.proto",
    "a debugging aid of the compiler for several meshes; it is never sent",
)];

/// Files and messages of which we define only a part. A decoder skips what it does not know, so
/// leaving out is safe wherever the value is not encoded again.
const PARTIAL: &[(&str, &str)] = &[
    (
        "xla/xla_data.proto",
        "only the closure of shapes, layouts, shardings and assignments",
    ),
    (
        "xla/xla.proto",
        "only the effort levels and the wrapper of an optimized program",
    ),
    (
        "xla/service/hlo.proto",
        "only the header of a module and what is printed of it",
    ),
    (
        "xla/pjrt/proto/compile_options.proto",
        "without the form that serialized executables use",
    ),
    (
        "xla/pjrt/proto/executable_metadata.proto",
        "only the memory statistics",
    ),
    ("xla.ExecutionOptions", "only the effort levels inside it"),
    ("xla.PrecisionConfig", "only the precisions inside it"),
    (
        "xla.HloModuleProto",
        "schedules and profiles are large and never looked at",
    ),
    ("xla.HloInstructionProto", "only what is printed"),
];

/// Fields of a message type that we declare as bytes: the same on the wire, and never decoded.
const OPAQUE: &[(&str, &str)] = &[
    (
        "xla.HloModuleProto.computations",
        "large; decoded one by one, and only to print them",
    ),
    (
        "xla.ifrt.XlaCompileOptionsProto.compile_options",
        "passed on with all that we do not know",
    ),
    (
        "xla.ifrt.IfrtIrCompileOptionsProto.compile_option_overrides",
        "passed on likewise",
    ),
    (
        "xla.CompileOptionsProto.target_config",
        "its closure describes GPUs in detail",
    ),
    (
        "xla.ExecutableBuildOptionsProto.debug_options",
        "hundreds of fields that vary by release",
    ),
    (
        "xla.ExecutableBuildOptionsProto.comp_envs",
        "its closure holds every backend's settings",
    ),
    (
        "xla.HloModuleProtoWithConfig.config",
        "its closure is that of the debug options",
    ),
];

/// What releases after jaxlib 0.10.2 added.
const NEWER: &[(&str, &str)] = &[
    (
        "xla/python/ifrt/abstract_array_spec.proto",
        "serdes version 5",
    ),
    ("xla/python/ifrt/index.proto", "serdes version 5"),
    ("xla/python/ifrt/index_domain.proto", "serdes version 5"),
    (
        "xla/python/ifrt/sharding_spec_serdes.proto",
        "serdes version 5",
    ),
    (
        "xla/python/pjrt_ifrt/xla_sharding_spec.proto",
        "serdes version 5",
    ),
    ("xla.ifrt.CustomCallCompileOptionsProto", "serdes version 4"),
    (
        "xla.ifrt.XlaCompileOptionsProto.outputs_bundle_slice_sizes",
        "serdes version 4",
    ),
    (
        "xla.ifrt.XlaCompileOptionsProto.version_number",
        "serdes version 4",
    ),
    (
        "xla.ifrt.IfrtIrCompileOptionsProto.outputs_bundle_slice_sizes",
        "serdes version 4",
    ),
    (
        "xla.ifrt.DTypeProto.Kind.KIND_F6E2M3FN",
        "a dtype that came later",
    ),
    (
        "xla.ifrt.DTypeProto.Kind.KIND_F6E3M2FN",
        "a dtype that came later",
    ),
    (
        "xla.CompileOptionsProto.individually_defined_output_indices",
        "came later",
    ),
    (
        "xla.ExecutableBuildOptionsProto.gpu_topology",
        "came later; bytes for us, as it is large",
    ),
    ("xla.NamedShardingProto.ReductionOpProto", "came later"),
    ("xla.NamedShardingProto.reduction_op", "came later"),
];

/// What jaxlib 0.10.2 has and later releases dropped.
const OLDER: &[(&str, &str)] = &[
    (
        "xla.ExecutableBuildOptionsProto.exec_time_optimization_effort",
        "replaced by a level",
    ),
    (
        "xla.ExecutableBuildOptionsProto.memory_fitting_effort",
        "replaced by a level",
    ),
    (
        "xla.ExecutableBuildOptionsProto.slice_size",
        "replaced by the topology",
    ),
];

/// Differences, sorted by whether the table explains them.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// How many differences the table explains.
    pub(super) n_intended: usize,
    /// The rest.
    pub(super) unexplained: Vec<Difference>,
    /// Rows that explain nothing although they should in every release.
    pub(super) stale: Vec<&'static str>,
}

/// Compares the differences with the table.
pub(super) fn judge(differences: Vec<Difference>) -> Verdict {
    let mut verdict = Verdict::default();
    let mut used = BTreeSet::new();
    for difference in differences {
        if let Some(row) = explanation(&difference) {
            used.insert(row);
            verdict.n_intended += 1;
        } else {
            verdict.unexplained.push(difference);
        }
    }
    let constant = PARTIAL.iter().chain(OPAQUE).map(|(path, _)| *path);
    verdict.stale = constant.filter(|path| !used.contains(path)).collect();
    verdict
}

/// The row that explains a difference.
fn explanation(difference: &Difference) -> Option<&'static str> {
    let path = difference.path.as_str();
    let row = |table: &'static [(&str, &str)], path: &str| {
        table.iter().map(|(row, _)| *row).find(|row| *row == path)
    };
    match &difference.change {
        Change::OnlyOurs => row(NEWER, path).or_else(|| row(OLDER, path)),
        // A file of which we define a part may lack types, but the types that we do define are
        // whole unless they have a row of their own.
        Change::OnlyTheirs => match difference.item {
            Item::File => row(UNUSED_FILES, path),
            Item::Type => row(PARTIAL, &difference.file),
            Item::Member => row(PARTIAL, path.rsplit_once('.')?.0),
            Item::Method => None,
        },
        Change::Aspect {
            aspect,
            ours,
            theirs,
        } => {
            let is_opaque = *aspect == "type" && same_but_bytes(ours, theirs);
            let newer = || row(NEWER, path);
            is_opaque
                .then(|| row(OPAQUE, path).or_else(newer))
                .flatten()
        }
    }
}

/// Whether a type of ours is that of the library with bytes in the place of a message.
fn same_but_bytes(ours: &str, theirs: &str) -> bool {
    let value = |kind: &str| {
        kind.strip_prefix("map<string, ")
            .and_then(|rest| rest.strip_suffix('>'))
            .map(str::to_owned)
    };
    match (value(ours), value(theirs)) {
        (Some(ours), Some(theirs)) => same_but_bytes(&ours, &theirs),
        (None, None) => ours == "bytes" && theirs.starts_with('.'),
        _ => false,
    }
}
