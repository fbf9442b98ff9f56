//! What may be given to a plugin as a module.
//!
//! MLIR bytecode without a version is read according to the build that wrote it. A plugin of another
//! build reads something else, or nothing. So only portable artifacts, whose writer is named
//! `StableHLO_v…`, and text are passed on.

use ifrt::{Result, Status};

/// How MLIR bytecode begins.
const MAGIC: &[u8] = b"ML\xefR";

/// Programs that people or compilers write stay far below this.
const MAX_NESTING: usize = 512;

/// The writer of portable artifacts.
const PORTABLE_PRODUCER: &[u8] = b"StableHLO_v";

/// Checks that a module is a portable artifact or text.
///
/// # Errors
/// INVALID_ARGUMENT saying what it is instead.
pub(super) fn check(module: &[u8]) -> Result<()> {
    if module.is_empty() {
        return Err(Status::invalid_argument("the module is empty"));
    }
    let Some(rest) = module.strip_prefix(MAGIC) else {
        return match std::str::from_utf8(module) {
            Ok(text) if !text.contains('\0') => check_nesting(text),
            _ => Err(Status::invalid_argument(format!(
                "the module is neither MLIR bytecode nor MLIR text; it begins with {:02x?}",
                &module[..module.len().min(8)]
            ))),
        };
    };
    let producer = producer(rest).ok_or_else(|| {
        Status::invalid_argument(format!(
            "the module is MLIR bytecode that ends in its header: {} bytes",
            module.len()
        ))
    })?;
    if producer.starts_with(PORTABLE_PRODUCER) {
        return Ok(());
    }
    Err(Status::invalid_argument(format!(
        "the module is MLIR bytecode without a version (written by {:?}), which only the same build \
         can read; serialize it as a portable artifact of StableHLO, or as text",
        String::from_utf8_lossy(producer)
    )))
}

/// Refuses text that would overflow the stack of its reader, which recurses.
fn check_nesting(text: &str) -> Result<()> {
    let mut depth = 0_usize;
    let mut bytes = text.bytes().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => skip_string(&mut bytes),
            b'/' if bytes.peek() == Some(&b'/') => {
                while !matches!(bytes.next(), None | Some(b'\n')) {}
            }
            // An arrow closes nothing.
            b'-' if bytes.peek() == Some(&b'>') => drop(bytes.next()),
            b'(' | b'[' | b'{' | b'<' => depth += 1,
            b')' | b']' | b'}' | b'>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING {
            return Err(Status::invalid_argument(format!(
                "the module is MLIR text with brackets nested more than {MAX_NESTING} deep; pass it \
                 as a portable artifact"
            )));
        }
    }
    Ok(())
}

/// Skips a text to its closing quote.
fn skip_string(bytes: &mut impl Iterator<Item = u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => break,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
}

/// The writer of bytecode, which stands after the version of the encoding.
fn producer(rest: &[u8]) -> Option<&[u8]> {
    let rest = skip_varint(rest)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    rest.get(..end)
}

/// Skips a number in MLIR's encoding: the trailing zeros of its first byte count the bytes that
/// follow.
fn skip_varint(bytes: &[u8]) -> Option<&[u8]> {
    let more = usize::try_from(bytes.first()?.trailing_zeros()).ok()?;
    bytes.get(1 + more..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ifrt::Code;

    fn bytecode(version: &[u8], producer: &[u8]) -> Vec<u8> {
        [MAGIC, version, producer, b"\0rest"].concat()
    }

    #[test]
    fn portable_artifacts_and_text_pass() {
        check(b"module @jit_f { }").unwrap();
        check("// \u{e9}\nmodule {}".as_bytes()).unwrap();
        check(&bytecode(b"\x0d", b"StableHLO_v1.15.0")).unwrap();
        check(&bytecode(b"\x02\x00", b"StableHLO_v0.9.0")).unwrap();
    }

    #[test]
    fn nesting_counts_brackets_outside_of_strings_and_comments() {
        let deep = |open: &str, close: &str| open.repeat(513) + &close.repeat(513);
        for (open, close) in [("(", ")"), ("[", "]"), ("{", "}"), ("<", ">")] {
            let error = check(deep(open, close).as_bytes()).unwrap_err();
            assert!(error.message().contains("nested more than 512"), "{error}");
        }
        check("(f32) -> (f32) {}".repeat(1000).as_bytes()).unwrap();
        check("tensor<f32> () -> ()".repeat(1000).as_bytes()).unwrap();
        check("x = \"((((\"".repeat(1000).as_bytes()).unwrap();
        check("// ((((\n".repeat(1000).as_bytes()).unwrap();
        check("x = \"\\\"((((\"".repeat(1000).as_bytes()).unwrap();
        check(b"\"never closed").unwrap();
    }

    #[test]
    fn everything_else_is_refused() {
        for (module, part) in [
            (&b""[..], "empty"),
            (b"\xff\xfe", "neither"),
            (b"module\0", "neither"),
            (b"ML\xefR", "header"),
            (b"ML\xefR\x0d", "header"),
            (b"ML\xefR\x00", "header"),
            (b"ML\xefR\x0dStableHLO_v1.15.0", "header"),
            (&bytecode(b"\x0d", b"MLIR20.0.0git"), "\"MLIR20.0.0git\""),
            (&bytecode(b"\x0d", b""), "without a version"),
        ] {
            let error = check(module).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            assert!(error.message().contains(part), "{error}");
        }
    }
}
