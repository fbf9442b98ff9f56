//! The floating-point environment in which a handler runs.
//!
//! XLA's threads flush denormal numbers to zero. Rust code may assume that nobody does: the linear
//! algebra of handlers divides complex numbers with the help of denormal ones, and gives wrong
//! results without a word if they vanish. So a handler runs in the default environment, and the
//! plugin gets its own one back.

/// Holds the default environment from its creation to its end.
#[derive(Debug)]
pub(super) struct DefaultFloats {
    before: Control,
}

impl DefaultFloats {
    /// Switches to the default environment.
    pub(super) fn enter() -> Self {
        let before = read();
        write(DEFAULT);
        Self { before }
    }
}

impl Drop for DefaultFloats {
    fn drop(&mut self) {
        write(self.before);
    }
}

/// The control register of the processor.
#[cfg(target_arch = "x86_64")]
type Control = u32;

/// Rounding to the nearest number, all exceptions masked, denormal numbers kept.
#[cfg(target_arch = "x86_64")]
const DEFAULT: Control = 0x1f80;

#[cfg(target_arch = "x86_64")]
fn read() -> Control {
    let mut control: Control = 0;
    // SAFETY: the instruction stores four bytes to a local.
    unsafe {
        std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut control, options(nostack, preserves_flags));
    }
    control
}

#[cfg(target_arch = "x86_64")]
fn write(control: Control) {
    // SAFETY: the instruction loads four bytes from a local. The value is the default one, which
    // Rust code assumes, or the one that was there when the plugin called, to which it returns.
    unsafe {
        std::arch::asm!(
            "ldmxcsr [{}]",
            in(reg) &raw const control,
            options(nostack, preserves_flags, readonly)
        );
    }
}

/// The control register of the processor.
#[cfg(target_arch = "aarch64")]
type Control = u64;

/// Rounding to the nearest number, no traps, denormal numbers kept.
#[cfg(target_arch = "aarch64")]
const DEFAULT: Control = 0;

#[cfg(target_arch = "aarch64")]
fn read() -> Control {
    let control: Control;
    // SAFETY: the instruction reads a register that every program may read.
    unsafe {
        std::arch::asm!("mrs {}, fpcr", out(reg) control, options(nomem, nostack, preserves_flags));
    }
    control
}

#[cfg(target_arch = "aarch64")]
fn write(control: Control) {
    // SAFETY: the value is the default one, which Rust code assumes, or the one that was there when
    // the plugin called, to which it returns.
    unsafe {
        std::arch::asm!("msr fpcr, {}", in(reg) control, options(nostack, preserves_flags));
    }
}

/// On other processors, nothing is known to be changed.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
type Control = ();

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const DEFAULT: Control = ();

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn read() -> Control {}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn write((): Control) {}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use std::hint::black_box;

    use super::*;

    /// Flush results to zero, and take denormal operands for zero: how XLA's threads run.
    const FLUSHING: Control = DEFAULT | 0x8040;

    fn keeps_denormals() -> bool {
        black_box(black_box(f32::MIN_POSITIVE) * black_box(0.5)) != 0.0
    }

    #[test]
    fn denormal_numbers_are_kept_inside_and_the_plugin_gets_its_own_way_back() {
        let before = read();
        write(FLUSHING);
        let outside = keeps_denormals();
        let inside = {
            let _floats = DefaultFloats::enter();
            keeps_denormals()
        };
        let after = read();
        write(before);
        assert!(!outside && inside);
        assert_eq!(after & FLUSHING, FLUSHING);
    }
}
