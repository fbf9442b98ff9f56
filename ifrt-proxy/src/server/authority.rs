//! Makes the authority that gRPC C++ sends over Unix sockets one that Rust's HTTP accepts.
//!
//! A client that connects to `unix:/tmp/x.sock` names `%2Ftmp%2Fx.sock` as the authority of its
//! requests. The `http` crate allows no percent sign there, so the HTTP/2 implementation refuses
//! each request with PROTOCOL_ERROR before any service sees it. [`AuthorityFix`] stands between the
//! socket and HTTP/2 and puts a legal character in the place of each percent sign of an authority.
//!
//! To do so it follows the frames of the client, and in header blocks the fields, byte by byte and
//! without keeping any: see [`frames`] and [`hpack`]. Nothing else is changed, and no length, so
//! the state of header compression stays right: where a later field refers to an earlier authority,
//! the receiver finds the one that it was given. If the bytes are not what HTTP/2 allows, all that
//! follows passes through unchanged, for HTTP/2 to judge.
//!
//! # What is not here
//! Authorities under Huffman coding, and those whose name refers to a dynamic table entry: gRPC C++
//! writes neither. They pass through unchanged.

mod frames;
mod hpack;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use frames::Frames;

/// A connection whose client may send authorities with percent signs.
#[derive(Debug)]
pub(crate) struct AuthorityFix<S> {
    inner: S,
    frames: Frames,
}

impl<S> AuthorityFix<S> {
    pub(crate) const fn new(inner: S) -> Self {
        Self {
            inner,
            frames: Frames::new(),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for AuthorityFix<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        if let Some(new) = buf.filled_mut().get_mut(before..) {
            self.frames.fix(new);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for AuthorityFix<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

/// What the receiver gets of these bytes, which come in pieces of this length.
#[cfg(feature = "fuzzing")]
pub(crate) fn fixed(sent: &[u8], piece: usize) -> Vec<u8> {
    let mut frames = Frames::new();
    let mut received = sent.to_vec();
    for piece in received.chunks_mut(piece) {
        frames.fix(piece);
    }
    received
}

#[cfg(test)]
mod tests;
