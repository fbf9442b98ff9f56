//! The archive around the arrays: members one after the other, and a directory at the end.
//!
//! Members may be stored as they are or deflated, and larger than 4 GiB. The lengths in the
//! directory are not believed: a member is never larger than what its bytes give, and its checksum
//! must be right.

use bytes::Bytes;

use crate::error::{Error, Result};

/// A file in the archive.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) data: Bytes,
}

const LOCAL: [u8; 4] = *b"PK\x03\x04";
const ENTRY: [u8; 4] = *b"PK\x01\x02";
const END: [u8; 4] = *b"PK\x05\x06";
const END_64: [u8; 4] = *b"PK\x06\x06";
const LOCATOR_64: [u8; 4] = *b"PK\x06\x07";

/// The end of the directory may be followed by a comment of this length.
const MAX_COMMENT: usize = 0xffff;
const END_BYTES: usize = 22;
/// A number that stands in the extension for large archives instead.
const ELSEWHERE: u64 = 0xffff_ffff;
/// The extension for large archives.
const EXTENSION_64: u16 = 1;
/// Names are UTF-8.
const FLAG_UTF8: u16 = 1 << 11;
const FLAG_ENCRYPTED: u16 = 1;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// The version of the format that knows archives above 4 GiB.
const VERSION_64: u16 = 45;
/// The first day that the format knows; archives should not depend on when they are written.
const DATE: u16 = 0x21;

fn malformed(what: &str) -> Error {
    Error::invalid(format!(
        "this is not an npz archive, or it is damaged: {what}"
    ))
}

/// Numbers from bytes.
struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let end = self.position.checked_add(len);
        let taken = end.and_then(|end| self.bytes.get(self.position..end));
        let taken = taken.ok_or_else(|| malformed("it is cut off"))?;
        self.position += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| malformed("it is cut off"))
    }

    fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn skip(&mut self, len: usize) -> Result<()> {
        self.take(len).map(drop)
    }
}

fn size(number: u64) -> Result<usize> {
    usize::try_from(number).map_err(|_| malformed("a number exceeds the memory of this machine"))
}

/// What the directory says of a member.
struct Entry {
    name: String,
    flags: u16,
    method: u16,
    checksum: u32,
    compressed: u64,
    uncompressed: u64,
    offset: u64,
}

/// All members.
pub(super) fn members(bytes: &Bytes) -> Result<Vec<Member>> {
    let (count, start) = directory(bytes)?;
    let mut reader = Reader {
        bytes,
        position: size(start)?,
    };
    // Each entry is read before there is room for the next, so the count need not be believed.
    let mut members = Vec::new();
    for _ in 0..count {
        let entry = entry(&mut reader)?;
        if entry.name.ends_with('/') {
            continue;
        }
        let data = contents(bytes, &entry)?;
        members.push(Member {
            name: entry.name,
            data,
        });
    }
    Ok(members)
}

/// The number of entries, and where the first one stands.
fn directory(bytes: &[u8]) -> Result<(u64, u64)> {
    let last = bytes.len().checked_sub(END_BYTES);
    let last = last.ok_or_else(|| malformed("it is too short"))?;
    let first = last.saturating_sub(MAX_COMMENT);
    let end = (first..=last)
        .rev()
        .find(|position| bytes[*position..].starts_with(&END))
        .ok_or_else(|| malformed("it has no directory"))?;
    let mut reader = Reader {
        bytes,
        position: end + 10,
    };
    let count = u64::from(reader.u16()?);
    reader.skip(4)?;
    let start = u64::from(reader.u32()?);
    if count != 0xffff && start != ELSEWHERE {
        return Ok((count, start));
    }
    let Some(locator) = end.checked_sub(20) else {
        return Ok((count, start));
    };
    if !bytes[locator..].starts_with(&LOCATOR_64) {
        return Ok((count, start));
    }
    reader.position = locator + 8;
    reader.position = size(reader.u64()?)?;
    if reader.array()? != END_64 {
        return Err(malformed("its directory is not where it should be"));
    }
    reader.skip(28)?;
    let count = reader.u64()?;
    reader.skip(8)?;
    Ok((count, reader.u64()?))
}

fn entry(reader: &mut Reader<'_>) -> Result<Entry> {
    if reader.array()? != ENTRY {
        return Err(malformed("its directory is broken"));
    }
    reader.skip(4)?;
    let flags = reader.u16()?;
    let method = reader.u16()?;
    reader.skip(4)?;
    let checksum = reader.u32()?;
    let compressed = u64::from(reader.u32()?);
    let uncompressed = u64::from(reader.u32()?);
    let name_bytes = usize::from(reader.u16()?);
    let extra_bytes = usize::from(reader.u16()?);
    let comment_bytes = usize::from(reader.u16()?);
    reader.skip(8)?;
    let offset = u64::from(reader.u32()?);
    let name = reader.take(name_bytes)?;
    let extra = reader.take(extra_bytes)?;
    reader.skip(comment_bytes)?;
    let name = std::str::from_utf8(name).map_err(|_| malformed("a name is not UTF-8"))?;
    let mut entry = Entry {
        name: name.to_owned(),
        flags,
        method,
        checksum,
        compressed,
        uncompressed,
        offset,
    };
    entry.extend(extra)?;
    Ok(entry)
}

impl Entry {
    /// Takes the numbers that do not fit into 32 bits from the extension.
    fn extend(&mut self, extra: &[u8]) -> Result<()> {
        let mut reader = Reader {
            bytes: extra,
            position: 0,
        };
        while reader.position < extra.len() {
            let kind = reader.u16()?;
            let len = usize::from(reader.u16()?);
            let field = reader.take(len)?;
            if kind != EXTENSION_64 {
                continue;
            }
            let mut field = Reader {
                bytes: field,
                position: 0,
            };
            for number in [
                &mut self.uncompressed,
                &mut self.compressed,
                &mut self.offset,
            ] {
                if *number == ELSEWHERE {
                    *number = field.u64()?;
                }
            }
        }
        Ok(())
    }
}

