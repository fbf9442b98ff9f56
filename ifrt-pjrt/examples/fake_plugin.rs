//! A shared library that claims to be a PJRT plugin of a version that is too old to be used. The
//! tests load it.

#![allow(
    unsafe_code,
    reason = "a plugin exports its entry point under a fixed name"
)]

/// The table: its size, no extensions, the size of the version, no extensions, version 0.40. There
/// is room for every function of that time, and none of them is there.
static TABLE: [u64; 104] = {
    let mut table = [0; 104];
    table[0] = 8 * 104;
    table[2] = 24;
    table[4] = 40 << 32;
    table
};

/// The entry point of a plugin.
// SAFETY: nobody else exports this name from this library.
#[unsafe(no_mangle)]
pub extern "C" fn GetPjrtApi() -> *const u64 {
    TABLE.as_ptr()
}
