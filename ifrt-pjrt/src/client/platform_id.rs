//! The number of a platform: XLA's 64-bit fingerprint of its name.
//!
//! # Mirrors
//! `farmhash::Fingerprint64`, as far as names go: up to 16 bytes.

/// The number of the platform with this name.
pub(crate) fn of(name: &str) -> u64 {
    let bytes = name.as_bytes();
    match bytes.len() {
        0 => K2,
        1..=3 => up_to_3(bytes),
        4..=7 => {
            let mul = K2.wrapping_add(len(bytes).wrapping_mul(2));
            let (first, last) = (word32(bytes), word32(&bytes[bytes.len() - 4..]));
            mix(len(bytes).wrapping_add(first << 3), last, mul)
        }
        8..=16 => up_to_16(bytes),
        // No platform has such a name; the number only has to be stable and to depend on all of it.
        _ => bytes
            .chunks(16)
            .map(up_to_16_or_less)
            .fold(K2, |sum, part| mix(sum, part, K2)),
    }
}

const K0: u64 = 0xc3a5_c85c_97cb_3127;
const K2: u64 = 0x9ae1_6a3b_2f90_404f;

fn len(bytes: &[u8]) -> u64 {
    bytes.len() as u64
}

fn word32(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .take(4)
        .rev()
        .fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn word64(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .take(8)
        .rev()
        .fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn up_to_3(bytes: &[u8]) -> u64 {
    let (a, b, c) = (bytes[0], bytes[bytes.len() / 2], bytes[bytes.len() - 1]);
    let y = u64::from(a).wrapping_add(u64::from(b) << 8);
    let z = len(bytes).wrapping_add(u64::from(c) << 2);
    shift_mix(y.wrapping_mul(K2) ^ z.wrapping_mul(K0)).wrapping_mul(K2)
}

fn up_to_16(bytes: &[u8]) -> u64 {
    let mul = K2.wrapping_add(len(bytes).wrapping_mul(2));
    let a = word64(bytes).wrapping_add(K2);
    let b = word64(&bytes[bytes.len() - 8..]);
    let c = b.rotate_right(37).wrapping_mul(mul).wrapping_add(a);
    let d = a.rotate_right(25).wrapping_add(b).wrapping_mul(mul);
    mix(c, d, mul)
}

fn up_to_16_or_less(bytes: &[u8]) -> u64 {
    if bytes.len() >= 8 {
        up_to_16(bytes)
    } else {
        word64(bytes)
    }
}

fn shift_mix(value: u64) -> u64 {
    value ^ value >> 47
}

fn mix(u: u64, v: u64, mul: u64) -> u64 {
    let a = shift_mix((u ^ v).wrapping_mul(mul));
    shift_mix((v ^ a).wrapping_mul(mul)).wrapping_mul(mul)
}
