//! What stands after the operands of an instruction, in XLA's order.

use std::fmt::{self, Write as _};

use super::shape::braces;
use super::{Names, collective, dimensions};
use crate::proto::xla::triangular_solve_options::Transpose;
use crate::proto::xla::{
    CustomCallApiVersion, FftType, HloInstructionProto, OpMetadata, RandomAlgorithm,
    RandomDistribution,
};
use crate::xla::HloSharding;

pub(super) fn print(
    out: &mut String,
    instruction: &HloInstructionProto,
    names: &Names<'_>,
) -> fmt::Result {
    of_opcode(out, instruction)?;
    called(out, instruction, names)?;
    if let Some(sharding) = &instruction.sharding
        && let Ok(sharding) = HloSharding::from_proto(sharding)
    {
        write!(out, ", sharding={}", collective::sharding(&sharding))?;
    }
    if let Some(attributes) = instruction.frontend_attributes.as_ref().map(|one| &one.map)
        && !attributes.is_empty()
    {
        let pairs: Vec<String> = attributes
            .iter()
            .map(|(key, value)| format!("{key}={value:?}"))
            .collect();
        write!(out, ", frontend_attributes={{{}}}", pairs.join(","))?;
    }
    if !instruction.control_predecessor_ids.is_empty() {
        let before: Vec<String> = instruction
            .control_predecessor_ids
            .iter()
            .map(|id| format!("%{}", names.instruction(*id)))
            .collect();
        write!(out, ", control-predecessors={{{}}}", before.join(", "))?;
    }
    if let Some(metadata) = &instruction.metadata {
        print_metadata(out, metadata)?;
    }
    if !instruction.backend_config.is_empty() {
        let config = String::from_utf8_lossy(&instruction.backend_config);
        if config.starts_with('{') {
            write!(out, ", backend_config={config}")?;
        } else {
            write!(out, ", backend_config={config:?}")?;
        }
    }
    Ok(())
}

