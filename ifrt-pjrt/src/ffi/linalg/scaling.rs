//! Keeping numbers away from the ends of their range while a routine works on them.

use super::scalar::{Real, Scalar};
use super::view::View;

/// A power of two by which a matrix was multiplied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale<R> {
    undo: R,
}

impl<R: Real> Scale<R> {
    /// Multiplies a matrix by a power of two if its squares would overflow or vanish.
    pub(crate) fn apply<T: Scalar<Part = R>>(matrix: &mut View<'_, T>) -> Self {
        let largest = matrix.largest_part();
        let small = R::SAFE_MIN.root() / R::EPSILON;
        let big = R::ONE / small;
        let step = if largest > R::ZERO && largest < small {
            1
        } else if largest > big && largest.is_a_number() {
            -1
        } else {
            return Self { undo: R::ONE };
        };
        let mut exponent = 0;
        let mut value = largest;
        while if step > 0 { value < R::ONE } else { value > R::ONE } {
            value *= R::power_of_two(step);
            exponent += step;
        }
        // In two steps, because the factor for a denormal number is itself out of range.
        let (one, other) = (exponent / 2, exponent - exponent / 2);
        matrix.scale(R::power_of_two(one));
        matrix.scale(R::power_of_two(other));
        Self { undo: R::power_of_two(-one) * R::power_of_two(-other) }
    }

    /// Multiplies values that follow the scale of the matrix back.
    pub(crate) fn undo<T: Scalar<Part = R>>(self, values: &mut [T]) {
        if self.undo != R::ONE {
            values.iter_mut().for_each(|value| *value = value.scaled(self.undo));
        }
    }
}
