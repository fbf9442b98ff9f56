//! [`HloModule`]: a compiled module, as XLA writes it.

use std::fmt;

use bytes::Bytes;
use prost::Message;

use crate::proto::xla::HloModuleProto;
use crate::status::Result;

/// A serialized `xla.HloModuleProto`. It is passed on as it is; only its head is ever read here.
#[derive(Clone, PartialEq, Eq)]
pub struct HloModule(Bytes);

impl HloModule {
    /// The module with this serialized form, which is not checked.
    pub const fn new(serialized: Bytes) -> Self {
        Self(serialized)
    }

    /// The serialized form.
    pub const fn serialized(&self) -> &Bytes {
        &self.0
    }

    /// The name of the module.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the bytes are no module.
    pub fn name(&self) -> Result<String> {
        Ok(HloModuleProto::decode(self.0.clone())?.name)
    }
}

impl fmt::Debug for HloModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HloModule({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_head_is_read() {
        let mut bytes = HloModuleProto {
            name: "add".to_owned(),
            ..HloModuleProto::default()
        }
        .encode_to_vec();
        // Field 3 holds the computations, which our message leaves out.
        bytes.extend([0x1a, 2, 0xff, 0xff]);
        let module = HloModule::new(bytes.into());
        assert_eq!(module.name().unwrap(), "add");
        assert!(
            HloModule::new(Bytes::from_static(&[0x0a, 9]))
                .name()
                .is_err()
        );
    }
}
