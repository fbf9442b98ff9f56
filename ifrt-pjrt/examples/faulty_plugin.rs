//! A PJRT plugin that misbehaves on request: another plugin behind a table with switches.
//!
//! `FAULTY_PLUGIN_REAL` names the plugin behind it, `FAULTY_PLUGIN_FAULTS` the faults, separated by
//! commas. A slot is named by its offset in the table.
//!
//! - `error:SLOT`: each call of the function gives an error.
//! - `null:SLOT`: there is no such function.
//! - `size:BYTES`: the table is that short, as that of an older plugin.
//! - `minor:NUMBER`: the table states that version.
//! - `never`: events are never ready and never call back.
//! - `block`: freeing a buffer takes a second and a half.
//! - `once`: buffers are not freed, and freeing one a second time ends the process.
//! - `trace:PATH`: the slots that are called are written to that file, each once.

#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::multiple_unsafe_ops_per_block,
    reason = "a plugin speaks C, and one for tests may end the process"
)]

use std::collections::HashSet;
use std::ffi::c_void;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use libloading::Library;

/// Slots of the newest table that is known here.
const SLOTS: usize = 138;
const FIRST: usize = 40;

const ERROR_DESTROY: usize = 40;
const ERROR_MESSAGE: usize = 48;
const ERROR_CODE: usize = 56;
const EVENT_IS_READY: usize = 88;
const EVENT_ON_READY: usize = 112;
const BUFFER_DESTROY: usize = 504;
const ERROR_PAYLOADS: usize = 1096;

type Call = unsafe extern "C" fn(*mut usize) -> *mut c_void;

/// The table: its size, no extensions, the version, the slots.
#[repr(C)]
struct Table {
    size: usize,
    extensions: usize,
    version: [usize; 2],
    numbers: [i32; 2],
    slots: [Option<Call>; SLOTS],
}

struct Plugin {
    table: Table,
    real: [Option<Call>; SLOTS],
    trace: Option<String>,
}

// SAFETY: the pointers are functions and what a plugin keeps for the life of the process.
unsafe impl Sync for Plugin {}
// SAFETY: as above.
unsafe impl Send for Plugin {}

static PLUGIN: OnceLock<Plugin> = OnceLock::new();

/// What is wrong with each slot.
static FAULTS: [AtomicU8; SLOTS] = [const { AtomicU8::new(NOTHING) }; SLOTS];
static CALLED: [AtomicBool; SLOTS] = [const { AtomicBool::new(false) }; SLOTS];
const NOTHING: u8 = 0;
const FAILS: u8 = 1;
const NEVER: u8 = 2;
const BLOCKS: u8 = 3;
const ONCE: u8 = 4;

/// The one error that this plugin makes.
static ERROR: u8 = 0;
const TEXT: &str = "a fault that was asked for";
const UNAVAILABLE: i32 = 14;

fn own_error() -> *mut c_void {
    (&raw const ERROR).cast_mut().cast()
}

/// Every function of the table.
unsafe extern "C" fn call<const SLOT: usize>(args: *mut usize) -> *mut c_void {
    let plugin = PLUGIN
        .get()
        .expect("a function is called before the table is read");
    let offset = FIRST + 8 * SLOT;
    if !CALLED[SLOT].swap(true, Ordering::Relaxed)
        && let Some(path) = &plugin.trace
    {
        let file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path);
        writeln!(file.unwrap(), "{offset}").unwrap();
    }
    // SAFETY: every struct of arguments has its size, its extensions and then the object.
    let object = unsafe { *args.add(2) };
    if matches!(
        offset,
        ERROR_DESTROY | ERROR_MESSAGE | ERROR_CODE | ERROR_PAYLOADS
    ) && object == own_error() as usize
    {
        // SAFETY: the outputs of these functions follow the error.
        unsafe {
            if offset == ERROR_MESSAGE {
                *args.add(3) = TEXT.as_ptr() as usize;
                *args.add(4) = TEXT.len();
            } else if offset == ERROR_CODE {
                *args.add(3).cast::<i32>() = UNAVAILABLE;
            }
        }
        return std::ptr::null_mut();
    }
    match FAULTS[SLOT].load(Ordering::Relaxed) {
        FAILS => return own_error(),
        NEVER => {
            if offset == EVENT_IS_READY {
                // SAFETY: the answer follows the event.
                unsafe { *args.add(3).cast::<u8>() = 0 };
            }
            return std::ptr::null_mut();
        }
        BLOCKS => std::thread::sleep(Duration::from_millis(1500)),
        ONCE => {
            static FREED: Mutex<Option<HashSet<usize>>> = Mutex::new(None);
            let mut freed = FREED.lock().unwrap();
            if !freed.get_or_insert_default().insert(object) {
                std::process::abort();
            }
            return std::ptr::null_mut();
        }
        _ => {}
    }
    let real = plugin.real[SLOT].expect("a function is called that the plugin lacks");
    // SAFETY: the arguments are those of the same function.
    unsafe { real(args) }
}

