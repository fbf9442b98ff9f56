//! The complex Schur form: triangular. `hqr` for complex matrices.

use super::super::one_based;
use super::super::reflector;
use super::super::scalar::{Real, Scalar};
use super::super::view::View;
use super::{ITERATIONS, PATIENCE};

/// Writes the Schur form over a matrix, its vectors into `q`, and its eigenvalues.
///
/// Gives 0, or the order of the part that did not converge.
pub(crate) fn decompose<T: Scalar>(
    matrix: &mut View<'_, T>,
    q: &mut View<'_, T>,
    values: &mut [T],
) -> i32 {
    let order = matrix.rows();
    if !matrix.is_finite() {
        return one_based(order);
    }
    super::prepare(matrix, q);
    match iterate(matrix, q, values) {
        Ok(()) => 0,
        Err(end) => one_based(end),
    }
}

/// Gives the position where the iteration got stuck. The subdiagonal stays real.
fn iterate<T: Scalar>(
    h: &mut View<'_, T>,
    z: &mut View<'_, T>,
    values: &mut [T],
) -> Result<(), usize> {
    let order = h.rows();
    for row in 1..order {
        make_real(h, z, row, order);
    }
    let limit = ITERATIONS * order.max(10);
    let mut remaining = order;
    while remaining > 0 {
        let end = remaining - 1;
        let mut start = 0;
        let mut converged = false;
        let mut stagnation = 0;
        for _ in 0..=limit {
            start = start_of_block(h, start, end);
            if start > 0 {
                h.set(start, start - 1, T::ZERO);
            }
            if start >= end {
                converged = true;
                break;
            }
            stagnation += 1;
            let shift = shift(h, start, end, stagnation);
            let (first, v) = first_column(h, start, end, shift);
            sweep(h, z, start, first, end, v);
            make_real(h, z, end, order);
        }
        if !converged {
            return Err(end);
        }
        values[end] = h.at(end, end);
        remaining = end;
    }
    Ok(())
}

/// Turns row and column `row` so that the element left of the diagonal is real and not negative.
fn make_real<T: Scalar>(h: &mut View<'_, T>, z: &mut View<'_, T>, row: usize, order: usize) {
    let sub = h.at(row, row - 1);
    if sub.im() == <T::Part as Scalar>::ZERO {
        return;
    }
    let length = sub.modulus();
    let phase = T::from_parts(sub.re() / length, sub.im() / length);
    h.set(row, row - 1, T::from_re(length));
    turn(h, z, row, phase, order);
}

/// Multiplies row `row` right of the subdiagonal by the conjugate of a phase, and column `row` by it.
///
/// The element below the diagonal is part of the column.
fn turn<T: Scalar>(h: &mut View<'_, T>, z: &mut View<'_, T>, row: usize, phase: T, order: usize) {
    for col in row + 1..order {
        let value = h.at(row, col) * phase.conjugate();
        h.set(row, col, value);
    }
    // The diagonal element is in both, and stays.
    for above in 0..row {
        let value = h.at(above, row) * phase;
        h.set(above, row, value);
    }
    if row + 1 < order {
        let value = h.at(row + 1, row) * phase;
        h.set(row + 1, row, value);
    }
    z.col_mut(row)
        .iter_mut()
        .for_each(|element| *element *= phase);
}

fn real_below<T: Scalar>(h: &View<'_, T>, row: usize) -> T::Part {
    h.at(row + 1, row).re().magnitude()
}

/// Where the block begins that ends at `end`: below a subdiagonal element that is negligible.
fn start_of_block<T: Scalar>(h: &View<'_, T>, low: usize, end: usize) -> usize {
    let order = h.rows();
    let epsilon = <T::Part as Real>::EPSILON;
    let size = <T::Part as Real>::of(f64::from(u32::try_from(order).unwrap_or(u32::MAX)));
    let tiny = <T::Part as Real>::SAFE_MIN * (size / epsilon);
    let mut row = end;
    while row > low {
        let sub = h.at(row, row - 1).size1();
        if sub <= tiny {
            break;
        }
        let (above, here) = (h.at(row - 1, row - 1), h.at(row, row));
        let mut neighbors = above.size1() + here.size1();
        if neighbors == <T::Part as Scalar>::ZERO {
            if row >= 2 {
                neighbors += real_below(h, row - 2);
            }
            if row + 1 < order {
                neighbors += real_below(h, row);
            }
        }
        if real_below(h, row - 1) <= epsilon * neighbors {
            // The criterion of Ahues and Tisseur: the eigenvalues would hardly move.
            let over = h.at(row - 1, row).size1();
            let (larger, smaller) = (sub.larger(over), sub.smaller(over));
            let gap = (above - here).size1();
            let (big, small) = (here.size1().larger(gap), here.size1().smaller(gap));
            let sum = big + larger;
            if smaller * (larger / sum) <= tiny.larger(epsilon * (small * (big / sum))) {
                break;
            }
        }
        row -= 1;
    }
    row
}

