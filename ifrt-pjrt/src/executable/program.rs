//! What the optimized HLO module of an executable tells: the only source for the parameters of a
//! program and for the inputs that it consumes, since the C API has no functions for them.

use bytes::Bytes;
use ifrt::dtype::DType;
use ifrt::executable::HloModule;
use ifrt::layout::Layout;
use ifrt::proto::xla::{
    HloModuleProto, HloModuleProtoWithConfig, LayoutProto, OpSharding, ShapeProto,
};
use ifrt::serdes::xla_layout_from_proto;
use ifrt::shape::Shape;
use ifrt::xla::HloSharding;
use ifrt::{Code, Result, Status};
use prost::Message;

use crate::safe::executable::LoadedExecutable;

/// The format of a serialized `HloModuleProto`.
const HLO: &str = "hlo";

/// The format of a serialized `HloModuleProtoWithConfig`.
const HLO_WITH_CONFIG: &str = "hlo_with_config";

/// A parameter as each device sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) dtype: DType,
    pub(crate) shape: Shape,
    /// `None` if the module does not tell it.
    pub(crate) layout: Option<Layout>,
}

/// The interface of an optimized module.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Interface {
    pub(crate) parameters: Vec<Parameter>,
    /// The parameters whose arguments a run may consume, ascending.
    pub(crate) donatable: Vec<usize>,
    pub(crate) parameter_shardings: Option<Vec<HloSharding>>,
    pub(crate) output_shardings: Option<Vec<HloSharding>>,
}

impl Interface {
    /// Asks an executable. `None` if the plugin does not give its programs, or in another form.
    ///
    /// # Errors
    /// Those of the plugin; INTERNAL for a module that contradicts itself.
    pub(crate) fn of(executable: &LoadedExecutable) -> Result<Option<Self>> {
        let (format, code) = match executable.optimized_program() {
            Err(status) if status.code() == Code::Unimplemented => return Ok(None),
            program => program?,
        };
        let module = match format.as_str() {
            HLO_WITH_CONFIG => {
                HloModuleProtoWithConfig::decode(&*code)
                    .map_err(malformed)?
                    .hlo_module
            }
            HLO => Some(HloModuleProto::decode(&*code).map_err(malformed)?),
            _ => None,
        };
        module.as_ref().map(Self::read).transpose()
    }

    fn read(module: &HloModuleProto) -> Result<Self> {
        let no_shape = || Status::internal("the plugin gave an HLO module without a signature");
        let signature = module.host_program_shape.as_ref().ok_or_else(no_shape)?;
        // One tuple stands for all parameters; the arguments of a run are its elements.
        let tupled = match signature.parameters.as_slice() {
            [one] if one.element_type == TUPLE => Some(one),
            _ => None,
        };
        let shapes = tupled.map_or(&signature.parameters, |one| &one.tuple_shapes);
        let parameters = shapes
            .iter()
            .map(read_parameter)
            .collect::<Result<Vec<_>>>()?;
        let alias = module
            .input_output_alias
            .iter()
            .flat_map(|alias| &alias.entries);
        let donor = module.buffer_donor.iter().flat_map(|donor| &donor.entries);
        let inputs = alias
            .map(|entry| (entry.parameter_number, &entry.parameter_shape_index))
            .chain(donor.map(|entry| (entry.parameter_number, &entry.parameter_shape_index)));
        let mut donatable = Vec::new();
        for (number, index) in inputs {
            let number = if tupled.is_some() {
                index.first()
            } else {
                Some(&number)
            };
            let number = number.and_then(|number| usize::try_from(*number).ok());
            match number.filter(|number| *number < parameters.len()) {
                Some(number) => donatable.push(number),
                None => {
                    return Err(Status::internal(
                        "an HLO module donates what it does not take",
                    ));
                }
            }
        }
        donatable.sort_unstable();
        donatable.dedup();
        Ok(Self {
            parameter_shardings: read_shardings(module.spmd_parameters_shardings.iter()),
            output_shardings: module.spmd_output_sharding.as_ref().and_then(|sharding| {
                match sharding.tuple_shardings.as_slice() {
                    [] => read_shardings([sharding].into_iter()),
                    leaves => read_shardings(leaves.iter()),
                }
            }),
            parameters,
            donatable,
        })
    }
}

/// A serialized `HloModuleProtoWithConfig` whose module is not decoded.
#[derive(Clone, PartialEq, Message)]
struct ModuleBytes {
    #[prost(bytes = "bytes", tag = "1")]
    hlo_module: Bytes,
}