macro_rules! calls {
    ($($slot:literal)*) => { [$(call::<$slot>),*] };
}

const CALLS: [Call; SLOTS] = calls!(
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35
    36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 66 67 68
    69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84 85 86 87 88 89 90 91 92 93 94 95 96 97 98 99 100
    101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116 117 118 119 120 121 122 123 124
    125 126 127 128 129 130 131 132 133 134 135 136 137
);

fn slot(offset: usize) -> usize {
    assert!(
        offset >= FIRST && offset.is_multiple_of(8),
        "{offset} is no slot"
    );
    (offset - FIRST) / 8
}

fn set(offset: usize, fault: u8) {
    FAULTS[slot(offset)].store(fault, Ordering::Relaxed);
}

fn load() -> Plugin {
    let path = std::env::var_os("FAULTY_PLUGIN_REAL").expect("FAULTY_PLUGIN_REAL is not set");
    // SAFETY: a plugin may be loaded, and is never unloaded.
    let real: *const usize = unsafe {
        let library = Library::new(path).expect("the plugin behind this one cannot be loaded");
        let get = library.get::<unsafe extern "C" fn() -> *const usize>("GetPjrtApi");
        let table = get.expect("the plugin behind this one has no table")();
        let _loaded = std::mem::ManuallyDrop::new(library);
        table
    };
    // SAFETY: a table begins with its size, and has its version behind its extensions.
    let (mut size, extensions, version) =
        unsafe { (*real, *real.add(1), [*real.add(2), *real.add(3)]) };
    // SAFETY: as above.
    let mut numbers = unsafe { *real.add(4).cast::<[i32; 2]>() };
    let mut table = Table {
        size: 0,
        extensions,
        version,
        numbers,
        slots: [None; SLOTS],
    };
    let mut behind = [None; SLOTS];
    for number in 0..SLOTS {
        if FIRST + 8 * number + 8 <= size {
            // SAFETY: the slot lies in the table.
            behind[number] = unsafe { *real.add(5 + number).cast::<Option<Call>>() };
            table.slots[number] = behind[number].map(|_| CALLS[number]);
        }
    }
    size = size.min(FIRST + 8 * SLOTS);
    let mut trace = None;
    let faults = std::env::var("FAULTY_PLUGIN_FAULTS").unwrap_or_default();
    for fault in faults.split(',').filter(|fault| !fault.is_empty()) {
        let (kind, value) = fault.split_once(':').unwrap_or((fault, ""));
        let number = || value.parse::<usize>().expect("a fault needs a number");
        match kind {
            "error" => set(number(), FAILS),
            "null" => table.slots[slot(number())] = None,
            "size" => size = number(),
            "minor" => numbers[1] = i32::try_from(number()).unwrap(),
            "never" => {
                set(EVENT_IS_READY, NEVER);
                set(EVENT_ON_READY, NEVER);
            }
            "block" => set(BUFFER_DESTROY, BLOCKS),
            "once" => set(BUFFER_DESTROY, ONCE),
            "trace" => trace = Some(value.to_owned()),
            _ => panic!("there is no fault {fault}"),
        }
    }
    table.size = size;
    table.numbers = numbers;
    Plugin {
        table,
        real: behind,
        trace,
    }
}

/// The entry point of a plugin.
// SAFETY: nobody else exports this name from this library.
#[unsafe(no_mangle)]
pub extern "C" fn GetPjrtApi() -> *const c_void {
    (&raw const PLUGIN.get_or_init(load).table).cast()
}
