//! What happens in a run: join the arguments, call the kernel, cut the results.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::dtype::DType;
use crate::fake::elements;
use crate::fake::program::{FakeProgram, KernelCall, Tensor};
use crate::host_buffer::HostValue;
use crate::index::IndexDomain;
use crate::shape::Shape;
use crate::status::{Result, Status};

/// What a run needs to know, shared with the runs that are under way.
pub(super) struct Work {
    pub(super) program: FakeProgram,
    /// The part of each parameter that each device has.
    pub(super) parameters: Vec<Vec<IndexDomain>>,
    /// The part of each output that each device has.
    pub(super) outputs: Vec<Vec<IndexDomain>>,
}

impl Work {
    /// Joins the arguments, runs the kernel, and cuts the results: one value per output and device.
    pub(super) fn run(&self, shards: Vec<HostValue>) -> Result<Vec<HostValue>> {
        let mut shards = shards.into_iter();
        let mut inputs = Vec::with_capacity(self.parameters.len());
        for (parameter, domains) in self.program.parameters.iter().zip(&self.parameters) {
            let blocks: Vec<HostValue> = shards.by_ref().take(domains.len()).collect();
            let (dtype, shape) = (parameter.dtype, &parameter.shape);
            inputs.push(Tensor {
                dtype,
                shape: shape.clone(),
                value: whole(blocks, domains, dtype, shape)?,
            });
        }
        let outputs = self.program.outputs.iter();
        let types: Vec<_> = outputs.map(|one| (one.dtype, one.shape.clone())).collect();
        let results = self.call(&inputs, &types)?;
        let mut cut = Vec::new();
        for ((result, (dtype, shape)), domains) in results.iter().zip(&types).zip(&self.outputs) {
            for domain in domains {
                cut.push(part(result, *dtype, shape, domain)?);
            }
        }
        Ok(cut)
    }

    fn call(&self, inputs: &[Tensor], outputs: &[(DType, Shape)]) -> Result<Vec<HostValue>> {
        let call = KernelCall { inputs, outputs };
        let name = &self.program.name;
        // A kernel is foreign code, and its panic would strike whoever made its inputs ready.
        let results = catch_unwind(AssertUnwindSafe(|| (self.program.kernel)(&call)))
            .unwrap_or_else(|_| Err(Status::internal(format!("the kernel of {name} panicked"))))?;
        let fits = |(result, (dtype, shape)): (&HostValue, &(DType, Shape))| match result {
            HostValue::Bytes(data) => match dtype {
                DType::Token => data.is_empty(),
                _ => host_size(*dtype, shape) == Some(data.len()),
            },
            HostValue::Strings(data) => {
                *dtype == DType::String && i64::try_from(data.len()) == Ok(shape.num_elements())
            }
        };
        if results.len() == outputs.len() && results.iter().zip(outputs).all(fits) {
            return Ok(results);
        }
        Err(Status::internal(format!(
            "the kernel of {name} gave results of other sizes than {outputs:?}"
        )))
    }
}

fn host_size(dtype: DType, shape: &Shape) -> Option<usize> {
    elements::host_bytes(dtype, shape).ok()
}

fn whole(
    mut blocks: Vec<HostValue>,
    domains: &[IndexDomain],
    dtype: DType,
    shape: &Shape,
) -> Result<HostValue> {
    match (domains.first(), blocks.len()) {
        // The first copy will do, and a token has no elements to join.
        (Some(first), 1..) if first.shape() == shape => Ok(blocks.swap_remove(0)),
        _ => elements::join(&blocks, domains, dtype, shape),
    }
}

fn part(value: &HostValue, dtype: DType, shape: &Shape, domain: &IndexDomain) -> Result<HostValue> {
    if domain.shape() == shape {
        return Ok(value.clone());
    }
    elements::cut(value, dtype, shape, domain)
}
