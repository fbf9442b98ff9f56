//! The bodies of the fuzz targets: each takes any bytes and must neither panic nor hang nor use
//! memory without bounds, whatever they are.
//!
//! The bytes go to a reader of [`crate::serdes`], and what it accepts must be what it says: written
//! and read again it is the same value, and its own methods agree with each other. A broken
//! promise is a panic, which a fuzzer reports and a test fails on. Where a reader takes several
//! kinds, the first byte chooses.
//!
//! `ifrt/fuzz` drives these functions with libFuzzer and keeps a corpus for each, which an ordinary
//! test replays.
//!
//! What is not here: the requests of the proxy, whose crate has targets of its own.

mod plans;
mod shardings;
mod values;

use std::sync::{Arc, LazyLock};

use prost::Message;

pub use plans::{program, remap_plan};
pub use shardings::{array_spec, hlo_sharding, sharding, sharding_spec};
pub use values::{layout, status, value};

use crate::fake::{FakeClient, FakeOptions};
use crate::proto::xla::ifrt::Serialized;
use crate::status::{Result, Status};

/// A target by name.
pub type Target = (&'static str, fn(&[u8]));

/// Every target by name.
pub const TARGETS: [Target; 9] = [
    ("array_spec", array_spec),
    ("hlo_sharding", hlo_sharding),
    ("layout", layout),
    ("program", program),
    ("remap_plan", remap_plan),
    ("sharding", sharding),
    ("sharding_spec", sharding_spec),
    ("status", status),
    ("value", value),
];

/// Eight devices, of which the first six can be reached.
fn client() -> Arc<FakeClient> {
    static CLIENT: LazyLock<Arc<FakeClient>> = LazyLock::new(|| {
        FakeClient::new(FakeOptions {
            num_devices: 8,
            num_addressable: 6,
            ..FakeOptions::default()
        })
    });
    Arc::clone(&CLIENT)
}

/// Takes a byte that chooses one of `kinds` off the front.
fn choose<'a, T: Copy>(data: &'a [u8], kinds: &[T]) -> Option<(T, &'a [u8])> {
    let (first, rest) = data.split_first()?;
    let kind = kinds.get(usize::from(*first) % kinds.len())?;
    Some((*kind, rest))
}

fn serialized(name: &str, data: &[u8]) -> Serialized {
    Serialized {
        type_name: format!("xla::ifrt::{name}"),
        data: data.to_vec().into(),
    }
}

/// What a function gave for a value that it must accept.
fn accepted<T>(result: Result<T>, what: &str) -> T {
    match result {
        Ok(value) => value,
        Err(error) => unreachable!("{what} is refused: {error}"),
    }
}

/// Reads a message; what is read must survive being written and read again.
fn check<P, T>(data: &[u8], read: impl Fn(&P) -> Result<T>, write: impl Fn(&T) -> Result<P>)
where
    P: Message + Default,
    T: PartialEq + std::fmt::Debug,
{
    let Ok(proto) = P::decode(data) else {
        return;
    };
    let Ok(value) = read(&proto) else {
        return;
    };
    let written = accepted(write(&value), "a value that was read");
    let bytes = written.encode_to_vec();
    let proto = accepted(P::decode(&bytes[..]).map_err(Status::from), "what we wrote");
    assert_eq!(accepted(read(&proto), "what we wrote"), value);
}

/// Carried along, but not compared.
#[derive(Debug)]
struct Kept<T>(T);

impl<T> PartialEq for Kept<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
