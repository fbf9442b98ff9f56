//! Reading bytes, texts and lists that a plugin lends.

/// The bytes at a pointer that a plugin gave; empty if it is NULL.
///
/// # Safety
/// S9: `len` bytes are readable at `pointer` for the life `'a`, and nobody writes them.
pub(crate) unsafe fn lent<'a>(pointer: *const u8, len: usize) -> &'a [u8] {
    // SAFETY: S9, as promised by the caller.
    unsafe { lent_list(pointer, len) }
}

/// The list at a pointer that a plugin gave; empty if it is NULL.
///
/// # Safety
/// S9: `len` values are readable at `pointer` for the life `'a`, and nobody writes them.
pub(crate) unsafe fn lent_list<'a, T>(pointer: *const T, len: usize) -> &'a [T] {
    if pointer.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: S9, as promised by the caller; the pointer is not NULL.
    unsafe { std::slice::from_raw_parts(pointer, len) }
}

/// The text of lent bytes. Plugins promise no encoding, so what is no UTF-8 is replaced.
///
/// # Safety
/// S9 as for [`lent`].
pub(crate) unsafe fn lent_text(pointer: *const u8, len: usize) -> String {
    // SAFETY: S9, as promised by the caller.
    let bytes = unsafe { lent(pointer, len) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// The byte strings of a list of pointers and a list of lengths.
///
/// # Safety
/// S9 for both lists and for each string.
pub(crate) unsafe fn lent_strings<'a>(
    pointers: *const *const u8,
    sizes: *const usize,
    len: usize,
) -> Vec<&'a [u8]> {
    // SAFETY: S9, as promised by the caller.
    let pointers = unsafe { lent_list(pointers, len) };
    // SAFETY: S9, as promised by the caller.
    let sizes = unsafe { lent_list(sizes, len) };
    pointers
        .iter()
        .zip(sizes)
        // SAFETY: S9, as promised by the caller.
        .map(|(pointer, size)| unsafe { lent(*pointer, *size) })
        .collect()
}
