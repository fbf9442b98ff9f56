//! Finds the header blocks in what an HTTP/2 client sends.

use super::hpack::{Malformed, Walker};

/// What every HTTP/2 client sends first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const HEADER_BYTES: usize = 9;

const TYPE_HEADERS: u8 = 1;
const TYPE_CONTINUATION: u8 = 9;

const FLAG_END_HEADERS: u8 = 0x4;
const FLAG_PADDED: u8 = 0x8;
const FLAG_PRIORITY: u8 = 0x20;

/// The bytes of the priority in a HEADERS frame.
const PRIORITY_BYTES: usize = 5;

#[derive(Debug)]
enum State {
    /// So many bytes of the preface have passed.
    Preface(usize),
    /// So many bytes of a frame header have passed.
    Header([u8; HEADER_BYTES], usize),
    /// The first byte of a padded HEADERS frame: the length of the padding.
    PadLength { rest: usize, flags: u8 },
    /// The priority of a HEADERS frame, of which `left` bytes are to come.
    Priority {
        left: usize,
        block: usize,
        padding: usize,
        flags: u8,
    },
    /// A piece of a header block.
    Block {
        left: usize,
        padding: usize,
        flags: u8,
    },
    /// Bytes that do not matter.
    Skip(usize),
    /// Not HTTP/2, or no longer understood.
    PassThrough,
}

/// Follows the frames of a client and changes authorities in its header blocks.
#[derive(Debug)]
pub(super) struct Frames {
    state: State,
    /// Inside a header block, also between the frames that it is spread over.
    in_block: bool,
    walker: Walker,
}

impl Frames {
    pub(super) const fn new() -> Self {
        Self {
            state: State::Preface(0),
            in_block: false,
            walker: Walker::new(),
        }
    }

    /// Works on the next bytes of the client.
    pub(super) fn fix(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            let used = match self.step(bytes) {
                Ok(used) => used,
                Err(Malformed) => {
                    self.state = State::PassThrough;
                    return;
                }
            };
            bytes = bytes.get_mut(used..).unwrap_or_default();
        }
    }

    /// Works on at least one of the bytes and returns how many it worked on.
    fn step(&mut self, bytes: &mut [u8]) -> Result<usize, Malformed> {
        let Some(&first) = bytes.first() else {
            return Ok(0);
        };
        match &mut self.state {
            State::PassThrough => Ok(bytes.len()),
            State::Preface(seen) => {
                if PREFACE.get(*seen) != Some(&first) {
                    return Err(Malformed);
                }
                *seen += 1;
                if *seen == PREFACE.len() {
                    self.next_frame();
                }
                Ok(1)
            }
            State::Header(header, seen) => {
                if let Some(slot) = header.get_mut(*seen) {
                    *slot = first;
                }
                *seen += 1;
                if *seen == HEADER_BYTES {
                    let header = *header;
                    self.begin_frame(header)?;
                }
                Ok(1)
            }
            State::Skip(left) => {
                let used = bytes.len().min(*left);
                *left -= used;
                if *left == 0 {
                    self.next_frame();
                }
                Ok(used)
            }
            State::PadLength { rest, flags } => {
                let (rest, flags, padding) = (*rest, *flags, usize::from(first));
                self.begin_headers(rest, padding, flags)?;
                Ok(1)
            }
            State::Priority {
                left,
                block,
                padding,
                flags,
            } => {
                let used = bytes.len().min(*left);
                *left -= used;
                if *left == 0 {
                    let (block, padding, flags) = (*block, *padding, *flags);
                    self.begin_block(block, padding, flags)?;
                }
                Ok(used)
            }
            State::Block {
                left,
                padding,
                flags,
            } => {
                let used = bytes.len().min(*left);
                for byte in bytes.iter_mut().take(used) {
                    *byte = self.walker.walk(*byte)?;
                }
                *left -= used;
                if *left == 0 {
                    let (padding, flags) = (*padding, *flags);
                    self.end_piece(padding, flags)?;
                }
                Ok(used)
            }
        }
    }

    fn next_frame(&mut self) {
        self.state = State::Header([0; HEADER_BYTES], 0);
    }

    fn skip(&mut self, bytes: usize) {
        if bytes == 0 {
            self.next_frame();
        } else {
            self.state = State::Skip(bytes);
        }
    }

    fn begin_frame(&mut self, header: [u8; HEADER_BYTES]) -> Result<(), Malformed> {
        let [a, b, c, kind, flags, ..] = header;
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        // A header block is not interrupted by other frames.
        match (kind, self.in_block) {
            (TYPE_HEADERS, false) => {
                self.in_block = true;
                self.walker = Walker::new();
                if flags & FLAG_PADDED == 0 {
                    return self.begin_headers(length, 0, flags);
                }
                let rest = length.checked_sub(1).ok_or(Malformed)?;
                self.state = State::PadLength { rest, flags };
                Ok(())
            }
            (TYPE_CONTINUATION, true) => self.begin_block(length, 0, flags),
            (TYPE_CONTINUATION, false) | (_, true) => Err(Malformed),
            (_, false) => {
                self.skip(length);
                Ok(())
            }
        }
    }

    fn begin_headers(&mut self, rest: usize, padding: usize, flags: u8) -> Result<(), Malformed> {
        let block = rest.checked_sub(padding).ok_or(Malformed)?;
        if flags & FLAG_PRIORITY == 0 {
            return self.begin_block(block, padding, flags);
        }
        self.state = State::Priority {
            left: PRIORITY_BYTES,
            block: block.checked_sub(PRIORITY_BYTES).ok_or(Malformed)?,
            padding,
            flags,
        };
        Ok(())
    }

    fn begin_block(&mut self, left: usize, padding: usize, flags: u8) -> Result<(), Malformed> {
        if left == 0 {
            return self.end_piece(padding, flags);
        }
        self.state = State::Block {
            left,
            padding,
            flags,
        };
        Ok(())
    }

    fn end_piece(&mut self, padding: usize, flags: u8) -> Result<(), Malformed> {
        if flags & FLAG_END_HEADERS != 0 {
            self.in_block = false;
            self.walker.finish()?;
        }
        self.skip(padding);
        Ok(())
    }
}
