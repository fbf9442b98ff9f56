//! [`ExecutableVersion`]: what must fit before a serialized executable is loaded.

use bytes::Bytes;
use prost::Message;

use crate::proto::xla::ifrt::SerializedXlaExecutableVersion;
use crate::status::{Result, Status};

/// The version of a compiled program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExecutableVersion {
    /// Of a program that XLA compiled.
    Xla(XlaExecutableVersion),
    /// Of another kind, in its serialized form.
    Other {
        /// The name of the type, for example `xla::ifrt::IfrtIrExecutableVersion`.
        type_name: String,
        /// Its serialized form.
        data: Bytes,
    },
}

impl ExecutableVersion {
    /// Checks that nothing speaks against `other` being the same version. Whether it really loads
    /// is for [`crate::compiler::Compiler::is_executable_version_compatible`] to say.
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the kinds or platforms differ.
    ///
    /// # Mirrors
    /// `xla/python/ifrt/executable.h`, `ExecutableVersion::IsCompatibleWith`.
    pub fn is_compatible_with(&self, other: &Self) -> Result<()> {
        match (self, other) {
            (Self::Xla(own), Self::Xla(other)) if own.platform_id == other.platform_id => Ok(()),
            (Self::Xla(own), Self::Xla(other)) => Err(Status::invalid_argument(format!(
                "an executable for platform {:#x} does not fit platform {:#x}",
                other.platform_id, own.platform_id
            ))),
            (
                Self::Other { type_name: own, .. },
                Self::Other {
                    type_name: other, ..
                },
            ) if own == other => Ok(()),
            _ => Err(Status::invalid_argument(format!(
                "an executable version {} does not fit one {}",
                other.type_name(),
                self.type_name()
            ))),
        }
    }

    /// The name of the type, under which it is serialized.
    pub fn type_name(&self) -> &str {
        match self {
            Self::Xla(_) => XlaExecutableVersion::TYPE_NAME,
            Self::Other { type_name, .. } => type_name,
        }
    }
}

/// The version of a program that XLA compiled.
///
/// # Mirrors
/// `xla/python/pjrt_ifrt/xla_executable_version.h`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XlaExecutableVersion {
    /// The platform that it was compiled for.
    pub platform_id: u64,
    /// The version of the binary interface, as a serialized `xla.ifrt.Serialized`; `None` if the
    /// platform has none. Passed on as it is.
    pub abi_version: Option<Bytes>,
}

impl XlaExecutableVersion {
    /// The name under which it is serialized.
    pub const TYPE_NAME: &'static str = "xla::ifrt::XlaExecutableVersion";

    /// The serialized form.
    pub fn serialize(&self) -> Bytes {
        let message = SerializedXlaExecutableVersion {
            version_number: 0,
            platform_id: self.platform_id,
            runtime_abi_version: self.abi_version.clone().unwrap_or_default(),
        };
        message.encode_to_vec().into()
    }

    /// Reads the serialized form.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for other bytes; FAILED_PRECONDITION for a newer format.
    pub fn deserialize(bytes: Bytes) -> Result<Self> {
        let message = SerializedXlaExecutableVersion::decode(bytes)?;
        if message.version_number != 0 {
            return Err(Status::failed_precondition(format!(
                "Unsupported IFRT SerDes version {} for XlaExecutableVersion deserialization",
                message.version_number
            )));
        }
        let abi_version = Some(message.runtime_abi_version).filter(|version| !version.is_empty());
        Ok(Self {
            platform_id: message.platform_id,
            abi_version,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Code;

    fn xla(platform_id: u64) -> ExecutableVersion {
        ExecutableVersion::Xla(XlaExecutableVersion {
            platform_id,
            abi_version: None,
        })
    }

    #[test]
    fn platforms_and_kinds_must_fit() {
        let other = |type_name: &str| ExecutableVersion::Other {
            type_name: type_name.to_owned(),
            data: Bytes::new(),
        };
        assert_eq!(xla(1).is_compatible_with(&xla(1)), Ok(()));
        assert_eq!(other("a").is_compatible_with(&other("a")), Ok(()));
        for (own, other) in [
            (xla(1), xla(2)),
            (xla(1), other("a")),
            (other("a"), xla(1)),
            (other("a"), other("b")),
        ] {
            let error = own.is_compatible_with(&other).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{own:?} {other:?}");
        }
    }

    #[test]
    fn the_serialized_form_is_that_of_the_reference() {
        let version = XlaExecutableVersion {
            platform_id: 0x0102_0304_0506_0708,
            abi_version: Some(Bytes::from_static(b"abi")),
        };
        let bytes = version.serialize();
        // Field 2 is a fixed64 in little endian, field 3 are bytes.
        assert_eq!(
            bytes[..],
            *b"\x11\x08\x07\x06\x05\x04\x03\x02\x01\x1a\x03abi"
        );
        assert_eq!(XlaExecutableVersion::deserialize(bytes), Ok(version));
        let newer = Bytes::from_static(&[0x08, 1]);
        let error = XlaExecutableVersion::deserialize(newer).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition);
        assert!(XlaExecutableVersion::deserialize(Bytes::from_static(&[0xff])).is_err());
    }
}