fn contents(bytes: &Bytes, entry: &Entry) -> Result<Bytes> {
    let name = &entry.name;
    if entry.flags & FLAG_ENCRYPTED != 0 {
        return Err(Error::invalid(format!(
            "member '{name}' of an npz archive is encrypted"
        )));
    }
    let mut reader = Reader {
        bytes,
        position: size(entry.offset)?,
    };
    if reader.array()? != LOCAL {
        return Err(malformed("a member is not where the directory says"));
    }
    reader.skip(22)?;
    let name_bytes = usize::from(reader.u16()?);
    let extra_bytes = usize::from(reader.u16()?);
    reader.skip(name_bytes)?;
    reader.skip(extra_bytes)?;
    let start = reader.position;
    let packed = reader.take(size(entry.compressed)?)?;
    let data = match entry.method {
        STORED => bytes.slice(start..start + packed.len()),
        DEFLATED => {
            let limit = size(entry.uncompressed)?;
            let unpacked = miniz_oxide::inflate::decompress_to_vec_with_limit(packed, limit);
            unpacked
                .map_err(|error| {
                    malformed(&format!("member '{name}' cannot be unpacked: {error}"))
                })?
                .into()
        }
        method => {
            return Err(Error::invalid(format!(
                "member '{name}' of an npz archive is compressed by method {method}; numpy.savez \
                 and numpy.savez_compressed use 0 and 8"
            )));
        }
    };
    if data.len() != size(entry.uncompressed)? || checksum(&[&data]) != entry.checksum {
        return Err(malformed(&format!(
            "the checksum of member '{name}' is wrong"
        )));
    }
    Ok(data)
}

/// CRC-32 of the parts one after the other, a byte at a time.
fn checksum(parts: &[&[u8]]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0_u32; 256];
        let mut first = 0_u32;
        let mut n = 0;
        while n < table.len() {
            let mut value = first;
            let mut bit = 0;
            while bit < 8 {
                value = (value >> 1) ^ (0xedb8_8320 * (value & 1));
                bit += 1;
            }
            table[n] = value;
            first += 1;
            n += 1;
        }
        table
    };
    let bytes = parts.iter().flat_map(|part| part.iter());
    !bytes.fold(!0, |sum, byte| {
        let [low, ..] = sum.to_le_bytes();
        (sum >> 8) ^ TABLE[usize::from(low ^ byte)]
    })
}

/// Makes an archive whose members are stored as they are.
#[derive(Debug, Default)]
pub(super) struct Writer {
    out: Vec<u8>,
    directory: Vec<u8>,
    names: Vec<String>,
}

impl Writer {
    /// Adds a member that consists of these parts.
    pub(super) fn add(&mut self, name: &str, parts: &[&[u8]]) -> Result<()> {
        if self.names.iter().any(|other| other == name) {
            return Err(Error::invalid(format!(
                "an npz archive cannot have two members with the name '{name}'"
            )));
        }
        let name_bytes = u16::try_from(name.len())
            .map_err(|_| Error::invalid(format!("the name of array '{name}' is too long")))?;
        let len: u64 = parts.iter().map(|part| length(part)).sum();
        let checksum = checksum(parts);
        let offset = length(&self.out);
        // Large numbers stand in the extension always: one way for every size, as in NumPy.
        for local in [true, false] {
            let out = if local {
                &mut self.out
            } else {
                &mut self.directory
            };
            out.extend(if local { LOCAL } else { ENTRY });
            if !local {
                out.extend(VERSION_64.to_le_bytes());
            }
            for number in [VERSION_64, FLAG_UTF8, STORED, 0, DATE] {
                out.extend(number.to_le_bytes());
            }
            out.extend(checksum.to_le_bytes());
            out.extend([0xff; 8]);
            out.extend(name_bytes.to_le_bytes());
            let extra: &[u64] = if local {
                &[len, len]
            } else {
                &[len, len, offset]
            };
            let extra_bytes: u16 = if local { 16 } else { 24 };
            out.extend((extra_bytes + 4).to_le_bytes());
            if !local {
                out.extend([0; 10]);
                out.extend([0xff; 4]);
            }
            out.extend(name.as_bytes());
            out.extend(EXTENSION_64.to_le_bytes());
            out.extend(extra_bytes.to_le_bytes());
            for number in extra {
                out.extend(number.to_le_bytes());
            }
        }
        for part in parts {
            self.out.extend(*part);
        }
        self.names.push(name.to_owned());
        Ok(())
    }

    /// The archive.
    pub(super) fn finish(self) -> Result<Vec<u8>> {
        let Self {
            mut out,
            directory,
            names,
        } = self;
        let start = length(&out);
        let count = u64::try_from(names.len()).unwrap_or(u64::MAX);
        let len = length(&directory);
        out.extend(directory);
        let end_64 = length(&out);
        out.extend(END_64);
        out.extend(44_u64.to_le_bytes());
        for number in [VERSION_64, VERSION_64, 0, 0, 0, 0] {
            out.extend(number.to_le_bytes());
        }
        for number in [count, count, len, start] {
            out.extend(number.to_le_bytes());
        }
        out.extend(LOCATOR_64);
        out.extend([0; 4]);
        out.extend(end_64.to_le_bytes());
        out.extend(1_u32.to_le_bytes());
        out.extend(END);
        out.extend([0; 4]);
        out.extend([0xff; 12]);
        out.extend([0; 2]);
        Ok(out)
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
