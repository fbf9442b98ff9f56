use super::frames::Frames;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags, 0, 0, 0, stream]);
    frame.extend(payload);
    frame
}

/// A string without Huffman coding, shorter than 127 bytes.
fn string(text: &str) -> Vec<u8> {
    let mut bytes = vec![u8::try_from(text.len()).unwrap()];
    bytes.extend(text.as_bytes());
    bytes
}

/// A field with a new name that goes into the dynamic table, as gRPC C++ writes most fields.
fn new_name(name: &str, value: &str) -> Vec<u8> {
    [vec![0x40], string(name), string(value)].concat()
}

/// A field whose name is an entry of the static table, in one of the forms of a literal.
fn indexed_name(form: u8, value: &str) -> Vec<u8> {
    [vec![form], string(value)].concat()
}

/// The header block of a call as gRPC C++ writes it, with this authority.
fn block(authority: &str) -> Vec<u8> {
    [
        vec![0x86, 0x83],
        new_name(":path", "/xla.ifrt.proxy.GrpcIfrtService/GetVersion%20"),
        new_name(":authority", authority),
        new_name("te", "trailers"),
        new_name("user-agent", "grpc-c++/1.78.0 100%"),
        vec![0xbe, 0x3f, 0xe1, 0x1f],
    ]
    .concat()
}

fn fixed(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    Frames::new().fix(&mut bytes);
    bytes
}

/// Checks the result for the bytes in one piece, byte by byte, and split at every position.
#[track_caller]
fn check(sent: &[u8], expected: &[u8]) {
    assert_eq!(fixed(sent), expected, "in one piece");
    let mut frames = Frames::new();
    let mut single = sent.to_vec();
    for byte in single.chunks_mut(1) {
        frames.fix(byte);
    }
    assert_eq!(single, expected, "byte by byte");
    for position in 0..=sent.len() {
        let mut frames = Frames::new();
        let mut split = sent.to_vec();
        let (head, tail) = split.split_at_mut(position);
        frames.fix(head);
        frames.fix(tail);
        assert_eq!(split, expected, "split at {position}");
    }
}

fn stream_of(parts: &[Vec<u8>]) -> Vec<u8> {
    [PREFACE.to_vec(), parts.concat()].concat()
}

#[test]
fn a_call_of_grpc_cpp() {
    let stream = |authority: &str| {
        stream_of(&[
            frame(4, 0, 0, &[0, 3, 0, 0, 0, 0]),
            frame(8, 0, 0, &[0, 0, 1, 0]),
            frame(1, 4, 1, &block(authority)),
            frame(0, 1, 1, b"%data%"),
            frame(1, 5, 3, &block(authority)),
        ])
    };
    check(&stream("%2Ftmp%2Fx.sock"), &stream("-2Ftmp-2Fx.sock"));
    let plain = stream("127.0.0.1:8000");
    check(&plain, &plain);
}

#[test]
fn every_literal_form() {
    for form in [0x41, 0x01, 0x11] {
        let stream = |authority: &str| {
            let fields = [indexed_name(form, authority), new_name("a", "%")].concat();
            stream_of(&[frame(1, 4, 1, &fields)])
        };
        check(&stream("%2Fx"), &stream("-2Fx"));
    }
    for form in [0x40, 0x00, 0x10] {
        let stream = |authority: &str| {
            let field = [vec![form], string(":authority"), string(authority)].concat();
            stream_of(&[frame(1, 4, 1, &field)])
        };
        check(&stream("%2Fx"), &stream("-2Fx"));
    }
}

#[test]
fn long_values() {
    let stream = |authority: &str| {
        // 127 and 200 - 127 make a length of 200.
        let field = [&[0x41, 0x7f, 73], authority.as_bytes()].concat();
        stream_of(&[frame(1, 4, 1, &field), frame(1, 4, 3, &block("%"))])
    };
    let authority = |sign: &str| format!("{sign}2F").repeat(66) + "ab";
    let expected = stream(&authority("-"));
    let sent = stream(&authority("%"));
    let tail = frame(1, 4, 3, &block("-"));
    let expected = [&expected[..expected.len() - tail.len()], &tail].concat();
    check(&sent, &expected);
}

#[test]
fn padding_priority_and_continuations() {
    let stream = |authority: &str| {
        let block = block(authority);
        let (head, rest) = block.split_at(70);
        let (middle, tail) = rest.split_at(1);
        let headers = [&[3, 0x80, 0, 0, 0, 16], head, b"%%%"].concat();
        stream_of(&[
            frame(1, 0x28, 1, &headers),
            frame(9, 0, 1, middle),
            frame(9, 0, 1, b""),
            frame(9, 4, 1, tail),
            frame(1, 4, 3, &block),
        ])
    };
    check(&stream("%2Ftmp%2Fx.sock"), &stream("-2Ftmp-2Fx.sock"));
}

#[test]
fn other_fields_are_left_alone() {
    for field in [
        new_name(":authoritx", "%"),
        new_name(":authorit", "%"),
        new_name(":authority2", "%"),
        new_name("", "%"),
        indexed_name(0x42, "%"),
        // Huffman-coded values and names.
        [vec![0x41, 0x82], b"%%".to_vec()].concat(),
        [vec![0x40, 0x81], b"%".to_vec(), string("%")].concat(),
    ] {
        let stream = stream_of(&[frame(1, 4, 1, &field)]);
        check(&stream, &stream);
    }
}

#[test]
fn what_is_not_http2_passes_through() {
    let call = frame(1, 4, 1, &block("%2Fx"));
    for odd in [
        b"GET /%2F HTTP/1.1\r\n\r\n".to_vec(),
        call.clone(),
        // A header block that ends within a field.
        stream_of(&[frame(1, 4, 1, &[0x41]), call.clone()]),
        // A header block interrupted by another frame.
        stream_of(&[frame(1, 0, 1, &[0x86]), frame(0, 0, 1, b"x"), call.clone()]),
        // A continuation of nothing.
        stream_of(&[frame(9, 4, 1, &block("%")), call.clone()]),
        // More padding than frame.
        stream_of(&[frame(1, 0x0c, 1, &[9, 0x86]), call.clone()]),
        // No room for the padding or the priority.
        stream_of(&[frame(1, 0x0c, 1, &[]), call.clone()]),
        stream_of(&[frame(1, 0x24, 1, &[0, 0]), call.clone()]),
        // A number without end.
        stream_of(&[frame(1, 4, 1, &[&[0xff], &[0xff; 20][..]].concat()), call]),
    ] {
        check(&odd, &odd);
    }
}

/// Any bytes at all, also after a good beginning: the length stays, nothing but percent signs
/// changes, and nothing panics.
#[test]
fn random_bytes() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for round in 0..4000 {
        let mut bytes = stream_of(&[frame(1, 4, 1, &block("%2Fx"))]);
        for _ in 0..next() % 200 {
            bytes.push(next().to_le_bytes()[0]);
        }
        if round % 2 == 0 {
            let position = usize::try_from(next()).unwrap() % bytes.len();
            bytes[position] = next().to_le_bytes()[0];
        }
        let mut changed = bytes.clone();
        let mut frames = Frames::new();
        let piece = usize::try_from(next() % 64).unwrap() + 1;
        for piece in changed.chunks_mut(piece) {
            frames.fix(piece);
        }
        for (before, after) in bytes.iter().zip(&changed) {
            assert!(before == after || (*before == b'%' && *after == b'-'));
        }
    }
}
