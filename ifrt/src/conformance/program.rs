//! The programs that the cases about executables run.

mod fake;
mod stablehlo;

pub use fake::{fake_module, register_fake_programs};
pub use stablehlo::stablehlo;

/// A program that a backend brings in its own language. All shapes are `[2,3]`, all elements 32-bit
/// integers, everything is on one device and nothing is donated unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(
    clippy::exhaustive_enums,
    reason = "a backend answers for each of them"
)]
pub enum ProgramKind {
    /// `add_sub(a, b) = (a + b, a - b)` over two devices: `a` and the second result are tiled
    /// `[2,1]`, `b` and the first result are replicated.
    AddSub,
    /// `add(a, b) = a + b`.
    Add,
    /// `four(a, b, c, d) = (a, b, c, d)`; `a` and `c` are donated.
    Four,
    /// `add_one(a) = a + 1`.
    AddOne,
    /// [`ProgramKind::AddOne`], compiled for no device in particular.
    PortableAddOne,
    /// `add_three(a, b, c) = (a + 100, b + 200, c + 300)`.
    AddThree,
    /// `nothing() = ()`.
    Nothing,
    /// `donate(a, b) = (a + b, a - b)`; both parameters are donated.
    Donate,
    /// `token(t, a) = (t, a)` over two devices: a token, and `a` of shape `[4,2]` tiled `[2,1]`.
    Token,
}