fn of_opcode(out: &mut String, instruction: &HloInstructionProto) -> fmt::Result {
    match instruction.opcode.as_str() {
        "broadcast" | "reduce" | "transpose" | "concatenate" | "reverse" | "sort" | "map" => {
            write!(out, ", dimensions={}", braces(&instruction.dimensions))?;
            if instruction.opcode == "sort" && instruction.is_stable {
                out.write_str(", is_stable=true")?;
            }
        }
        "iota" => {
            let dimension = instruction.dimensions.first().copied().unwrap_or(0);
            write!(out, ", iota_dimension={dimension}")?;
        }
        "get-tuple-element" => write!(out, ", index={}", instruction.tuple_index)?,
        "get-dimension-size" | "set-dimension-size" => {
            write!(out, ", dimensions={}", braces(&instruction.dimensions))?;
        }
        "compare" => write!(out, ", direction={}", instruction.comparison_direction)?,
        "slice" => dimensions::slice(out, instruction)?,
        "dynamic-slice" => {
            write!(
                out,
                ", dynamic_slice_sizes={}",
                braces(&instruction.dynamic_slice_sizes)
            )?;
        }
        "pad" => dimensions::pad(out, instruction)?,
        "dot" => dimensions::dot(out, instruction)?,
        "gather" => dimensions::gather(out, instruction)?,
        "scatter" => dimensions::scatter(out, instruction)?,
        "convolution" => {
            if let Some(window) = &instruction.window {
                dimensions::window(out, window)?;
            }
            dimensions::convolution(out, instruction)?;
        }
        "reduce-window" | "select-and-scatter" => {
            if let Some(window) = &instruction.window {
                dimensions::window(out, window)?;
            }
        }
        "fusion" => write!(out, ", kind={}", instruction.fusion_kind)?,
        "fft" => {
            let kind = FftType::try_from(instruction.fft_type).unwrap_or(FftType::Fft);
            write!(
                out,
                ", fft_type={}, fft_length={}",
                kind.as_str_name(),
                braces(&instruction.fft_length)
            )?;
        }
        "cholesky" => {
            let lower = instruction
                .cholesky_options
                .as_ref()
                .is_some_and(|one| one.lower);
            write!(out, ", lower={lower}")?;
        }
        "triangular-solve" => triangular_solve(out, instruction)?,
        "rng" => {
            let kind = RandomDistribution::try_from(instruction.distribution)
                .unwrap_or(RandomDistribution::RngInvalid);
            write!(out, ", distribution={}", kind.as_str_name().to_lowercase())?;
        }
        "rng-bit-generator" => {
            let kind = RandomAlgorithm::try_from(instruction.rng_algorithm)
                .unwrap_or(RandomAlgorithm::RngDefault);
            write!(out, ", algorithm={}", kind.as_str_name().to_lowercase())?;
        }
        "reduce-precision" => write!(
            out,
            ", exponent_bits={}, mantissa_bits={}",
            instruction.exponent_bits, instruction.mantissa_bits
        )?,
        "batch-norm-inference" | "batch-norm-training" | "batch-norm-grad" => write!(
            out,
            ", epsilon={}, feature_index={}",
            instruction.epsilon, instruction.feature_index
        )?,
        "topk" => write!(
            out,
            ", k={}, largest={}",
            instruction.k, instruction.largest
        )?,
        "custom-call" => custom_call(out, instruction)?,
        "all-reduce"
        | "all-reduce-start"
        | "all-gather"
        | "all-gather-start"
        | "reduce-scatter"
        | "all-to-all"
        | "collective-broadcast"
        | "collective-permute"
        | "collective-permute-start"
        | "ragged-all-to-all" => of_collective(out, instruction)?,
        "infeed" | "outfeed" | "send" | "recv" | "send-done" | "recv-done" => {
            if instruction.channel_id > 0 {
                write!(out, ", channel_id={}", instruction.channel_id)?;
            }
            if instruction.is_host_transfer {
                out.write_str(", is_host_transfer=true")?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn of_collective(out: &mut String, instruction: &HloInstructionProto) -> fmt::Result {
    if instruction.channel_id > 0 {
        write!(out, ", channel_id={}", instruction.channel_id)?;
    }
    collective::replica_groups(out, instruction)?;
    if instruction.opcode.starts_with("collective-permute") {
        let pairs: Vec<String> = instruction
            .source_target_pairs
            .iter()
            .map(|pair| format!("{{{},{}}}", pair.source, pair.target))
            .collect();
        write!(out, ", source_target_pairs={{{}}}", pairs.join(","))?;
    }
    if !instruction.dimensions.is_empty() {
        write!(out, ", dimensions={}", braces(&instruction.dimensions))?;
    }
    if instruction.use_global_device_ids {
        out.write_str(", use_global_device_ids=true")?;
    }
    Ok(())
}

fn triangular_solve(out: &mut String, instruction: &HloInstructionProto) -> fmt::Result {
    let Some(options) = &instruction.triangular_solve_options else {
        return Ok(());
    };
    let transpose = Transpose::try_from(options.transpose_a).unwrap_or(Transpose::Invalid);
    for (name, set) in [
        ("left_side", options.left_side),
        ("lower", options.lower),
        ("unit_diagonal", options.unit_diagonal),
    ] {
        if set {
            write!(out, ", {name}=true")?;
        }
    }
    write!(out, ", transpose_a={}", transpose.as_str_name())
}

fn custom_call(out: &mut String, instruction: &HloInstructionProto) -> fmt::Result {
    write!(
        out,
        ", custom_call_target={:?}",
        instruction.custom_call_target
    )?;
    if instruction.custom_call_has_side_effect {
        out.write_str(", custom_call_has_side_effect=true")?;
    }
    if !instruction.output_operand_aliasing.is_empty() {
        let pairs: Vec<String> = instruction
            .output_operand_aliasing
            .iter()
            .map(|pair| {
                format!(
                    "{}: ({}, {})",
                    braces(&pair.output_shape_index),
                    pair.operand_index,
                    braces(&pair.operand_shape_index)
                )
            })
            .collect();
        write!(out, ", output_to_operand_aliasing={{{}}}", pairs.join(", "))?;
    }
    match CustomCallApiVersion::try_from(instruction.custom_call_api_version) {
        Ok(
            CustomCallApiVersion::ApiVersionUnspecified | CustomCallApiVersion::ApiVersionOriginal,
        )
        | Err(_) => Ok(()),
        Ok(version) => write!(out, ", api_version={}", version.as_str_name()),
    }
}

/// The computations that an instruction calls, each under the name that its opcode gives it.
fn called(out: &mut String, instruction: &HloInstructionProto, names: &Names<'_>) -> fmt::Result {
    let called = &instruction.called_computation_ids;
    let name = |position: usize| {
        called
            .get(position)
            .map_or("?", |id| names.computation(*id))
    };
    match (instruction.opcode.as_str(), called.len()) {
        (_, 0) => Ok(()),
        ("while", _) => write!(out, ", condition=%{}, body=%{}", name(1), name(0)),
        ("select-and-scatter", _) => write!(out, ", select=%{}, scatter=%{}", name(0), name(1)),
        ("fusion" | "async-start" | "async-update" | "async-done", _) => {
            write!(out, ", calls=%{}", name(0))
        }
        ("conditional", _) => {
            let branches: Vec<String> = (0..called.len())
                .map(|position| format!("%{}", name(position)))
                .collect();
            write!(out, ", branch_computations={{{}}}", branches.join(", "))
        }
        ("custom-call", count) => {
            let all: Vec<String> = (0..count).map(|n| format!("%{}", name(n))).collect();
            write!(out, ", called_computations={{{}}}", all.join(", "))
        }
        _ => write!(out, ", to_apply=%{}", name(0)),
    }
}

fn print_metadata(out: &mut String, metadata: &OpMetadata) -> fmt::Result {
    let mut parts = Vec::new();
    for (name, text) in [
        ("op_type", &metadata.op_type),
        ("op_name", &metadata.op_name),
        ("source_file", &metadata.source_file),
    ] {
        if !text.is_empty() {
            parts.push(format!("{name}={text:?}"));
        }
    }
    for (name, number) in [
        ("source_line", metadata.source_line),
        ("stack_frame_id", metadata.stack_frame_id),
    ] {
        if number != 0 {
            parts.push(format!("{name}={number}"));
        }
    }
    if parts.is_empty() {
        Ok(())
    } else {
        write!(out, ", metadata={{{}}}", parts.join(" "))
    }
}
