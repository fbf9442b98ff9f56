//! What an executable tells about itself.

use ifrt::attribute_map::AttributeMap;
use ifrt::dtype::DType;
use ifrt::executable::CompiledMemoryStats;
use ifrt::layout::Layout;
use ifrt::{Result, Status};

use super::LoadedExecutable;
use crate::safe::bytes::{lent, lent_list, lent_strings, lent_text};
use crate::safe::{dtype, layout, named_value};
use crate::sys::api::*;
use crate::sys::client::Program;
use crate::sys::executable::*;
use crate::sys::ext::*;

/// A program larger than this is taken for a mistake of the plugin.
const MAX_PROGRAM_BYTES: usize = 2 << 30;

impl LoadedExecutable {
    /// The name of the program.
    ///
    /// # Errors
    /// Those of the plugin, as for all questions below.
    pub(crate) fn name(&self) -> Result<String> {
        let mut args = ExecutableNameArgs {
            executable: self.executable.as_ptr(),
            ..ExecutableNameArgs::NEW
        };
        // SAFETY: S3, S4 and S7.
        unsafe { self.client.api().call::<ExecutableName>(&mut args) }?;
        // SAFETY: S9; the name lives as long as the executable.
        Ok(unsafe { lent_text(args.executable_name, args.executable_name_size) })
    }

    /// The number of replicas and of partitions.
    pub(crate) fn replicas_and_partitions(&self) -> Result<(usize, usize)> {
        let mut replicas = ExecutableNumReplicasArgs {
            executable: self.executable.as_ptr(),
            ..ExecutableNumReplicasArgs::NEW
        };
        // SAFETY: S3, S4 and S7.
        unsafe {
            self.client
                .api()
                .call::<ExecutableNumReplicas>(&mut replicas)
        }?;
        let mut partitions = ExecutableNumPartitionsArgs {
            executable: self.executable.as_ptr(),
            ..ExecutableNumPartitionsArgs::NEW
        };
        // SAFETY: S3, S4 and S7.
        unsafe {
            self.client
                .api()
                .call::<ExecutableNumPartitions>(&mut partitions)
        }?;
        Ok((replicas.num_replicas, partitions.num_partitions))
    }

    /// The size of the machine code.
    pub(crate) fn generated_code_bytes(&self) -> Result<i64> {
        let mut args = ExecutableSizeOfGeneratedCodeInBytesArgs {
            executable: self.executable.as_ptr(),
            ..ExecutableSizeOfGeneratedCodeInBytesArgs::NEW
        };
        // SAFETY: S3, S4 and S7.
        unsafe {
            self.client
                .api()
                .call::<ExecutableSizeOfGeneratedCodeInBytes>(&mut args)
        }?;
        Ok(args.size_in_bytes)
    }

    /// A name for the compiled program that equal programs share; empty if there is none.
    pub(crate) fn fingerprint(&self) -> Result<Vec<u8>> {
        let mut args = ExecutableFingerprintArgs {
            executable: self.executable.as_ptr(),
            ..ExecutableFingerprintArgs::NEW
        };
        // SAFETY: S3, S4 and S7.
        unsafe { self.client.api().call::<ExecutableFingerprint>(&mut args) }?;
        let (bytes, size) = (
            args.executable_fingerprint,
            args.executable_fingerprint_size,
        );
        // SAFETY: S9; the bytes live as long as the executable.
        Ok(unsafe { lent(bytes, size) }.to_vec())
    }

    /// The dtype of each output. Tokens are among them.
    pub(crate) fn output_dtypes(&self) -> Result<Vec<DType>> {
        let mut args = ExecutableOutputElementTypesArgs {
            executable: self.executable.as_ptr(),
            ..ExecutableOutputElementTypesArgs::NEW
        };
        // SAFETY: S3, S4 and S7.
        unsafe {
            self.client
                .api()
                .call::<ExecutableOutputElementTypes>(&mut args)
        }?;
        // SAFETY: S9; the list lives as long as the executable.
        let types = unsafe { lent_list(args.output_types, args.num_output_types) };
        types
            .iter()
            .map(|number| dtype::from_pjrt(*number))
            .collect()
    }

