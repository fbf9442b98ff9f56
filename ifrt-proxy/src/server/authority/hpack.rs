//! Finds the authority in a header block (RFC 7541), byte by byte.
//!
//! Only as much of the format is followed as is needed to know where each field begins and ends.

/// The bytes are not a header block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

const AUTHORITY: &[u8] = b":authority";

/// The entry of the static table that is named `:authority`.
const AUTHORITY_INDEX: usize = 1;

/// What stands in the place of a percent sign. Any character that is legal in an authority will
/// do: nobody here looks at the authority.
const REPLACEMENT: u8 = b'-';

/// What the number that is being read is.
#[derive(Clone, Copy, Debug)]
enum Number {
    /// The field stands in a table, or the size of the table changes: nothing follows.
    Nothing,
    /// The table entry whose name the field has.
    NameIndex,
    NameLength {
        huffman: bool,
    },
    ValueLength {
        huffman: bool,
    },
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Between fields.
    Field,
    /// In a number that goes on over several bytes.
    Number {
        what: Number,
        value: usize,
        shift: u32,
    },
    NameStart,
    /// In a name; `matching` says whether it is `:authority` so far.
    Name {
        left: usize,
        seen: usize,
        matching: bool,
    },
    ValueStart,
    Value {
        left: usize,
        replace: bool,
    },
}

/// Follows the fields of a header block.
#[derive(Debug)]
pub(super) struct Walker {
    state: State,
    /// Whether the field that is being read is the authority.
    is_authority: bool,
}

impl Walker {
    pub(super) const fn new() -> Self {
        Self {
            state: State::Field,
            is_authority: false,
        }
    }

    /// Takes the next byte of the block and returns what is to stand in its place.
    pub(super) fn walk(&mut self, byte: u8) -> Result<u8, Malformed> {
        match self.state {
            State::Field => {
                self.is_authority = false;
                let (what, bits) = if byte & 0x80 != 0 {
                    (Number::Nothing, 7)
                } else if byte & 0x40 != 0 {
                    (Number::NameIndex, 6)
                } else if byte & 0x20 != 0 {
                    (Number::Nothing, 5)
                } else {
                    (Number::NameIndex, 4)
                };
                self.begin_number(what, byte, bits);
            }
            State::NameStart => {
                let huffman = byte & 0x80 != 0;
                self.begin_number(Number::NameLength { huffman }, byte, 7);
            }
            State::ValueStart => {
                let huffman = byte & 0x80 != 0;
                self.begin_number(Number::ValueLength { huffman }, byte, 7);
            }
            State::Number { what, value, shift } => {
                // Nothing that could be sent needs more than 28 bits beyond the prefix.
                let digit = usize::from(byte & 0x7f)
                    .checked_shl(shift)
                    .filter(|_| shift <= 21)
                    .ok_or(Malformed)?;
                let value = value.checked_add(digit).ok_or(Malformed)?;
                if byte & 0x80 != 0 {
                    self.state = State::Number {
                        what,
                        value,
                        shift: shift + 7,
                    };
                } else {
                    self.end_number(what, value);
                }
            }
            State::Name {
                left,
                seen,
                matching,
            } => {
                let matching = matching && AUTHORITY.get(seen) == Some(&byte);
                if left > 1 {
                    self.state = State::Name {
                        left: left - 1,
                        seen: seen + 1,
                        matching,
                    };
                } else {
                    self.is_authority = matching && seen + 1 == AUTHORITY.len();
                    self.state = State::ValueStart;
                }
            }
            State::Value { left, replace } => {
                self.state = if left > 1 {
                    State::Value {
                        left: left - 1,
                        replace,
                    }
                } else {
                    State::Field
                };
                if replace && byte == b'%' {
                    return Ok(REPLACEMENT);
                }
            }
        }
        Ok(byte)
    }

    /// Checks that the block ends with a whole field.
    pub(super) fn finish(&self) -> Result<(), Malformed> {
        match self.state {
            State::Field => Ok(()),
            _ => Err(Malformed),
        }
    }

    fn begin_number(&mut self, what: Number, byte: u8, bits: u32) {
        let max = (1_u8 << bits) - 1;
        let value = usize::from(byte & max);
        if byte & max == max {
            self.state = State::Number {
                what,
                value,
                shift: 0,
            };
        } else {
            self.end_number(what, value);
        }
    }

    fn end_number(&mut self, what: Number, value: usize) {
        self.state = match what {
            Number::Nothing => State::Field,
            Number::NameIndex if value == 0 => State::NameStart,
            Number::NameIndex => {
                self.is_authority = value == AUTHORITY_INDEX;
                State::ValueStart
            }
            Number::NameLength { .. } if value == 0 => State::ValueStart,
            Number::NameLength { huffman } => State::Name {
                left: value,
                seen: 0,
                matching: !huffman,
            },
            Number::ValueLength { .. } if value == 0 => State::Field,
            Number::ValueLength { huffman } => State::Value {
                left: value,
                replace: self.is_authority && !huffman,
            },
        };
    }
}