/// The eigenvalue of the last two rows that is nearer to the last element, or a number that breaks a
/// cycle.
fn shift<T: Scalar>(h: &View<'_, T>, start: usize, end: usize, stagnation: usize) -> T {
    let zero = <T::Part as Scalar>::ZERO;
    let exceptional = |size: T::Part| T::from_re(<T::Part as Real>::of(0.75) * size);
    if stagnation.is_multiple_of(2 * PATIENCE) {
        return exceptional(real_below(h, end - 1)) + h.at(end, end);
    }
    if stagnation.is_multiple_of(PATIENCE) {
        return exceptional(real_below(h, start)) + h.at(start, start);
    }
    let last = h.at(end, end);
    let coupling = root(h.at(end - 1, end)) * root(h.at(end, end - 1));
    let mut size = coupling.size1();
    if size == zero {
        return last;
    }
    let x = (h.at(end - 1, end - 1) - last).scaled(<T::Part as Real>::of(0.5));
    let size_x = x.size1();
    size = size.larger(size_x);
    let over = |value: T, by: T::Part| T::from_parts(value.re() / by, value.im() / by);
    let (scaled_x, scaled_u) = (over(x, size), over(coupling, size));
    let mut y = root(scaled_x * scaled_x + scaled_u * scaled_u).scaled(size);
    if size_x > zero {
        let direction = over(x, size_x);
        if direction.re() * y.re() + direction.im() * y.im() < zero {
            y = -y;
        }
    }
    last - coupling * coupling.divided_by(x + y)
}

/// The square root with a real part that is not negative.
fn root<T: Scalar>(value: T) -> T {
    let zero = <T::Part as Scalar>::ZERO;
    let half = <T::Part as Real>::of(0.5);
    let (re, im) = (value.re(), value.im());
    if re == zero && im == zero {
        return T::ZERO;
    }
    // Both terms under the root are positive, so nothing cancels.
    let part = ((value.modulus() * half) + re.magnitude() * half).root();
    let other = im * half / part;
    if re >= zero {
        T::from_parts(part, other)
    } else {
        T::from_parts(other.magnitude(), part.with_sign_of(im))
    }
}

/// Where a step can begin because two subdiagonal elements are small, and the column it begins with.
fn first_column<T: Scalar>(h: &View<'_, T>, start: usize, end: usize, shift: T) -> (usize, [T; 2]) {
    let mut row = end - 1;
    loop {
        let (h00, h11) = (h.at(row, row), h.at(row + 1, row + 1));
        let shifted = h00 - shift;
        let sub = h.at(row + 1, row).re();
        let size = shifted.size1() + sub.magnitude();
        let v0 = T::from_parts(shifted.re() / size, shifted.im() / size);
        let v1 = sub / size;
        let column = [v0, T::from_re(v1)];
        if row == start {
            return (row, column);
        }
        let above = real_below(h, row - 1);
        let bound = v0.size1() * (h00.size1() + h11.size1());
        if above * v1.magnitude() <= <T::Part as Real>::EPSILON * bound {
            return (row, column);
        }
        row -= 1;
    }
}

/// One step with one shift on rows `start..=end`.
fn sweep<T: Scalar>(
    h: &mut View<'_, T>,
    z: &mut View<'_, T>,
    start: usize,
    first: usize,
    end: usize,
    mut v: [T; 2],
) {
    let order = h.rows();
    for row in first..end {
        if row > first {
            v.copy_from_slice(h.part(row, row - 1, 2));
        }
        let (alpha, tail) = (v[0], &mut v[1..]);
        let (beta, tau) = reflector::make(alpha, tail);
        if row > first {
            h.set(row, row - 1, T::from_re(beta));
            h.set(row + 1, row - 1, T::ZERO);
        }
        let (v2, adjoint) = (v[1], tau.conjugate());
        for col in row..order {
            if let [a, b] = h.part(row, col, 2) {
                let sum = adjoint * (*a + v2.conjugate() * *b);
                *a -= sum;
                *b -= sum * v2;
            }
        }
        let last = (row + 2).min(end);
        two_columns(h.neighbors(row), last + 1, v2, tau);
        two_columns(z.neighbors(row), order, v2, tau);
        if row == first && first > start {
            // The step began in the middle: what it did to the element above is a phase, which is
            // moved on so that the subdiagonal stays real.
            let rest = T::ONE - tau;
            let length = rest.modulus();
            let phase = T::from_parts(rest.re() / length, rest.im() / length);
            restore_phase(h, z, first, end, phase);
        }
    }
}

fn two_columns<T: Scalar>(columns: [&mut [T]; 2], count: usize, v2: T, tau: T) {
    let [a, b] = columns;
    let back = v2.conjugate();
    for (a, b) in a[..count].iter_mut().zip(&mut b[..count]) {
        let sum = tau * (*a + v2 * *b);
        *a -= sum;
        *b -= sum * back;
    }
}

/// Gives the rows from `first` on, but the next one, a phase.
fn restore_phase<T: Scalar>(
    h: &mut View<'_, T>,
    z: &mut View<'_, T>,
    first: usize,
    end: usize,
    phase: T,
) {
    let order = h.rows();
    let back = phase.conjugate();
    let value = h.at(first + 1, first) * back;
    h.set(first + 1, first, value);
    if first + 2 <= end {
        let value = h.at(first + 2, first + 1) * phase;
        h.set(first + 2, first + 1, value);
    }
    for row in first..=end {
        if row == first + 1 {
            continue;
        }
        for col in row + 1..order {
            let value = h.at(row, col) * phase;
            h.set(row, col, value);
        }
        for above in 0..row {
            let value = h.at(above, row) * back;
            h.set(above, row, value);
        }
        z.col_mut(row)
            .iter_mut()
            .for_each(|element| *element *= back);
    }
}
