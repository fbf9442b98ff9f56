//! Handlers against call frames that are made here: whole ones, and broken ones.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};

use ifrt::{Code, Status};

use super::reply::handle;
use super::*;
use crate::sys::ffi::{
    Api, ApiVersion, Buffer, ByteSpan, CallFrame, EXTENSION_METADATA, Error, ErrorCreateArgs,
    KIND_BUFFER, KIND_SCALAR, METADATA_SIZE, Metadata, MetadataExtension, STAGE_EXECUTE, Scalar,
    VERSION, data_type,
};
use crate::sys::{ExtensionBase, Sized0};

thread_local! {
    /// What the table made an error of.
    static ERROR: RefCell<Option<(i32, String)>> = const { RefCell::new(None) };
    /// How often a handler ran.
    static RUNS: Cell<usize> = const { Cell::new(0) };
}

unsafe extern "C" fn create(args: *mut ErrorCreateArgs) -> *mut Error {
    // SAFETY: called by `reply::error` only, with arguments that outlive the call.
    let args = unsafe { &*args };
    assert_eq!(args.struct_size, ErrorCreateArgs::STRUCT_SIZE);
    // SAFETY: the message ends with NUL.
    let message = unsafe { CStr::from_ptr(args.message) };
    let message = message.to_str().unwrap().to_owned();
    ERROR.set(Some((args.errc, message)));
    std::ptr::dangling_mut()
}

/// Adds operand 1, times the attribute `times`, to operand 0 in result 0; result 1 counts elements.
struct Add;

impl Handler for Add {
    const NAME: &'static str = "a sum";
    const OPERANDS: usize = 2;
    const RESULTS: usize = 2;
    const ATTRIBUTES: &'static [&'static str] = &["times"];
    const IN_PLACE: &'static [(usize, usize)] = &[(0, 0)];

    fn run(call: &mut Call<'_>) -> Result<()> {
        RUNS.set(RUNS.get() + 1);
        let Attribute::I32(times) = call.attribute("times")? else {
            return Err(Status::invalid_argument("times is no i32"));
        };
        let sum = call.result::<f32>(0)?;
        let count = call.result::<i32>(1)?;
        assert!(call.result::<f32>(0).is_err(), "a result was lent twice");
        let other = call.operand::<f32>(1)?;
        assert!(
            call.operand::<f32>(0).is_err(),
            "an operand was lent with its result"
        );
        assert!(
            count.iter().all(|count| *count == 0),
            "a result was not cleared"
        );
        count[0] = i32::try_from(sum.len()).unwrap();
        for (sum, other) in sum.iter_mut().zip(other) {
            *sum += other * f32::from(i16::try_from(times).unwrap());
        }
        if times == 13 {
            panic!("no thirteen");
        }
        Ok(())
    }
}

/// A frame for [`Add`], with the memory that it points to.
struct Frame {
    api: Api,
    frame: CallFrame,
    buffers: [Buffer; 4],
    kinds: [i32; 2],
    args: [*mut c_void; 2],
    rets: [*mut c_void; 2],
    dims: [i64; 2],
    count_dims: [i64; 1],
    attribute_kind: [i32; 1],
    times: i32,
    scalar: Scalar,
    name: ByteSpan,
    names: [*const ByteSpan; 1],
    values: [*const c_void; 1],
    a: [f32; 6],
    b: [f32; 6],
    sum: [f32; 6],
    count: [i32; 1],
}

impl Frame {
    fn new() -> Box<Self> {
        let mut new = Box::new(Self {
            api: Api {
                error_create: Some(create),
                ..Api::NEW
            },
            frame: CallFrame {
                stage: STAGE_EXECUTE,
                ..CallFrame::NEW
            },
            buffers: [Buffer::NEW, Buffer::NEW, Buffer::NEW, Buffer::NEW],
            kinds: [KIND_BUFFER; 2],
            args: [null_mut(); 2],
            rets: [null_mut(); 2],
            dims: [2, 3],
            count_dims: [1],
            attribute_kind: [KIND_SCALAR],
            times: 10,
            scalar: Scalar {
                dtype: data_type::S32,
                value: null(),
            },
            name: ByteSpan {
                ptr: b"times".as_ptr(),
                len: 5,
            },
            names: [null()],
            values: [null()],
            a: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            b: [0.5; 6],
            sum: [f32::NAN; 6],
            count: [77],
        });
        let this = &mut *new;
        let data: [*mut c_void; 4] = [
            (&raw mut this.a).cast(),
            (&raw mut this.b).cast(),
            (&raw mut this.sum).cast(),
            (&raw mut this.count).cast(),
        ];
        for (buffer, data) in this.buffers.iter_mut().zip(data) {
            (buffer.dtype, buffer.data) = (data_type::F32, data);
            (buffer.rank, buffer.dims) = (2, this.dims.as_ptr());
        }
        this.buffers[3].dtype = data_type::S32;
        (this.buffers[3].rank, this.buffers[3].dims) = (1, this.count_dims.as_ptr());
        let [a, b, sum, count] = &mut this.buffers;
        this.args = [(&raw mut *a).cast(), (&raw mut *b).cast()];
        this.rets = [(&raw mut *sum).cast(), (&raw mut *count).cast()];
        this.scalar.value = (&raw const this.times).cast();
        this.names = [&raw const this.name];
        this.values = [(&raw const this.scalar).cast()];
        this.frame.api = &raw const this.api;
        (
            this.frame.args.size,
            this.frame.rets.size,
            this.frame.attrs.size,
        ) = (2, 2, 1);
        this.frame.args.types = this.kinds.as_ptr();
        this.frame.args.args = this.args.as_ptr();
        this.frame.rets.types = this.kinds.as_ptr();
        this.frame.rets.rets = this.rets.as_ptr();
        this.frame.attrs.types = this.attribute_kind.as_ptr();
        this.frame.attrs.names = this.names.as_ptr();
        this.frame.attrs.attrs = this.values.as_ptr();
        new
    }

