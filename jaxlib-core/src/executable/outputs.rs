//! The results of a call, and what their shardings are.

use ifrt::{ArrayRef, Result, Status};

use super::{Arg, LoadedExecutable};
use crate::array::{Array, Meta};
use crate::sharding::Sharding;

impl LoadedExecutable {
    /// Compares what the user says about the arguments with what the compiler says.
    pub(super) fn check_in_shardings(&self, asked: Option<&[Option<Sharding>]>) -> Result<()> {
        let Some(asked) = asked else {
            return Ok(());
        };
        if self.inputs.as_ref().map(Vec::len) != Some(asked.len()) {
            return Err(Status::invalid_argument(format!(
                "in_shardings is for {} arguments, but the program has {}",
                asked.len(),
                self.inputs.as_ref().map_or(0, Vec::len)
            )));
        }
        for (position, (asked, found)) in asked.iter().zip(&self.in_shardings).enumerate() {
            if let Some(asked) = asked {
                check_override("in_shardings", position, asked, found)?;
            }
        }
        Ok(())
    }

    /// Shows results with the shardings that the user has given.
    pub(super) fn with_out_shardings(
        mut self,
        asked: Option<Vec<Option<Sharding>>>,
    ) -> Result<Self> {
        let Some(asked) = asked else {
            return Ok(self);
        };
        let Some(found) = &mut self.out_shardings else {
            return Err(Status::unimplemented(
                "out_shardings cannot be compared, because this runtime does not say how results \
                 are spread",
            ));
        };
        // One sharding may stand for all.
        if let ([one], true) = (found.as_slice(), asked.len() > 1) {
            *found = vec![one.clone(); asked.len()];
        }
        if found.len() != asked.len() {
            return Err(Status::invalid_argument(format!(
                "out_shardings is for {} results, but the program has {}",
                asked.len(),
                found.len()
            )));
        }
        for (position, (asked, found)) in asked.into_iter().zip(found).enumerate() {
            if let Some(asked) = asked {
                check_override("out_shardings", position, &asked, found)?;
                *found = asked;
            }
        }
        Ok(self)
    }

    /// The results as arrays.
    pub(super) fn outputs(&self, handles: Vec<ArrayRef>, args: &[Arg<'_>]) -> Result<Vec<Array>> {
        let shardings = match &self.out_shardings {
            Some(known) if known.len() == handles.len() => known,
            Some(known) if known.len() == 1 => {
                // One sharding may stand for all.
                self.found_out_shardings
                    .get_or_init(|| vec![known[0].clone(); handles.len()])
            }
            _ => match self.found_out_shardings.get() {
                Some(found) => found,
                None => {
                    let found = find(&handles)?;
                    self.found_out_shardings.get_or_init(|| found)
                }
            },
        };
        let committed = self.is_explicit
            || self.devices.len() > 1
            || args.iter().any(|arg| arg.array().is_committed());
        let array = |(handle, sharding): (ArrayRef, &Sharding)| {
            let meta = Meta {
                sharding: sharding.clone(),
                committed,
                weak_type: false,
            };
            Array::new(&self.client, handle, meta)
        };
        Ok(handles.into_iter().zip(shardings).map(array).collect())
    }
}

fn find(handles: &[ArrayRef]) -> Result<Vec<Sharding>> {
    let one = |handle: &ArrayRef| {
        Sharding::from_runtime(handle.sharding()).ok_or_else(|| {
            Status::unimplemented(format!(
                "a result with sharding {:?} has no counterpart in JAX",
                handle.sharding()
            ))
        })
    };
    handles.iter().map(one).collect()
}

fn check_override(what: &str, position: usize, asked: &Sharding, found: &Sharding) -> Result<()> {
    let rank = match found.to_hlo(0) {
        Ok(ifrt::xla::HloSharding::Tiled(tiles)) => tiles.data_dims().len(),
        _ => match asked {
            Sharding::Named(named) => named.spec().dims().len(),
            _ => 0,
        },
    };
    if asked.devices() == found.devices() && asked.has_same_parts(found, rank) {
        return Ok(());
    }
    Err(Status::invalid_argument(format!(
        "Unexpected XLA sharding override: {what}[{position}] is {asked}, but the module was \
         compiled with {found}"
    )))
}
