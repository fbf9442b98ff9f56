//! The PJRT C ABI, declared by hand: structs, function tables, extensions. No logic.
//!
//! The declarations follow API 0.114 (0.115 changed nothing that is visible from outside) and serve
//! every older plugin down to [`MIN_MINOR`], because the ABI only grows:
//!
//! - An argument struct states its own size. A plugin refuses a smaller one than it was built with
//!   and ignores what it does not know, so the newest structs fit all plugins.
//! - The size of a struct is the end of its last field, **not** `size_of`: padding does not count.
//! - A function exists iff its slot lies within the size that the plugin's table states *and* is
//!   not NULL. The minor number alone decides nothing, since forks number their additions
//!   differently. For the same reason the table is never copied by value.
//!
//! Every offset and size below is asserted at compile time. Reading a table and calling a function
//! is the business of [`safe`](crate::safe); nothing in here leaves the crate.
//!
//! # Mirrors
//! `xla/pjrt/c/pjrt_c_api.h`.

use std::ffi::c_void;

/// The only major version of the API.
pub(crate) const MAJOR: i32 = 0;

/// The oldest minor version whose table has the order that is declared here.
pub(crate) const MIN_MINOR: i32 = 57;

/// A value whose zero means *absent* or *unset* to a plugin.
pub(crate) trait Zero {
    const ZERO: Self;
}

macro_rules! zero {
    ($($type:ty = $zero:expr),*) => {
        $(impl Zero for $type {
            const ZERO: Self = $zero;
        })*
    };
}

zero!(usize = 0, u64 = 0, i64 = 0, i32 = 0, CBool = CBool(0));

impl<T> Zero for *const T {
    const ZERO: Self = std::ptr::null();
}

impl<T> Zero for *mut T {
    const ZERO: Self = std::ptr::null_mut();
}

impl<T> Zero for Option<T> {
    const ZERO: Self = None;
}

/// C's `bool`. A plugin may write any byte into it, which Rust's `bool` would not survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct CBool(pub(crate) u8);

impl CBool {
    pub(crate) const fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for CBool {
    fn from(value: bool) -> Self {
        Self(value.into())
    }
}

/// A struct that begins with its size and an extension chain.
pub(crate) trait Sized0 {
    /// The size that the struct states: the end of its last field.
    const STRUCT_SIZE: usize;
    /// The fields that arrived after the struct, with the minor version of their arrival.
    #[allow(dead_code, reason = "facts that tests compare with released plugins")]
    const GROWTH: &'static [(&'static str, i32)];
}

/// Declares structs of the ABI.
///
/// `Name: size { offset field: type => since, … }` becomes a `repr(C)` struct with the two common
/// leading fields, a `NEW` value that is zero but for the size, and one assertion per field.
macro_rules! pjrt_struct {
    ($($(#[$meta:meta])* $name:ident: $size:literal {
        $($offset:literal $field:ident: $type:ty $(=> $since:literal)?,)*
    })*) => {
        $(
            $(#[$meta])*
            #[derive(Debug)]
            #[repr(C)]
            pub(crate) struct $name {
                pub(crate) struct_size: usize,
                pub(crate) extension_start: *mut $crate::sys::ExtensionBase,
                $(pub(crate) $field: $type,)*
            }

            impl $name {
                /// Zero but for the size.
                #[allow(dead_code, reason = "some structs are only made by the plugin")]
                pub(crate) const NEW: Self = Self {
                    struct_size: $size,
                    extension_start: std::ptr::null_mut(),
                    $($field: <$type as $crate::sys::Zero>::ZERO,)*
                };
            }

            impl $crate::sys::Zero for $name {
                const ZERO: Self = Self::NEW;
            }

            impl $crate::sys::Sized0 for $name {
                const STRUCT_SIZE: usize = $size;
                const GROWTH: &'static [(&'static str, i32)] =
                    &[$($((stringify!($field), $since),)?)*];
            }

            const _: () = {
                #[allow(unused_mut, unused_assignments, reason = "a struct without own fields")]
                let mut end = 16;
                assert!(std::mem::offset_of!($name, extension_start) == 8);
                $(
                    assert!(std::mem::offset_of!($name, $field) == $offset);
                    end = $offset + size_of::<$type>();
                )*
                assert!(end == $size);
                assert!(size_of::<$name>() - end < 8);
            };
        )*
    };
}

