use ifrt::DType;
use ifrt::proto::xla::ifrt::{DTypeProto, d_type_proto::Kind};
use ifrt::serdes::{dtype_from_proto, dtype_to_proto};

use super::assert_invalid;

/// Every kind of the message, with its number.
const KINDS: [(Kind, DType); 35] = [
    (Kind::Pred, DType::Pred),
    (Kind::S1, DType::S1),
    (Kind::S2, DType::S2),
    (Kind::S4, DType::S4),
    (Kind::S8, DType::S8),
    (Kind::S16, DType::S16),
    (Kind::S32, DType::S32),
    (Kind::S64, DType::S64),
    (Kind::U1, DType::U1),
    (Kind::U2, DType::U2),
    (Kind::U4, DType::U4),
    (Kind::U8, DType::U8),
    (Kind::U16, DType::U16),
    (Kind::U32, DType::U32),
    (Kind::U64, DType::U64),
    (Kind::F16, DType::F16),
    (Kind::F32, DType::F32),
    (Kind::F64, DType::F64),
    (Kind::Bf16, DType::BF16),
    (Kind::C64, DType::C64),
    (Kind::C128, DType::C128),
    (Kind::F4e2m1fn, DType::F4E2M1FN),
    (Kind::F6e2m3fn, DType::F6E2M3FN),
    (Kind::F6e3m2fn, DType::F6E3M2FN),
    (Kind::F8e3m4, DType::F8E3M4),
    (Kind::F8e4m3, DType::F8E4M3),
    (Kind::F8e4m3fn, DType::F8E4M3FN),
    (Kind::F8e4m3b11fnuz, DType::F8E4M3B11FNUZ),
    (Kind::F8e4m3fnuz, DType::F8E4M3FNUZ),
    (Kind::F8e5m2, DType::F8E5M2),
    (Kind::F8e5m2fnuz, DType::F8E5M2FNUZ),
    (Kind::F8e8m0fnu, DType::F8E8M0FNU),
    (Kind::Token, DType::Token),
    (Kind::Opaque, DType::Opaque),
    (Kind::String, DType::String),
];

#[test]
fn dt_01_every_kind_of_the_message_round_trips() {
    assert_eq!(KINDS.len(), DType::ALL.len());
    for (kind, dtype) in KINDS {
        let proto = DTypeProto {
            kind: kind.into(),
            version_number: 0,
        };
        assert_eq!(dtype_from_proto(&proto), Ok(dtype));
        assert_eq!(dtype_to_proto(dtype), proto);
    }
    let unspecified = DTypeProto::default();
    assert_invalid(dtype_from_proto(&unspecified), "unknown dtype kind 0");
}

#[test]
fn dt_03_and_dt_04_sizes() {
    let bits = |dtype| match dtype {
        DType::S1 | DType::U1 => Some(1),
        DType::S2 | DType::U2 => Some(2),
        DType::S4 | DType::U4 | DType::F4E2M1FN => Some(4),
        DType::F6E2M3FN | DType::F6E3M2FN => Some(6),
        DType::Pred | DType::S8 | DType::U8 => Some(8),
        DType::S16 | DType::U16 | DType::F16 | DType::BF16 => Some(16),
        DType::S32 | DType::U32 | DType::F32 => Some(32),
        DType::S64 | DType::U64 | DType::F64 | DType::C64 => Some(64),
        DType::C128 => Some(128),
        DType::Token | DType::Opaque | DType::String => None,
        // The eight types that are left are floats of a byte.
        _ => Some(8),
    };
    for &dtype in DType::ALL {
        assert_eq!(dtype.bit_size(), bits(dtype), "{dtype}");
        let bytes = bits(dtype).filter(|bits| *bits >= 8).map(|bits| bits / 8);
        assert_eq!(dtype.byte_size(), bytes, "{dtype}");
    }
}
