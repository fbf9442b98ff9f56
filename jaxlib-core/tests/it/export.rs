//! Damaged files of exported functions.

use jaxlib_core::Exported;
use proptest::prelude::*;

const FILES: [&[u8]; 4] = [
    include_bytes!("../../../jax-api/tests/fixtures/exports/mlp.jaxexport"),
    include_bytes!("../../../jax-api/tests/fixtures/exports/sharded8.jaxexport"),
    include_bytes!("../../../jax-api/tests/fixtures/exports/sharded8-jax0.4.30.jaxexport"),
    include_bytes!("../../../jax-api/tests/fixtures/exports/nested_kwargs.jaxexport"),
];

#[test]
fn files_that_end_too_early() {
    for file in FILES {
        assert!(Exported::from_bytes(file).is_ok());
        for len in 0..file.len() - 8 {
            // Whatever it is, it is no crash; most of the time it is an error.
            drop(Exported::from_bytes(&file[..len]));
        }
        for len in [0, 1, 4, 8, file.len() / 2] {
            let error = Exported::from_bytes(&file[..len]).unwrap_err();
            assert!(error.message().contains("jax.export"), "{error}");
        }
    }
}

#[test]
fn things_that_are_no_exported_function() {
    for bytes in [
        &b""[..],
        b"ML\xefRStableHLO",
        b"\x04\0\0\0\x04\0\0\0\x04\0\x04\0\0\0",
        &[0; 1000],
        &[0xff; 1000],
    ] {
        assert!(Exported::from_bytes(bytes).is_err());
    }
}

#[test]
fn a_table_that_refers_to_itself() {
    // The root is a table with one field, slot 2 (a tree), which is the root again; as a tree it
    // has children in slot 1, which is a vector of the root.
    let mut bytes = vec![0_u8; 64];
    bytes[0..4].copy_from_slice(&20_u32.to_le_bytes());
    // The description at 4: 12 bytes long, table of 12 bytes, slots 0 to 3.
    for (position, value) in [12_u16, 12, 0, 8, 4, 0].iter().enumerate() {
        bytes[4 + 2 * position..6 + 2 * position].copy_from_slice(&value.to_le_bytes());
    }
    // The table at 20: description 16 bytes before it; slot 2 at 24 leads back to 20 by wrapping.
    bytes[20..24].copy_from_slice(&16_i32.to_le_bytes());
    bytes[24..28].copy_from_slice(&(20_u32.wrapping_sub(24)).to_le_bytes());
    bytes[28..32].copy_from_slice(&4_u32.to_le_bytes());
    bytes[32..36].copy_from_slice(&1_u32.to_le_bytes());
    bytes[36..40].copy_from_slice(&(20_u32.wrapping_sub(36)).to_le_bytes());
    assert!(Exported::from_bytes(&bytes).is_err());
}

proptest! {
    #[test]
    fn damage_is_an_error_or_harmless(
        file in 0_usize..FILES.len(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = FILES[file].to_vec();
        for (place, value) in damage {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        if let Ok(exported) = Exported::from_bytes(&bytes) {
            let text = format!("{exported:?} {}", exported.in_tree());
            prop_assert!(!text.is_empty());
        }
    }

    #[test]
    fn any_bytes_are_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(Exported::from_bytes(&bytes).is_err());
    }
}