/// The optimized module as the plugin gave it.
///
/// # Errors
/// UNIMPLEMENTED if the plugin does not give its programs, or in another form.
pub(super) fn module_of(executable: &LoadedExecutable) -> Result<HloModule> {
    let (format, code) = executable.optimized_program()?;
    match format.as_str() {
        HLO => Ok(HloModule::new(code.into())),
        HLO_WITH_CONFIG => ModuleBytes::decode(&*code)
            .map(|program| HloModule::new(program.hlo_module))
            .map_err(malformed),
        _ => Err(Status::unimplemented(format!(
            "the plugin gives its programs as {format:?}"
        ))),
    }
}

fn malformed(error: prost::DecodeError) -> Status {
    Status::internal(format!("the plugin gave no HLO module: {error}"))
}

/// XLA's number for a tuple.
const TUPLE: i32 = 13;

fn read_parameter(shape: &ShapeProto) -> Result<Parameter> {
    let internal = |status: Status| status.with_code(Code::Internal);
    Ok(Parameter {
        dtype: DType::from_primitive_type(shape.element_type).map_err(internal)?,
        shape: Shape::new(shape.dimensions.clone()).map_err(internal)?,
        layout: shape.layout.as_deref().and_then(|layout| {
            // Where the data is, is told by the memory kind.
            let layout = LayoutProto {
                memory_space: 0,
                ..layout.clone()
            };
            xla_layout_from_proto(&layout).ok()
        }),
    })
}

/// `None` if there are none, or one that is not understood: then nobody claims to know them.
fn read_shardings<'a>(
    shardings: impl ExactSizeIterator<Item = &'a OpSharding>,
) -> Option<Vec<HloSharding>> {
    if shardings.len() == 0 {
        return None;
    }
    shardings
        .map(|sharding| HloSharding::from_proto(sharding).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ifrt::proto::xla::hlo_buffer_donor_proto::BufferDonorEntryProto;
    use ifrt::proto::xla::hlo_input_output_alias_proto::AliasEntryProto;
    use ifrt::proto::xla::{HloBufferDonorProto, HloInputOutputAliasProto, ProgramShapeProto};

    fn shape(dtype: DType, dims: &[i64]) -> ShapeProto {
        ShapeProto {
            element_type: dtype as i32,
            dimensions: dims.to_vec(),
            ..ShapeProto::default()
        }
    }

    fn module(
        parameters: Vec<ShapeProto>,
        alias: &[(i64, &[i64])],
        donor: &[i64],
    ) -> HloModuleProto {
        let alias = alias.iter().map(|(number, index)| AliasEntryProto {
            parameter_number: *number,
            parameter_shape_index: index.to_vec(),
            ..AliasEntryProto::default()
        });
        let donor = donor.iter().map(|number| BufferDonorEntryProto {
            parameter_number: *number,
            ..BufferDonorEntryProto::default()
        });
        HloModuleProto {
            host_program_shape: Some(ProgramShapeProto {
                parameters,
                ..ProgramShapeProto::default()
            }),
            input_output_alias: Some(HloInputOutputAliasProto {
                entries: alias.collect(),
            }),
            buffer_donor: Some(HloBufferDonorProto {
                entries: donor.collect(),
            }),
            ..HloModuleProto::default()
        }
    }

    #[test]
    fn parameters_and_donations_are_read() {
        let parameters = vec![
            shape(DType::F32, &[2, 3]),
            shape(DType::Token, &[]),
            shape(DType::S4, &[7]),
            shape(DType::F32, &[]),
        ];
        let interface = Interface::read(&module(parameters, &[(3, &[])], &[0, 3])).unwrap();
        assert_eq!(interface.donatable, [0, 3]);
        let dtypes: Vec<DType> = interface.parameters.iter().map(|p| p.dtype).collect();
        assert_eq!(dtypes, [DType::F32, DType::Token, DType::S4, DType::F32]);
        assert_eq!(interface.parameters[0].shape.dims(), [2, 3]);
        assert_eq!(interface.output_shardings, None);
    }

    #[test]
    fn a_tuple_stands_for_its_elements() {
        let tuple = ShapeProto {
            element_type: TUPLE,
            tuple_shapes: vec![shape(DType::F32, &[1]), shape(DType::S8, &[2])],
            ..ShapeProto::default()
        };
        let interface = Interface::read(&module(vec![tuple], &[(0, &[1])], &[])).unwrap();
        assert_eq!(interface.parameters.len(), 2);
        assert_eq!(interface.donatable, [1]);
    }

    #[test]
    fn contradictions_are_internal_errors() {
        let one = || vec![shape(DType::F32, &[1])];
        for module in [
            HloModuleProto::default(),
            module(one(), &[(1, &[])], &[]),
            module(one(), &[], &[-1]),
            module(vec![shape(DType::F32, &[-1])], &[], &[]),
            module(vec![ShapeProto::default()], &[], &[]),
        ] {
            assert_eq!(Interface::read(&module).unwrap_err().code(), Code::Internal);
        }
    }
}
