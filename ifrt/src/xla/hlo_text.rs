//! HLO modules as text for people.
//!
//! The text follows XLA's, so that what people and tools search in `compiled.as_text()` is there:
//! opcodes, shapes with layouts, attributes, operation names. It is not meant to be parsed back:
//! large constants are left out, and so is what only the compiler needs.
//!
//! # Mirrors
//! `xla/hlo/ir/hlo_module.cc`, `hlo_computation.cc`, `hlo_instruction.cc`, their `ToString`.

mod attributes;
mod collective;
mod dimensions;
mod literal;
mod shape;

use std::collections::HashMap;
use std::fmt::{self, Write as _};

use prost::Message as _;

use crate::proto::xla::{HloComputationProto, HloInstructionProto, HloModuleProto};
use crate::status::{Result, Status};
use shape::{list, shape};

/// Prints a serialized `xla.HloModuleProto`.
///
/// # Errors
/// INVALID_ARGUMENT if the bytes are no such message.
pub fn hlo_text(module: bytes::Bytes) -> Result<String> {
    let module = HloModuleProto::decode(module)?;
    let computations = module
        .computations
        .iter()
        .map(|computation| Ok(HloComputationProto::decode(computation.clone())?))
        .collect::<Result<Vec<_>>>()?;
    let mut text = String::new();
    print_module(&mut text, &module, &computations)
        .map_err(|fmt::Error| Status::internal("an HLO module could not be printed"))?;
    Ok(text)
}

/// The names of what instructions refer to by number.
struct Names<'a> {
    computations: HashMap<i64, &'a str>,
    instructions: HashMap<i64, &'a str>,
}

impl Names<'_> {
    fn computation(&self, id: i64) -> &str {
        self.computations.get(&id).copied().unwrap_or("?")
    }

    fn instruction(&self, id: i64) -> &str {
        self.instructions.get(&id).copied().unwrap_or("?")
    }
}

fn print_module(
    out: &mut String,
    module: &HloModuleProto,
    computations: &[HloComputationProto],
) -> fmt::Result {
    write!(out, "HloModule {}", module.name)?;
    if let Some(program) = &module.host_program_shape {
        let parameters = list(program.parameters.iter().map(|one| shape(one, true)));
        let result = program
            .result
            .as_ref()
            .map(|one| shape(one, true))
            .unwrap_or_default();
        write!(
            out,
            ", entry_computation_layout={{({parameters})->{result}}}"
        )?;
    }
    out.push_str("\n\n");
    let mut names = Names {
        computations: computations
            .iter()
            .map(|one| (one.id, one.name.as_str()))
            .collect(),
        instructions: HashMap::new(),
    };
    for computation in computations {
        names.instructions = computation
            .instructions
            .iter()
            .map(|one| (one.id, one.name.as_str()))
            .collect();
        let is_entry = computation.id == module.entry_computation_id;
        print_computation(out, computation, is_entry, &names)?;
    }
    Ok(())
}

fn print_computation(
    out: &mut String,
    computation: &HloComputationProto,
    is_entry: bool,
    names: &Names<'_>,
) -> fmt::Result {
    if is_entry {
        out.push_str("ENTRY ");
    }
    write!(out, "%{}", computation.name)?;
    if let Some(program) = &computation.program_shape {
        let parameters = program
            .parameters
            .iter()
            .zip(
                program
                    .parameter_names
                    .iter()
                    .map(String::as_str)
                    .chain(std::iter::repeat("")),
            )
            .map(|(one, name)| format!("{name}: {}", shape(one, false)));
        let result = program
            .result
            .as_ref()
            .map(|one| shape(one, false))
            .unwrap_or_default();
        write!(out, " ({}) -> {result}", list(parameters))?;
    }
    out.push_str(" {\n");
    for instruction in &computation.instructions {
        out.push_str(if instruction.id == computation.root_id {
            "  ROOT "
        } else {
            "  "
        });
        print_instruction(out, instruction, names)?;
        out.push('\n');
    }
    out.push_str("}\n\n");
    Ok(())
}

fn print_instruction(
    out: &mut String,
    instruction: &HloInstructionProto,
    names: &Names<'_>,
) -> fmt::Result {
    let result = instruction
        .shape
        .as_ref()
        .map(|one| shape(one, true))
        .unwrap_or_default();
    write!(
        out,
        "%{} = {result} {}(",
        instruction.name, instruction.opcode
    )?;
    match (instruction.opcode.as_str(), &instruction.literal) {
        ("parameter", _) => write!(out, "{}", instruction.parameter_number)?,
        ("constant", Some(literal)) => literal::print(out, literal)?,
        _ => {
            let operands = instruction.operand_ids.iter();
            out.push_str(&list(
                operands.map(|id| format!("%{}", names.instruction(*id))),
            ));
        }
    }
    out.push(')');
    attributes::print(out, instruction, names)
}

#[cfg(test)]
mod tests;
