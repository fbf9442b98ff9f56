//! The C ABI of typed custom calls ("XLA FFI"), as far as a handler for the host needs it.
//!
//! The declarations follow FFI API 0.4 and use only what is there since 0.1, which is the version
//! that our handlers report. They are laid out like the structs of the PJRT API: each states its
//! own size, and a plugin of another version may state another one, so the size of everything is
//! checked before a field is read.
//!
//! # Mirrors
//! `xla/ffi/api/c_api.h`, `xla/pjrt/c/pjrt_c_api_ffi_extension.h`.

use std::ffi::{c_char, c_void};

use super::Sized0;

/// The version of the API that handlers report.
pub(crate) const VERSION: (i32, i32) = (0, 1);

/// The stage in which a handler computes.
pub(crate) const STAGE_EXECUTE: i32 = 3;

/// The kind of an argument or a result that is a buffer; there is no other one.
pub(crate) const KIND_BUFFER: i32 = 1;

/// The kind of an attribute that is a number.
pub(crate) const KIND_SCALAR: i32 = 3;

/// The extension of a call frame that asks for the version of a handler.
pub(crate) const EXTENSION_METADATA: i32 = 1;

/// Element types, as far as handlers use them.
pub(crate) mod data_type {
    pub(crate) const PRED: i32 = 1;
    pub(crate) const S32: i32 = 4;
    pub(crate) const S64: i32 = 5;
    pub(crate) const U8: i32 = 6;
    pub(crate) const F32: i32 = 11;
    pub(crate) const F64: i32 = 12;
    pub(crate) const C64: i32 = 15;
    pub(crate) const C128: i32 = 18;
}

/// An error of the FFI; made by a function of its table.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Error {
    _opaque: [u8; 0],
}

/// A handler as plugins call it. Gives NULL for success.
pub(crate) type Handler = unsafe extern "C" fn(*mut CallFrame) -> *mut Error;

/// Makes an error.
pub(crate) type ErrorCreate = unsafe extern "C" fn(*mut ErrorCreateArgs) -> *mut Error;

/// A text with its length.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ByteSpan {
    pub(crate) ptr: *const u8,
    pub(crate) len: usize,
}

/// A number with its type.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Scalar {
    pub(crate) dtype: i32,
    pub(crate) value: *const c_void,
}

pjrt_struct! {
    /// `XLA_FFI_Api_Version`.
    ApiVersion: 24 {
        16 major_version: i32,
        20 minor_version: i32,
    }

    /// `XLA_FFI_Error_Create_Args`. The message ends with NUL.
    ErrorCreateArgs: 28 {
        16 message: *const c_char,
        24 errc: i32,
    }

    /// The head of `XLA_FFI_Api`, the table of a plugin; more functions follow.
    Api: 56 {
        16 api_version: ApiVersion,
        40 internal_api: *const c_void,
        48 error_create: Option<ErrorCreate>,
    }

    /// `XLA_FFI_Buffer`.
    Buffer: 48 {
        16 dtype: i32,
        24 data: *mut c_void,
        32 rank: i64,
        40 dims: *const i64,
    }

    /// `XLA_FFI_Args`.
    Arguments: 40 {
        16 size: i64,
        24 types: *const i32,
        32 args: *const *mut c_void,
    }

    /// `XLA_FFI_Rets`.
    Results: 40 {
        16 size: i64,
        24 types: *const i32,
        32 rets: *const *mut c_void,
    }

    /// `XLA_FFI_Attrs`, sorted by name.
    Attributes: 48 {
        16 size: i64,
        24 types: *const i32,
        32 names: *const *const ByteSpan,
        40 attrs: *const *const c_void,
    }

    /// `XLA_FFI_CallFrame` up to the attributes; a place for a future follows.
    CallFrame: 168 {
        16 api: *const Api,
        24 ctx: *mut c_void,
        32 stage: i32,
        40 args: Arguments,
        80 rets: Results,
        120 attrs: Attributes,
    }
}

/// `XLA_FFI_Metadata` up to the traits; its size comes first, without an extension.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Metadata {
    pub(crate) struct_size: usize,
    pub(crate) api_version: ApiVersion,
    pub(crate) traits: u32,
}

/// `XLA_FFI_Metadata_Extension`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct MetadataExtension {
    pub(crate) base: super::ExtensionBase,
    pub(crate) metadata: *mut Metadata,
}

/// Arguments of `PJRT_FFI_Register_Handler`. They have no extension.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct RegisterHandlerArgs {
    pub(crate) struct_size: usize,
    pub(crate) target_name: *const u8,
    pub(crate) target_name_size: usize,
    pub(crate) handler: Option<Handler>,
    pub(crate) platform_name: *const u8,
    pub(crate) platform_name_size: usize,
    pub(crate) traits: i32,
}

/// The size that [`RegisterHandlerArgs`] state.
pub(crate) const REGISTER_HANDLER_ARGS_SIZE: usize = 52;

/// The size that [`Metadata`] must at least have for its version and traits.
pub(crate) const METADATA_SIZE: usize = 36;

const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(CallFrame, attrs) + Attributes::STRUCT_SIZE == CallFrame::STRUCT_SIZE);
    assert!(size_of::<ByteSpan>() == 16 && offset_of!(ByteSpan, len) == 8);
    assert!(size_of::<Scalar>() == 16 && offset_of!(Scalar, value) == 8);
    assert!(offset_of!(Metadata, api_version) == 8);
    assert!(offset_of!(Metadata, traits) + size_of::<u32>() == METADATA_SIZE);
    assert!(offset_of!(MetadataExtension, metadata) == 24);
    assert!(offset_of!(RegisterHandlerArgs, target_name) == 8);
    assert!(offset_of!(RegisterHandlerArgs, target_name_size) == 16);
    assert!(offset_of!(RegisterHandlerArgs, handler) == 24);
    assert!(offset_of!(RegisterHandlerArgs, platform_name) == 32);
    assert!(offset_of!(RegisterHandlerArgs, platform_name_size) == 40);
    assert!(
        offset_of!(RegisterHandlerArgs, traits) + size_of::<i32>() == REGISTER_HANDLER_ARGS_SIZE
    );
};