    /// The dimensions of each output on one device.
    pub(crate) fn output_dims(&self) -> Result<Vec<Vec<i64>>> {
        let mut args = ExecutableOutputDimensionsArgs {
            executable: self.executable.as_ptr(),
            ..ExecutableOutputDimensionsArgs::NEW
        };
        // SAFETY: S3, S4 and S7.
        unsafe {
            self.client
                .api()
                .call::<ExecutableOutputDimensions>(&mut args)
        }?;
        // SAFETY: S9; the list lives as long as the executable.
        let ranks = unsafe { lent_list(args.dim_sizes, args.num_outputs) };
        let total = ranks
            .iter()
            .try_fold(0_usize, |sum, rank| sum.checked_add(*rank))
            .ok_or_else(|| Status::internal("the plugin gave ranks without limit"))?;
        // SAFETY: S9; the list holds the dimensions of all outputs one after the other.
        let mut dims = unsafe { lent_list(args.dims, total) };
        let mut outputs = Vec::with_capacity(ranks.len());
        for rank in ranks {
            let (own, rest) = dims
                .split_at_checked(*rank)
                .ok_or_else(|| Status::internal("the plugin gave ranks without dimensions"))?;
            outputs.push(own.to_vec());
            dims = rest;
        }
        Ok(outputs)
    }

    /// The memory kind of each output.
    pub(crate) fn output_memory_kinds(&self) -> Result<Vec<String>> {
        let mut args = ExecutableOutputMemoryKindsArgs {
            executable: self.executable.as_ptr(),
            ..ExecutableOutputMemoryKindsArgs::NEW
        };
        // SAFETY: S3, S4 and S7.
        unsafe {
            self.client
                .api()
                .call::<ExecutableOutputMemoryKinds>(&mut args)
        }?;
        // SAFETY: S9; the lists live as long as the executable.
        let kinds =
            unsafe { lent_strings(args.memory_kinds, args.memory_kind_sizes, args.num_outputs) };
        Ok(kinds
            .into_iter()
            .map(|kind| String::from_utf8_lossy(kind).into_owned())
            .collect())
    }

    /// The layout of each output on a device.
    pub(crate) fn output_layouts(&self) -> Result<Vec<Layout>> {
        let api = self.client.api();
        let mut args = LayoutsExecutableGetOutputLayoutsArgs {
            executable: self.executable.as_ptr(),
            ..LayoutsExecutableGetOutputLayoutsArgs::NEW
        };
        // SAFETY: S3, S4 and S7.
        unsafe { api.call::<LayoutsExecutableGetOutputLayouts>(&mut args) }?;
        // SAFETY: S9; the list lives as long as the executable.
        let layouts = unsafe { lent_list(args.layouts, args.num_outputs) };
        // SAFETY: the executable owns the layouts.
        layouts
            .iter()
            .map(|layout| unsafe { layout::read(api, *layout) })
            .collect()
    }

    /// The layout of each parameter on a device.
    pub(crate) fn parameter_layouts(&self) -> Result<Vec<Layout>> {
        let api = self.client.api();
        let mut args = LayoutsExecutableGetParameterLayoutsArgs {
            executable: self.executable.as_ptr(),
            ..LayoutsExecutableGetParameterLayoutsArgs::NEW
        };
        // SAFETY: S3, S4 and S7.
        unsafe { api.call::<LayoutsExecutableGetParameterLayouts>(&mut args) }?;
        // SAFETY: S9; the list lives as long as the executable.
        let layouts = unsafe { lent_list(args.layouts, args.num_parameters) };
        // SAFETY: the executable owns the layouts.
        layouts
            .iter()
            .map(|layout| unsafe { layout::read(api, *layout) })
            .collect()
    }

    /// The serialized `OpSharding` of each parameter; `None` if the program has none.
    pub(crate) fn parameter_shardings(&self) -> Result<Option<Vec<Vec<u8>>>> {
        let mut args = ShardingsExecutableParameterShardingsArgs {
            executable: self.executable.as_ptr(),
            ..ShardingsExecutableParameterShardingsArgs::NEW
        };
        // SAFETY: S3, S4 and S7.
        unsafe {
            self.client
                .api()
                .call::<ShardingsExecutableParameterShardings>(&mut args)
        }?;
        if args.shardings.is_null() {
            return Ok(None);
        }
        // SAFETY: S9; the lists live as long as the executable.
        let list =
            unsafe { lent_strings(args.shardings, args.sharding_sizes, args.num_parameters) };
        Ok(Some(list.into_iter().map(<[u8]>::to_vec).collect()))
    }

    /// The serialized `OpSharding` of each output; `None` if the program has none.
    pub(crate) fn output_shardings(&self) -> Result<Option<Vec<Vec<u8>>>> {
        let mut args = ShardingsExecutableOutputShardingsArgs {
            executable: self.executable.as_ptr(),
            ..ShardingsExecutableOutputShardingsArgs::NEW
        };
        // SAFETY: S3, S4 and S7.
        unsafe {
            self.client
                .api()
                .call::<ShardingsExecutableOutputShardings>(&mut args)
        }?;
        if args.shardings.is_null() {
            return Ok(None);
        }
        // SAFETY: S9; the lists live as long as the executable.
        let list = unsafe { lent_strings(args.shardings, args.sharding_sizes, args.num_outputs) };
        Ok(Some(list.into_iter().map(<[u8]>::to_vec).collect()))
    }

