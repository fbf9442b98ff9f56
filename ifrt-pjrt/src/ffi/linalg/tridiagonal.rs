//! Tridiagonal systems: `gtsv`, and a solver for systems that may be singular.

use super::one_based;
use super::scalar::{Real, Scalar};
use super::view::View;

/// Solves a tridiagonal system by elimination with row exchanges; destroys the diagonals.
///
/// `below` and `above` are one shorter than `diagonal`. Gives 0, or the position, counted from 1, of
/// a pivot that is exactly zero; there is no solution then.
pub(crate) fn solve<T: Scalar>(
    below: &mut [T],
    diagonal: &mut [T],
    above: &mut [T],
    b: &mut View<'_, T>,
) -> i32 {
    let order = diagonal.len();
    if order == 0 {
        return 0;
    }
    for row in 0..order - 1 {
        if below[row] == T::ZERO {
            if diagonal[row] == T::ZERO {
                return one_based(row);
            }
        } else if diagonal[row].size1() >= below[row].size1() {
            let factor = below[row].divided_by(diagonal[row]);
            diagonal[row + 1] -= factor * above[row];
            for col in 0..b.cols() {
                let column = b.col_mut(col);
                let value = column[row];
                column[row + 1] -= factor * value;
            }
            if row + 2 < order {
                below[row] = T::ZERO;
            }
        } else {
            let factor = diagonal[row].divided_by(below[row]);
            diagonal[row] = below[row];
            let next = diagonal[row + 1];
            diagonal[row + 1] = above[row] - factor * next;
            if row + 2 < order {
                // The second diagonal above has its place where an eliminated element was.
                below[row] = above[row + 1];
                above[row + 1] = -(factor * below[row]);
            }
            above[row] = next;
            for col in 0..b.cols() {
                let column = b.col_mut(col);
                column.swap(row, row + 1);
                let value = column[row];
                column[row + 1] -= factor * value;
            }
        }
    }
    if diagonal[order - 1] == T::ZERO {
        return one_based(order - 1);
    }
    for col in 0..b.cols() {
        let column = b.col_mut(col);
        column[order - 1] = column[order - 1].divided_by(diagonal[order - 1]);
        for row in (0..order - 1).rev() {
            let mut value = column[row] - above[row] * column[row + 1];
            if row + 2 < order {
                value -= below[row] * column[row + 2];
            }
            column[row] = value.divided_by(diagonal[row]);
        }
    }
    0
}

/// Solves a tridiagonal system in place of its right-hand sides; pivots that would make the solution overflow are moved away
/// from zero.
///
/// All three diagonals have the length of the system; the first element of `below` and the last of
/// `above` are not used. What LAPACK does in `lagtf` and `lagts`.
pub(crate) fn solve_perturbed<T: Scalar>(
    below: &[T],
    diagonal: &[T],
    above: &[T],
    x: &mut View<'_, T>,
) {
    let order = diagonal.len();
    let zero = <T::Part as Scalar>::ZERO;
    if order == 0 {
        return;
    }
    let above_at = |row: usize| if row + 1 < order { above[row] } else { T::ZERO };
    // The three diagonals of U.
    let mut first = diagonal.to_vec();
    let mut second: Vec<T> = (0..order).map(above_at).collect();
    let mut third = vec![T::ZERO; order];
    let mut scale = first[0].modulus() + second[0].modulus();
    let mut largest = first[0].modulus().larger(second[0].modulus());
    for row in 0..order - 1 {
        let next = row + 1;
        let below = below[next];
        let next_scale = below.modulus() + diagonal[next].modulus() + above_at(next).modulus();
        let keeps = if below == T::ZERO {
            true
        } else {
            let here = if first[row] == T::ZERO {
                zero
            } else {
                first[row].modulus() / scale
            };
            below.modulus() / next_scale <= here
        };
        if keeps {
            scale = next_scale;
            if below != T::ZERO {
                let factor = below.divided_by(first[row]);
                first[next] -= factor * second[row];
                for col in 0..x.cols() {
                    let column = x.col_mut(col);
                    let value = column[row];
                    column[next] -= factor * value;
                }
            }
        } else {
            let factor = first[row].divided_by(below);
            let old = second[row];
            first[row] = below;
            second[row] = diagonal[next];
            third[row] = above_at(next);
            first[next] = old - factor * diagonal[next];
            second[next] = -(factor * third[row]);
            for col in 0..x.cols() {
                let column = x.col_mut(col);
                column.swap(row, next);
                let value = column[row];
                column[next] -= factor * value;
            }
            scale = first[next].modulus() + second[next].modulus();
        }
        for element in [first[row], second[row], third[row]] {
            largest = largest.larger(element.modulus());
        }
    }
    largest = largest.larger(first[order - 1].modulus());
    let perturbation = T::Part::EPSILON * largest;

    let mut values = vec![T::ZERO; x.cols()];
    for row in (0..order).rev() {
        for (col, value) in values.iter_mut().enumerate() {
            let column = x.col(col);
            *value = column[row];
            if row + 1 < order {
                *value -= second[row] * column[row + 1];
            }
            if row + 2 < order {
                *value -= third[row] * column[row + 2];
            }
        }
        let pivot = safe_pivot(first[row], perturbation, &mut values);
        let inverse = T::ONE.divided_by(pivot);
        for (col, value) in values.iter().enumerate() {
            x.set(row, col, *value * inverse);
        }
    }
}

/// A pivot near the given one by which all values can be divided without overflow.
///
/// Very small pivots and values may both be multiplied instead.
fn safe_pivot<T: Scalar>(pivot: T, perturbation: T::Part, values: &mut [T]) -> T {
    let (zero, one) = (<T::Part as Scalar>::ZERO, <T::Part as Scalar>::ONE);
    let two = <T::Part as Real>::of(2.0);
    let smallest = T::Part::SAFE_MIN;
    let biggest = one / smallest;
    let largest = values
        .iter()
        .fold(zero, |largest, value| largest.larger(value.modulus()));
    let mut pivot = pivot;
    let mut step = perturbation.larger(smallest).with_sign_of(pivot.re());
    loop {
        let size = pivot.modulus();
        // A pivot that is not a number stays one.
        if size >= one || !size.is_a_number() {
            return pivot;
        }
        if size < smallest && size != zero && largest * smallest <= size {
            values
                .iter_mut()
                .for_each(|value| *value = value.scaled(biggest));
            return pivot.scaled(biggest);
        }
        let safe = size >= smallest && largest <= size * biggest;
        if safe || !largest.is_a_number() {
            return pivot;
        }
        pivot += T::from_re(step);
        step *= two;
    }
}

#[cfg(test)]
mod tests;