    /// Calls the handler; the error, if there is one.
    fn call(&mut self) -> Option<(i32, String)> {
        ERROR.set(None);
        // SAFETY: F1 and F2; the frame and all it points to live in this box. What a test breaks is
        // what the handler must notice before it reads further.
        let error = unsafe { handle::<Add>(&raw mut self.frame) };
        let told = ERROR.take();
        assert_eq!(error.is_null(), told.is_none());
        told
    }

    #[track_caller]
    fn assert_refused(&mut self, code: Code, part: &str) {
        let runs = RUNS.get();
        let (number, message) = self.call().expect("no error");
        assert_eq!(number, code.number(), "{message}");
        assert!(message.contains(part), "{message:?} has no {part:?}");
        assert!(message.ends_with("; while computing a sum"), "{message}");
        assert_eq!(RUNS.get(), runs, "the handler ran");
    }
}

const SUM: [f32; 6] = [6.0, 7.0, 8.0, 9.0, 10.0, 11.0];

#[test]
fn a_whole_frame_is_served() {
    let mut frame = Frame::new();
    assert_eq!(frame.call(), None);
    assert_eq!((frame.sum, frame.count), (SUM, [6]));
    assert_eq!(frame.a, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
}

#[test]
fn a_result_may_be_its_operand() {
    let mut frame = Frame::new();
    frame.buffers[2].data = frame.buffers[0].data;
    assert_eq!(frame.call(), None);
    assert_eq!((frame.a, frame.count), (SUM, [6]));
}

#[test]
fn an_operand_in_the_way_of_a_result_is_copied_first() {
    let mut frame = Frame::new();
    // The second operand is the memory of the sum.
    frame.sum = [0.5; 6];
    frame.buffers[1].data = frame.buffers[2].data;
    assert_eq!(frame.call(), None);
    assert_eq!(frame.sum, SUM);
    // Both operands are the same, and the sum is written over both.
    let mut frame = Frame::new();
    (frame.buffers[1].data, frame.buffers[2].data) = (frame.buffers[0].data, frame.buffers[0].data);
    assert_eq!(frame.call(), None);
    assert_eq!(frame.a, [11.0, 22.0, 33.0, 44.0, 55.0, 66.0]);
}

#[test]
fn an_operand_that_overlaps_its_result_in_part_is_copied_first() {
    let mut frame = Frame::new();
    // SAFETY: inside the array, of which four elements are used.
    frame.buffers[2].data = unsafe { frame.buffers[0].data.byte_add(8) };
    frame.dims = [2, 2];
    assert_eq!(frame.call(), None);
    assert_eq!(frame.a, [1.0, 2.0, 6.0, 7.0, 8.0, 9.0]);
}

#[test]
fn empty_buffers_need_no_memory() {
    let mut frame = Frame::new();
    frame.dims = [0, i64::MAX];
    for buffer in &mut frame.buffers[..3] {
        buffer.data = null_mut();
    }
    assert_eq!(frame.call(), None);
    assert_eq!(frame.count, [0]);
}

#[test]
fn overlapping_results_are_refused() {
    let mut frame = Frame::new();
    // SAFETY: inside the array.
    frame.buffers[3].data = unsafe { frame.buffers[2].data.byte_add(20) };
    frame.assert_refused(Code::InvalidArgument, "overlaps");
}

#[test]
fn wrong_counts_types_and_names_are_refused() {
    let check = |change: fn(&mut Frame), code: Code, part: &str| {
        let mut frame = Frame::new();
        change(&mut frame);
        frame.assert_refused(code, part);
    };
    use Code::{Internal, InvalidArgument};
    check(
        |f| f.frame.args.size = 1,
        InvalidArgument,
        "1 operands, expected 2",
    );
    check(|f| f.frame.args.size = -1, InvalidArgument, "-1 operands");
    check(|f| f.frame.rets.size = 3, InvalidArgument, "3 results");
    check(|f| f.frame.attrs.size = 0, InvalidArgument, "0 attributes");
    check(|f| f.name.len = 4, InvalidArgument, "\"time\"");
    check(|f| f.buffers[1].dtype = 999, InvalidArgument, "999");
    check(
        |f| f.buffers[2].dtype = data_type::S32,
        InvalidArgument,
        "operand 0",
    );
    check(|f| f.kinds[1] = 7, Internal, "no buffer");
    check(|f| f.buffers[0].rank = -1, Internal, "rank -1");
    check(|f| f.buffers[0].rank = 1 << 40, Internal, "rank");
    check(|f| f.buffers[0].dims = null(), Internal, "list is missing");
    check(|f| f.buffers[1].data = null_mut(), Internal, "no memory");
    check(|f| f.dims = [-1, 2], Internal, "negative");
    check(|f| f.dims = [i64::MAX, 2], Internal, "elements");
    check(|f| f.dims = [i64::MAX / 2, 1], Internal, "elements");
    check(|f| f.args[0] = null_mut(), Internal, "too short");
    check(|f| f.buffers[0].struct_size = 40, Internal, "too short");
    // A frame that is not whole does not even say what it is for.
    let mut frame = Frame::new();
    frame.frame.args.struct_size = 39;
    let (number, message) = frame.call().expect("no error");
    assert_eq!(number, Internal.number(), "{message}");
    assert!(message.contains("too short"), "{message}");
    check(|f| f.frame.rets.types = null(), Internal, "missing");
    check(|f| f.names[0] = null(), Internal, "missing");
    check(|f| f.values[0] = null(), Internal, "missing");
    check(|f| f.scalar.value = null(), Internal, "no value");
    check(|f| f.name.ptr = null(), Internal, "missing");
    check(
        |f| {
            f.name = ByteSpan {
                ptr: b"\xff\xff\xff\xff\xff".as_ptr(),
                len: 5,
            }
        },
        Internal,
        "UTF-8",
    );
}

#[test]
fn errors_and_panics_of_a_handler_reach_the_plugin() {
    let mut frame = Frame::new();
    frame.scalar.dtype = data_type::F32;
    let (code, message) = frame.call().unwrap();
    assert_eq!(code, Code::InvalidArgument.number());
    assert!(message.starts_with("times is no i32"), "{message}");

    let mut frame = Frame::new();
    frame.attribute_kind = [4];
    assert!(frame.call().unwrap().1.starts_with("times is no i32"));

    let mut frame = Frame::new();
    frame.times = 13;
    let (code, message) = frame.call().unwrap();
    assert_eq!(code, Code::Internal.number());
    assert!(message.contains("no thirteen"), "{message}");
}

#[test]
fn other_stages_do_nothing() {
    for stage in [0, 1, 2, 4] {
        let mut frame = Frame::new();
        frame.frame.stage = stage;
        assert_eq!(frame.call(), None);
        assert_eq!(frame.count, [77]);
    }
}

#[test]
fn a_query_is_answered_with_version_0_1() {
    let check = |metadata_size: usize, api_size: usize, expected: (i32, i32)| {
        let mut frame = Frame::new();
        let mut metadata = Metadata {
            struct_size: metadata_size,
            api_version: ApiVersion {
                major_version: 9,
                minor_version: 9,
                ..ApiVersion::NEW
            },
            traits: 9,
        };
        let mut extension = MetadataExtension {
            base: ExtensionBase {
                struct_size: size_of::<MetadataExtension>(),
                type_: EXTENSION_METADATA,
                next: null_mut(),
            },
            metadata: &raw mut metadata,
        };
        frame.frame.extension_start = (&raw mut extension).cast();
        frame.api.struct_size = api_size;
        let runs = RUNS.get();
        assert_eq!(frame.call(), None);
        assert_eq!((RUNS.get(), frame.count), (runs, [77]));
        let version = &metadata.api_version;
        assert_eq!((version.major_version, version.minor_version), expected);
    };
    check(48, 192, VERSION);
    check(METADATA_SIZE, Api::STRUCT_SIZE, VERSION);
    // Without room for an answer, or a way to report errors later, there is none.
    check(METADATA_SIZE - 1, 192, (9, 9));
    check(48, Api::STRUCT_SIZE - 1, (9, 9));
}