    /// What the compiler thinks that a run costs.
    pub(crate) fn cost_analysis(&self) -> Result<AttributeMap> {
        let mut args = ExecutableGetCostAnalysisArgs {
            executable: self.executable.as_ptr(),
            ..ExecutableGetCostAnalysisArgs::NEW
        };
        // SAFETY: S3, S4 and S7.
        unsafe {
            self.client
                .api()
                .call::<ExecutableGetCostAnalysis>(&mut args)
        }?;
        // SAFETY: S9; the list lives as long as the executable.
        Ok(unsafe { named_value::read(args.properties, args.num_properties) })
    }

    /// The memory that the program needs. What an older plugin does not report is 0.
    pub(crate) fn memory_stats(&self) -> Result<CompiledMemoryStats> {
        let mut args = ExecutableGetCompiledMemoryStatsArgs {
            executable: self.executable.as_ptr(),
            ..ExecutableGetCompiledMemoryStatsArgs::NEW
        };
        // SAFETY: S3, S4 and S7.
        unsafe {
            self.client
                .api()
                .call::<ExecutableGetCompiledMemoryStats>(&mut args)
        }?;
        Ok(CompiledMemoryStats {
            generated_code_size_bytes: args.generated_code_size_in_bytes,
            argument_size_bytes: args.argument_size_in_bytes,
            output_size_bytes: args.output_size_in_bytes,
            alias_size_bytes: args.alias_size_in_bytes,
            temp_size_bytes: args.temp_size_in_bytes,
            host_generated_code_size_bytes: args.host_generated_code_size_in_bytes,
            host_argument_size_bytes: args.host_argument_size_in_bytes,
            host_output_size_bytes: args.host_output_size_in_bytes,
            host_alias_size_bytes: args.host_alias_size_in_bytes,
            host_temp_size_bytes: args.host_temp_size_in_bytes,
            peak_memory_bytes: args.peak_memory_in_bytes,
            total_size_bytes: args.total_size_in_bytes,
            total_allocation_bytes: args.total_allocation_bytes,
            indefinite_allocations: args.indefinite_allocations,
            peak_unpadded_heap_bytes: args.peak_unpadded_heap_bytes,
        })
    }

    /// The compiled program and the name of its format, for example `hlo_with_config`.
    pub(crate) fn optimized_program(&self) -> Result<(String, Vec<u8>)> {
        let mut program = Program::NEW;
        self.fill_program(&mut program)?;
        if program.code_size > MAX_PROGRAM_BYTES {
            return Err(Status::internal(format!(
                "the plugin gave a program of {} bytes",
                program.code_size
            )));
        }
        // SAFETY: S9; the format is a constant of the plugin.
        let format = unsafe { lent_text(program.format, program.format_size) };
        let mut code = vec![0_u8; program.code_size];
        program.code = code.as_mut_ptr();
        self.fill_program(&mut program)?;
        Ok((format, code))
    }

    /// Without a place for the code asks for its size, else for the code.
    fn fill_program(&self, program: &mut Program) -> Result<()> {
        let mut args = ExecutableOptimizedProgramArgs {
            executable: self.executable.as_ptr(),
            program,
            ..ExecutableOptimizedProgramArgs::NEW
        };
        // SAFETY: S3, S4 and S7; if there is a place, it is as large as the plugin said.
        unsafe {
            self.client
                .api()
                .call::<ExecutableOptimizedProgram>(&mut args)
        }
    }

    /// The executable as bytes that the same build of the plugin can load.
    pub(crate) fn serialize(&self) -> Result<Vec<u8>> {
        let mut args = ExecutableSerializeArgs {
            executable: self.executable.as_ptr(),
            ..ExecutableSerializeArgs::NEW
        };
        // SAFETY: S3, S4 and S7.
        unsafe { self.client.api().call::<ExecutableSerialize>(&mut args) }?;
        // SAFETY: S9; the bytes live until the deleter is called.
        let bytes = unsafe { lent(args.serialized_bytes, args.serialized_bytes_size) }.to_vec();
        if let Some(deleter) = args.serialized_executable_deleter {
            // SAFETY: S9; the deleter came with the object and is called once.
            unsafe { deleter(args.serialized_executable) };
        }
        Ok(bytes)
    }
}