/// Declares a function table: one row per slot, `offset "name" since;` for a slot that is not used
/// here, with `=> Marker(Args)` for one that is.
///
/// Each used slot becomes a type that implements [`Function`]. The rows must be without gaps.
macro_rules! pjrt_table {
    (
        $(#[$meta:meta])*
        $table:ident: $start:literal..$end:literal, $list:ident {
            $($offset:literal $name:literal $since:literal
                $(=> $marker:ident($args:ty) $(-> $ret:ty)?)?;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum $table {}

        /// Every slot of the table, in order.
        pub(crate) const $list: &[$crate::sys::Slot] = &[$(
            $crate::sys::Slot {
                name: $name,
                offset: $offset,
                since: $since,
                marker: $crate::sys::pjrt_table!(@marker $($marker)?),
            },
        )*];

        $($(
            #[doc = concat!("`", $name, "`.")]
            #[derive(Clone, Copy, Debug)]
            #[allow(dead_code, reason = "some functions are called with a feature only")]
            pub(crate) enum $marker {}

            impl $crate::sys::Function for $marker {
                type Table = $table;
                type Args = $args;
                type Ret = $crate::sys::pjrt_table!(@ret $($ret)?);
                const NAME: &'static str = $name;
                const OFFSET: usize = $offset;
                const SINCE: i32 = $since;
            }
        )?)*

        const _: () = {
            let mut position = 0;
            while position < $list.len() {
                assert!($list[position].offset == $start + 8 * position);
                position += 1;
            }
            assert!($start + 8 * position == $end);
        };
    };
    (@marker) => { None };
    (@marker $marker:ident) => { Some(stringify!($marker)) };
    (@ret) => { *mut $crate::sys::Error };
    (@ret $ret:ty) => { $ret };
}
pub(crate) use pjrt_table;

/// A slot of a function table.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "names and versions are read by the coverage test")]
pub(crate) struct Slot {
    /// The name in C.
    pub(crate) name: &'static str,
    /// Where the slot lies in its table.
    pub(crate) offset: usize,
    /// The minor version of its arrival; 0 if it was there before the changelog begins.
    pub(crate) since: i32,
    /// The type that stands for the function, if this crate calls it.
    pub(crate) marker: Option<&'static str>,
}

/// A function that this crate calls: its slot and its types.
pub(crate) trait Function {
    /// The table that holds it.
    type Table;
    /// What it takes.
    type Args;
    /// What it returns: an error pointer, NULL for success; a few return nothing.
    type Ret;
    const NAME: &'static str;
    const OFFSET: usize;
    const SINCE: i32;
}

/// The pointer in a slot.
pub(crate) type FunctionPointer<F> =
    unsafe extern "C" fn(*mut <F as Function>::Args) -> <F as Function>::Ret;

/// A callback that this crate never sets.
pub(crate) type UnusedCallback = Option<unsafe extern "C" fn()>;

/// Frees what a plugin lent together with some bytes.
pub(crate) type Deleter = Option<unsafe extern "C" fn(*mut c_void)>;

macro_rules! opaque {
    ($($(#[$meta:meta])* $name:ident;)*) => {
        $(
            $(#[$meta])*
            #[derive(Debug)]
            #[repr(C)]
            pub(crate) struct $name {
                _opaque: [u8; 0],
                _not_send: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
            }
        )*
    };
}

opaque! {
    /// An error; read through the table that returned it.
    Error;
    /// Something that will be ready.
    Event;
    /// A client.
    Client;
    /// A device of a client.
    Device;
    /// The static part of a device.
    DeviceDescription;
    /// A memory of a client.
    Memory;
    /// An array on one device.
    Buffer;
    /// A compiled program.
    Executable;
    /// A compiled program on its devices.
    LoadedExecutable;
    /// State that a caller hands to custom calls.
    ExecuteContext;
    /// The right to say once what an alias buffer holds.
    FulfillAliasBufferCallback;
    /// A layout as the layouts extension passes it.
    LayoutsMemoryLayout;
}

/// The head of an extension of the table or of an argument struct.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct ExtensionBase {
    pub(crate) struct_size: usize,
    pub(crate) type_: i32,
    pub(crate) next: *mut Self,
}

pub(crate) mod api;
pub(crate) mod buffer;
pub(crate) mod client;
pub(crate) mod device;
pub(crate) mod executable;
pub(crate) mod ext;
#[cfg_attr(
    not(feature = "lapack"),
    allow(dead_code, reason = "handlers are a feature")
)]
pub(crate) mod ffi;
pub(crate) mod status;

#[cfg(test)]
mod tests;
