//! Taking arrays apart and putting them together, without moving data.

use std::sync::Arc;

use ifrt::{ArrayCopySemantics, DeviceRef, Result, Shape, ShardSemantics, Status};

use super::{Array, Meta};
use crate::aval::Aval;
use crate::client::Client;
use crate::deletion::{Cells, DeadArgument, Mode, Uses};
use crate::sharding::{Index, Sharding, replica_ids};

/// The part of an array on one device.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Shard {
    /// The device.
    pub device: DeviceRef,
    /// The part of the array that it is.
    pub index: Index,
    /// How many earlier shards hold the same part.
    pub replica_id: usize,
    /// The part as an array. It shares its buffer with the array that it comes from: deleting the
    /// one deletes the other.
    pub data: Array,
}

impl Array {
    /// The parts on devices that this process can reach.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a dead array, or if its sharding does not say which part is where.
    ///
    /// # Mirrors
    /// `jax.Array.addressable_shards`.
    pub fn addressable_shards(&self) -> Result<Vec<Shard>> {
        self.check_alive()?;
        let indices = self.sharding().index_map(self.shape())?;
        let replicas = replica_ids(&indices);
        let parts = if self.sharding().devices().len() == 1 {
            vec![self.alias(self.sharding().clone(), true)]
        } else {
            self.disassemble()?
        };
        let devices = self.sharding().devices().iter();
        Ok(devices
            .zip(indices.into_iter().zip(replicas))
            .filter(|(device, _)| device.is_addressable())
            .zip(parts)
            .map(|((device, (index, replica_id)), data)| Shard {
                device: Arc::clone(device),
                index,
                replica_id,
                data,
            })
            .collect())
    }

    fn disassemble(&self) -> Result<Vec<Self>> {
        let pinned = self
            .buffers()
            .pin()
            .map_err(|reason| self.deleted(reason))?;
        let handles = pinned.with(|handle| {
            handle.disassemble(ArrayCopySemantics::ReuseInput, ShardSemantics::Addressable)
        });
        let handles = self.explain(handles)?;
        let cells = self.buffers().cells();
        if handles.len() != cells.len() {
            return Err(Status::internal(format!(
                "the runtime took an array with {} shards apart into {}",
                cells.len(),
                handles.len()
            )));
        }
        let part = |(position, handle): (usize, ifrt::ArrayRef)| {
            let sharding = Sharding::from_runtime(handle.sharding());
            let (Some(sharding), Some(cells)) = (sharding, cells.shard(position)) else {
                return Err(Status::internal(
                    "the runtime gave a shard without a device",
                ));
            };
            let meta = Meta {
                sharding,
                committed: true,
                weak_type: self.weak_type(),
            };
            Ok(Self::with_cells(self.client(), handle, meta, cells))
        };
        handles.into_iter().enumerate().map(part).collect()
    }

    /// One array of arrays on one device each, which share their buffers with it.
    ///
    /// # Shapes
    /// One input per addressable device of the sharding, in that order, with the shape of a shard.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the inputs do not fit, or one is dead.
    ///
    /// # Mirrors
    /// `jax.make_array_from_single_device_arrays`.
    pub fn from_single_device_arrays(
        client: &Client,
        shape: Shape,
        sharding: impl Into<Sharding>,
        parts: &[Self],
    ) -> Result<Self> {
        let sharding = sharding.into();
        let shard_shape = sharding.shard_shape(&shape)?;
        let devices = sharding.devices().addressable();
        let Some(first) = parts.first().filter(|_| parts.len() == devices.len()) else {
            return Err(Status::invalid_argument(format!(
                "When making an array from single-device arrays the number of arrays must be that \
                 of the addressable devices of the sharding: expected {}, found {}",
                devices.len(),
                parts.len()
            )));
        };
        let expected = Aval::new(first.dtype(), shard_shape);
        for (position, (part, device)) in parts.iter().zip(&devices).enumerate() {
            part.check_part(position, &expected, device)?;
        }
        let modes: Vec<_> = parts
            .iter()
            .map(|part| (part.buffers(), Mode::Reference))
            .collect();
        let refused = |DeadArgument(position, reason)| parts[position].deleted(reason);
        let uses = Uses::begin(&modes).map_err(refused)?;
        let handles = uses.handles().map_err(refused)?;
        let handle = client.runtime().assemble_array(
            expected.dtype,
            shape.clone(),
            sharding.to_runtime(shape.rank())?,
            &handles,
            ArrayCopySemantics::ReuseInput,
            ShardSemantics::Addressable,
        )?;
        drop(uses);
        let cells: Option<Arc<[Cells]>> = parts
            .iter()
            .map(|part| part.buffers().cells().shard(0))
            .collect();
        let cells = cells.ok_or_else(|| Status::internal("a single-device array has no buffer"))?;
        let meta = Meta {
            sharding,
            committed: true,
            weak_type: first.weak_type(),
        };
        Ok(Self::with_cells(
            client,
            handle,
            meta,
            Cells::Assembled(cells),
        ))
    }

    fn check_part(&self, position: usize, expected: &Aval, device: &DeviceRef) -> Result<()> {
        let devices = self.sharding().devices();
        if devices.len() != 1 {
            return Err(Status::invalid_argument(format!(
                "When making an array from single-device arrays the input arrays must have one \
                 shard each. Argument {position} had {} shard(s).",
                devices.len()
            )));
        }
        if self.aval() != expected {
            return Err(Status::invalid_argument(format!(
                "When making an array from single-device arrays every part must be of type \
                 {expected}, but argument {position} is {}",
                self.aval()
            )));
        }
        let found = devices.ids().next();
        if found != Some(device.id()) {
            return Err(Status::invalid_argument(format!(
                "When making an array from single-device arrays part {position} must be on device \
                 {} as the sharding says, but it is on {devices:?}",
                device.id()
            )));
        }
        Ok(())
    }
}
