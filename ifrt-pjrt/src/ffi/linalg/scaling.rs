//! Keeping numbers away from the ends of their range while a routine works on them.

use super::scalar::{Real, Scalar};
use super::view::View;

/// More than the exponents of the smallest and the largest `f64`.
const MAX_EXPONENT: i32 = 1100;

/// A power of two by which a matrix was multiplied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale<R> {
    undo: R,
}

impl<R: Real> Scale<R> {
    /// Multiplies a matrix by a power of two that brings its longest column near one half.
    ///
    /// The largest singular value is then about one, for which methods with fixed thresholds are
    /// made, and no square of an element overflows. Divide and conquer loses digits otherwise.
    pub(crate) fn apply<T: Scalar<Part = R>>(matrix: &mut View<'_, T>) -> Self {
        let mut longest = R::ZERO;
        for col in 0..matrix.cols() {
            longest = longest.larger(T::norm(matrix.col(col)));
        }
        if longest == R::ZERO || !longest.is_a_number() {
            // An empty matrix, or one whose norm is out of range: its elements are not.
            longest = matrix.largest_part();
        }
        if longest == R::ZERO || !longest.is_a_number() {
            return Self { undo: R::ONE };
        }
        let (two, half, quarter) = (R::of(2.0), R::of(0.5), R::of(0.25));
        let mut exponent = 0;
        let mut value = longest;
        while value < quarter && exponent < MAX_EXPONENT {
            value *= two;
            exponent += 1;
        }
        while value > half && exponent > -MAX_EXPONENT {
            value *= half;
            exponent -= 1;
        }
        if exponent == 0 {
            return Self { undo: R::ONE };
        }
        // In two steps, because the factor for a denormal number is itself out of range.
        let (one, other) = (exponent / 2, exponent - exponent / 2);
        matrix.scale(R::power_of_two(one));
        matrix.scale(R::power_of_two(other));
        Self {
            undo: R::power_of_two(-one) * R::power_of_two(-other),
        }
    }

    /// Multiplies values that follow the scale of the matrix back.
    pub(crate) fn undo<T: Scalar<Part = R>>(self, values: &mut [T]) {
        if self.undo != R::ONE {
            values
                .iter_mut()
                .for_each(|value| *value = value.scaled(self.undo));
        }
    }
}
