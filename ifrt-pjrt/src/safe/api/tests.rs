//! The table, against tables that are made here instead of loaded.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use ifrt::Code;

use super::*;
use crate::sys::Error;
use crate::sys::api::{BufferBitcast, ErrorForEachPayload, PluginInitialize};
use crate::sys::buffer::BufferBitcastArgs;
use crate::sys::ext::{LayoutsExecutableGetParameterLayouts, LayoutsMemoryLayoutDestroy};
use crate::sys::status::{
    ErrorDestroyArgs, ErrorForEachPayloadArgs, ErrorGetCodeArgs, ErrorMessageArgs,
    PluginInitializeArgs,
};

/// The error that every test function gives: an address that no one reads.
const ERROR: *mut Error = std::ptr::dangling_mut();

/// One test at a time counts destroyed errors in here.
static DESTROYED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn destroy(args: *mut ErrorDestroyArgs) {
    // SAFETY: called with arguments by `error::check` only.
    assert_eq!(unsafe { (*args).error }, ERROR);
    DESTROYED.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C" fn message(args: *mut ErrorMessageArgs) {
    const TEXT: &str = "a text of the plugin";
    // SAFETY: called with arguments by `error::check` only.
    let args = unsafe { &mut *args };
    (args.message, args.message_size) = (TEXT.as_ptr(), TEXT.len());
}

unsafe extern "C" fn code(args: *mut ErrorGetCodeArgs) -> *mut Error {
    // SAFETY: called with arguments by `error::check` only.
    unsafe { (*args).code = Code::Unavailable.number() };
    std::ptr::null_mut()
}

unsafe extern "C" fn payloads(args: *mut ErrorForEachPayloadArgs) -> *mut Error {
    // SAFETY: called with arguments by `error::check` only.
    let args = unsafe { &*args };
    let (key, value) = ("url", b"\0\xff");
    let visitor = args.visitor.unwrap();
    // SAFETY: the strings outlive the call.
    unsafe {
        visitor(
            key.as_ptr(),
            key.len(),
            value.as_ptr(),
            value.len(),
            args.user_arg,
        )
    };
    std::ptr::null_mut()
}

unsafe extern "C" fn fail(args: *mut PluginInitializeArgs) -> *mut Error {
    // SAFETY: called with arguments by the test only.
    assert_eq!(unsafe { (*args).struct_size }, 16);
    ERROR
}

/// A whole table, of which `size` bytes are declared to exist.
struct Fake(Box<[usize; 1144 / 8]>);

impl Fake {
    fn new(major: u32, minor: u32, size: usize) -> Self {
        let mut words = Box::new([0; 1144 / 8]);
        words[0] = size;
        words[2] = 24;
        // The two version numbers share a word.
        words[4] = major as usize | (minor as usize) << 32;
        let mut fake = Self(words);
        fake.set(ErrorDestroy::OFFSET, destroy as *const ());
        fake.set(ErrorMessage::OFFSET, message as *const ());
        fake.set(ErrorGetCode::OFFSET, code as *const ());
        fake.set(PluginInitialize::OFFSET, fail as *const ());
        fake.set(ErrorForEachPayload::OFFSET, payloads as *const ());
        fake
    }

    fn set(&mut self, offset: usize, function: *const ()) {
        self.0[offset / 8] = function.expose_provenance();
    }

    fn take(self) -> Result<Api, TableError> {
        let raw: *const ApiHeader = std::ptr::from_ref(Box::leak(self.0)).cast();
        // SAFETY: S1; the table was leaked and is as large as it states, or larger.
        unsafe { Api::from_raw(raw) }
    }
}

#[test]
fn tables_of_other_versions_are_refused() {
    for (major, minor) in [(1, 114), (0, 56), (0, 0)] {
        let error = Fake::new(major, minor, 1144).take().unwrap_err();
        let (major, minor) = (major.cast_signed(), minor.cast_signed());
        assert_eq!(error, TableError::Version { major, minor });
    }
    assert_eq!(Fake::new(0, 57, 1144).take().unwrap().minor(), 57);
    assert_eq!(Fake::new(0, 1000, 9000).take().unwrap().minor(), 1000);
}

#[test]
fn tables_without_a_way_to_read_errors_are_refused() {
    // SAFETY: NULL is allowed.
    let error = unsafe { Api::from_raw(std::ptr::null()) }.unwrap_err();
    assert_eq!(error, TableError::Null);
    for size in [0, 39, 40, 63] {
        let error = Fake::new(0, 114, size).take().unwrap_err();
        assert_eq!(error, TableError::Truncated { size });
    }
    let mut fake = Fake::new(0, 114, 1144);
    fake.set(ErrorMessage::OFFSET, std::ptr::null());
    assert_eq!(
        fake.take().unwrap_err(),
        TableError::Truncated { size: 1144 }
    );
}

#[test]
fn functions_exist_only_inside_the_table_and_if_not_null() {
    let mut args = BufferBitcastArgs::NEW;
    for (size, minor) in [(BufferBitcast::OFFSET + 7, 97), (1144, 115)] {
        let api = Fake::new(0, minor, size).take().unwrap();
        assert!(!api.has::<BufferBitcast>());
        // SAFETY: there is no function, so nothing is called.
        let status = unsafe { api.call::<BufferBitcast>(&mut args) }.unwrap_err();
        assert_eq!(status.code(), Code::Unimplemented);
        let text = format!(
            "this plugin (PJRT C API 0.{minor}) has no PJRT_Buffer_Bitcast; it came with version \
             0.98"
        );
        assert_eq!(status.message(), text);
    }
}

#[test]
fn errors_are_read_once_and_destroyed_once() {
    let api = Fake::new(0, 114, 1144).take().unwrap();
    let before = DESTROYED.load(Ordering::SeqCst);
    let mut args = PluginInitializeArgs::NEW;
    // SAFETY: the function takes these arguments.
    let status = unsafe { api.call::<PluginInitialize>(&mut args) };
    let status = status.unwrap_err();
    assert_eq!(DESTROYED.load(Ordering::SeqCst), before + 1);
    assert_eq!(status.to_string(), "UNAVAILABLE: a text of the plugin");
    assert_eq!(
        status.payload("url").map(|value| &value[..]),
        Some(&b"\0\xff"[..])
    );
}

#[test]
fn extensions_are_found_by_type_and_never_read_past_their_size() {
    #[repr(C)]
    struct Extension {
        base: ExtensionBase,
        slots: [*const c_void; 7],
    }
    let extension = |type_, struct_size| {
        let base = ExtensionBase {
            struct_size,
            type_,
            next: std::ptr::null_mut(),
        };
        Box::leak(Box::new(Extension {
            base,
            slots: [ERROR.cast_const().cast(); 7],
        }))
    };
    let unknown = extension(77, 24);
    let layouts = extension(extension_type::LAYOUTS, 72);
    unknown.base.next = std::ptr::from_mut(layouts).cast();
    // A circle must not be walked for ever.
    layouts.base.next = std::ptr::from_mut(unknown).cast();
    let mut fake = Fake::new(0, 81, 984);
    fake.set(8, std::ptr::from_ref(unknown).cast());
    let api = fake.take().unwrap();
    assert_eq!(api.extensions()[..2], [77, extension_type::LAYOUTS]);
    assert_eq!(api.extensions().len(), MAX_EXTENSIONS);
    assert!(api.has::<LayoutsMemoryLayoutDestroy>());
    assert!(!api.has::<LayoutsExecutableGetParameterLayouts>());
    assert!(Shardings::table(&api).is_none());
}
