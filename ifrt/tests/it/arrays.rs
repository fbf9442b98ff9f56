//! ARR: arrays and host transfer.

mod assemble;
mod bitcast;
mod copies;
mod host;
mod inverse;
mod odd;
mod poison;
mod remap;
mod reshard;
mod shards;
