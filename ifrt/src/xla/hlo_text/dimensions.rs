//! Attributes that describe dimensions: slices, pads, windows, gathers, scatters, convolutions.

use std::fmt::{self, Write as _};

use super::shape::braces;
use crate::proto::xla::{ConvolutionDimensionNumbers, HloInstructionProto, Window};

pub(super) fn slice(out: &mut String, instruction: &HloInstructionProto) -> fmt::Result {
    let ranges: Vec<String> = instruction
        .slice_dimensions
        .iter()
        .map(|range| match range.stride {
            1 => format!("[{}:{}]", range.start, range.limit),
            stride => format!("[{}:{}:{stride}]", range.start, range.limit),
        })
        .collect();
    write!(out, ", slice={{{}}}", ranges.join(", "))
}

pub(super) fn pad(out: &mut String, instruction: &HloInstructionProto) -> fmt::Result {
    let Some(padding) = &instruction.padding_config else {
        return Ok(());
    };
    let inner = padding
        .dimensions
        .iter()
        .any(|dim| dim.interior_padding != 0);
    let dims: Vec<String> = padding
        .dimensions
        .iter()
        .map(|dim| {
            let edges = format!("{}_{}", dim.edge_padding_low, dim.edge_padding_high);
            if inner {
                format!("{edges}_{}", dim.interior_padding)
            } else {
                edges
            }
        })
        .collect();
    write!(out, ", padding={}", dims.join("x"))
}

pub(super) fn window(out: &mut String, window: &Window) -> fmt::Result {
    let join = |part: &dyn Fn(usize) -> String| {
        (0..window.dimensions.len())
            .map(part)
            .collect::<Vec<_>>()
            .join("x")
    };
    let dims = &window.dimensions;
    write!(
        out,
        ", window={{size={}",
        join(&|i| dims[i].size.to_string())
    )?;
    if dims.iter().any(|dim| dim.stride != 1) {
        write!(out, " stride={}", join(&|i| dims[i].stride.to_string()))?;
    }
    if dims
        .iter()
        .any(|dim| dim.padding_low != 0 || dim.padding_high != 0)
    {
        let pads = join(&|i| format!("{}_{}", dims[i].padding_low, dims[i].padding_high));
        write!(out, " pad={pads}")?;
    }
    if dims.iter().any(|dim| dim.base_dilation != 1) {
        write!(
            out,
            " lhs_dilate={}",
            join(&|i| dims[i].base_dilation.to_string())
        )?;
    }
    if dims.iter().any(|dim| dim.window_dilation != 1) {
        write!(
            out,
            " rhs_dilate={}",
            join(&|i| dims[i].window_dilation.to_string())
        )?;
    }
    if dims.iter().any(|dim| dim.window_reversal) {
        write!(
            out,
            " rhs_reversal={}",
            join(&|i| u8::from(dims[i].window_reversal).to_string())
        )?;
    }
    out.write_str("}")
}

pub(super) fn gather(out: &mut String, instruction: &HloInstructionProto) -> fmt::Result {
    let Some(dims) = &instruction.gather_dimension_numbers else {
        return Ok(());
    };
    write!(
        out,
        ", offset_dims={}, collapsed_slice_dims={}, start_index_map={}",
        braces(&dims.offset_dims),
        braces(&dims.collapsed_slice_dims),
        braces(&dims.start_index_map)
    )?;
    if !dims.operand_batching_dims.is_empty() {
        write!(
            out,
            ", operand_batching_dims={}, start_indices_batching_dims={}",
            braces(&dims.operand_batching_dims),
            braces(&dims.start_indices_batching_dims)
        )?;
    }
    write!(
        out,
        ", index_vector_dim={}, slice_sizes={}",
        dims.index_vector_dim,
        braces(&instruction.gather_slice_sizes)
    )?;
    sorted_and_unique(out, instruction)
}

pub(super) fn scatter(out: &mut String, instruction: &HloInstructionProto) -> fmt::Result {
    let Some(dims) = &instruction.scatter_dimension_numbers else {
        return Ok(());
    };
    write!(
        out,
        ", update_window_dims={}, inserted_window_dims={}, scatter_dims_to_operand_dims={}",
        braces(&dims.update_window_dims),
        braces(&dims.inserted_window_dims),
        braces(&dims.scatter_dims_to_operand_dims)
    )?;
    if !dims.input_batching_dims.is_empty() {
        write!(
            out,
            ", input_batching_dims={}, scatter_indices_batching_dims={}",
            braces(&dims.input_batching_dims),
            braces(&dims.scatter_indices_batching_dims)
        )?;
    }
    write!(out, ", index_vector_dim={}", dims.index_vector_dim)?;
    sorted_and_unique(out, instruction)
}

fn sorted_and_unique(out: &mut String, instruction: &HloInstructionProto) -> fmt::Result {
    if instruction.indices_are_sorted {
        out.write_str(", indices_are_sorted=true")?;
    }
    if instruction.unique_indices {
        out.write_str(", unique_indices=true")?;
    }
    Ok(())
}

pub(super) fn dot(out: &mut String, instruction: &HloInstructionProto) -> fmt::Result {
    let Some(dims) = &instruction.dot_dimension_numbers else {
        return Ok(());
    };
    for (name, dims, always) in [
        ("lhs_batch_dims", &dims.lhs_batch_dimensions, false),
        (
            "lhs_contracting_dims",
            &dims.lhs_contracting_dimensions,
            true,
        ),
        ("rhs_batch_dims", &dims.rhs_batch_dimensions, false),
        (
            "rhs_contracting_dims",
            &dims.rhs_contracting_dimensions,
            true,
        ),
    ] {
        if always || !dims.is_empty() {
            write!(out, ", {name}={}", braces(dims))?;
        }
    }
    Ok(())
}

pub(super) fn convolution(out: &mut String, instruction: &HloInstructionProto) -> fmt::Result {
    if let Some(dims) = &instruction.convolution_dimension_numbers {
        write!(out, ", dim_labels={}", dim_labels(dims))?;
    }
    for (name, count) in [
        ("feature_group_count", instruction.feature_group_count),
        ("batch_group_count", instruction.batch_group_count),
    ] {
        if count > 1 {
            write!(out, ", {name}={count}")?;
        }
    }
    Ok(())
}

/// `b01f_01io->b01f`: which dimension of each operand and of the result is what.
fn dim_labels(dims: &ConvolutionDimensionNumbers) -> String {
    let label = |first: (char, i64), second: (char, i64), spatial: &[i64]| {
        let mut places: Vec<(i64, String)> = vec![
            (first.1, first.0.to_string()),
            (second.1, second.0.to_string()),
        ];
        places.extend(
            spatial
                .iter()
                .enumerate()
                .map(|(n, place)| (*place, n.to_string())),
        );
        places.sort();
        places
            .into_iter()
            .map(|(_, label)| label)
            .collect::<String>()
    };
    format!(
        "{}_{}->{}",
        label(
            ('b', dims.input_batch_dimension),
            ('f', dims.input_feature_dimension),
            &dims.input_spatial_dimensions
        ),
        label(
            ('i', dims.kernel_input_feature_dimension),
            ('o', dims.kernel_output_feature_dimension),
            &dims.kernel_spatial_dimensions
        ),
        label(
            ('b', dims.output_batch_dimension),
            ('f', dims.output_feature_dimension),
            &dims.output_spatial_dimensions
        )
    )
}
