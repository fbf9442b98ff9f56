//! The real Schur form: quasi-triangular, with blocks of two for complex pairs. `hqr`, `lanv2`.

use super::super::one_based;
use super::super::reflector;
use super::super::scalar::Real;
use super::super::view::View;
use super::{ITERATIONS, PATIENCE};

/// Writes the Schur form over a matrix, its vectors into `q`, and its eigenvalues.
///
/// A block of two has equal diagonal elements and others of unlike sign. Gives 0, or the order of
/// the part that did not converge.
pub(crate) fn decompose<R: Real>(
    matrix: &mut View<'_, R>,
    q: &mut View<'_, R>,
    re: &mut [R],
    im: &mut [R],
) -> i32 {
    let order = matrix.rows();
    if !matrix.is_finite() {
        return one_based(order);
    }
    super::prepare(matrix, q);
    match iterate(matrix, q, re, im) {
        Ok(()) => 0,
        Err(end) => one_based(end),
    }
}

/// A pair of eigenvalues that the next step aims at.
#[derive(Clone, Copy)]
struct Shifts<R> {
    re: [R; 2],
    im: [R; 2],
}

/// Gives the position where the iteration got stuck.
fn iterate<R: Real>(
    h: &mut View<'_, R>,
    z: &mut View<'_, R>,
    re: &mut [R],
    im: &mut [R],
) -> Result<(), usize> {
    let order = h.rows();
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
                h.set(start, start - 1, R::ZERO);
            }
            if start + 1 >= end {
                converged = true;
                break;
            }
            stagnation += 1;
            let shifts = shifts(h, start, end, stagnation);
            let (first, v) = first_column(h, start, end, shifts);
            sweep(h, z, start, first, end, v);
        }
        if !converged {
            return Err(end);
        }
        if start == end {
            (re[end], im[end]) = (h.at(end, end), R::ZERO);
        } else {
            split_pair(h, z, end - 1, re, im);
        }
        remaining = start;
    }
    Ok(())
}

/// Where the block begins that ends at `end`: below a subdiagonal element that is negligible.
fn start_of_block<R: Real>(h: &View<'_, R>, low: usize, end: usize) -> usize {
    let order = h.rows();
    let tiny =
        R::SAFE_MIN * (R::of(f64::from(u32::try_from(order).unwrap_or(u32::MAX))) / R::EPSILON);
    let mut row = end;
    while row > low {
        let sub = h.at(row, row - 1).magnitude();
        if sub <= tiny {
            break;
        }
        let (above, here) = (h.at(row - 1, row - 1), h.at(row, row));
        let mut neighbors = above.magnitude() + here.magnitude();
        if neighbors == R::ZERO {
            if row >= 2 {
                neighbors += h.at(row - 1, row - 2).magnitude();
            }
            if row + 1 < order {
                neighbors += h.at(row + 1, row).magnitude();
            }
        }
        if sub <= R::EPSILON * neighbors {
            // The criterion of Ahues and Tisseur: the eigenvalues would hardly move.
            let over = h.at(row - 1, row).magnitude();
            let (larger, smaller) = (sub.larger(over), sub.smaller(over));
            let gap = (above - here).magnitude();
            let (big, small) = (here.magnitude().larger(gap), here.magnitude().smaller(gap));
            let sum = big + larger;
            if smaller * (larger / sum) <= tiny.larger(R::EPSILON * (small * (big / sum))) {
                break;
            }
        }
        row -= 1;
    }
    row
}

/// The eigenvalues of the last two rows, or numbers that break a cycle.
fn shifts<R: Real>(h: &View<'_, R>, start: usize, end: usize, stagnation: usize) -> Shifts<R> {
    let exceptional = |corner: R, size: R| {
        let h11 = R::of(0.75) * size + corner;
        [h11, R::of(-0.4375) * size, size, h11]
    };
    let [h11, h12, h21, h22] = if stagnation.is_multiple_of(2 * PATIENCE) {
        let size = h.at(end, end - 1).magnitude() + h.at(end - 1, end - 2).magnitude();
        exceptional(h.at(end, end), size)
    } else if stagnation.is_multiple_of(PATIENCE) {
        let size = h.at(start + 1, start).magnitude() + h.at(start + 2, start + 1).magnitude();
        exceptional(h.at(start, start), size)
    } else {
        let before = end - 1;
        [
            h.at(before, before),
            h.at(before, end),
            h.at(end, before),
            h.at(end, end),
        ]
    };
    let size = h11.magnitude() + h12.magnitude() + h21.magnitude() + h22.magnitude();
    if size == R::ZERO {
        return Shifts {
            re: [R::ZERO; 2],
            im: [R::ZERO; 2],
        };
    }
    let [h11, h12, h21, h22] = [h11 / size, h12 / size, h21 / size, h22 / size];
    let mean = (h11 + h22) / R::of(2.0);
    let determinant = (h11 - mean) * (h22 - mean) - h12 * h21;
    let root = determinant.magnitude().root();
    if determinant >= R::ZERO {
        let (re, im) = (mean * size, root * size);
        return Shifts {
            re: [re, re],
            im: [im, -im],
        };
    }
    let (one, other) = (mean + root, mean - root);
    let nearest = if (one - h22).magnitude() <= (other - h22).magnitude() {
        one
    } else {
        other
    };
    Shifts {
        re: [nearest * size; 2],
        im: [R::ZERO; 2],
    }
}

/// Where a step can begin because two subdiagonal elements are small, and the column it begins with.
fn first_column<R: Real>(
    h: &View<'_, R>,
    start: usize,
    end: usize,
    shifts: Shifts<R>,
) -> (usize, [R; 3]) {
    let ([re1, re2], [im1, im2]) = (shifts.re, shifts.im);
    let mut row = end - 2;
    loop {
        let (h00, h11) = (h.at(row, row), h.at(row + 1, row + 1));
        let sub = h.at(row + 1, row);
        let size = (h00 - re2).magnitude() + im2.magnitude() + sub.magnitude();
        let scaled = sub / size;
        let mut v = [
            scaled * h.at(row, row + 1) + (h00 - re1) * ((h00 - re2) / size) - im1 * (im2 / size),
            scaled * (h00 + h11 - re1 - re2),
            scaled * h.at(row + 2, row + 1),
        ];
        let sum = v[0].magnitude() + v[1].magnitude() + v[2].magnitude();
        v.iter_mut().for_each(|element| *element /= sum);
        if row == start {
            return (row, v);
        }
        let diagonal = h.at(row - 1, row - 1).magnitude() + h00.magnitude() + h11.magnitude();
        let coupling = h.at(row, row - 1).magnitude() * (v[1].magnitude() + v[2].magnitude());
        if coupling <= R::EPSILON * v[0].magnitude() * diagonal {
            return (row, v);
        }
        row -= 1;
    }
}

/// One step with two shifts on rows `start..=end`: a bulge is chased from `first` to the end.
fn sweep<R: Real>(
    h: &mut View<'_, R>,
    z: &mut View<'_, R>,
    start: usize,
    first: usize,
    end: usize,
    mut v: [R; 3],
) {
    let order = h.rows();
    for row in first..end {
        let count = 3.min(end - row + 1);
        if row > first {
            v = [R::ZERO; 3];
            v[..count].copy_from_slice(h.part(row, row - 1, count));
        }
        let (alpha, tail) = (v[0], &mut v[1..count]);
        let (beta, tau) = reflector::make(alpha, tail);
        if row > first {
            let column = h.part(row, row - 1, count);
            column.fill(R::ZERO);
            column[0] = beta;
        } else if row > start {
            // Not `-beta`: the element may have underflowed into `v`.
            let above = h.at(row, row - 1) * (R::ONE - tau);
            h.set(row, row - 1, above);
        }
        if count == 3 {
            let (v2, v3) = (v[1], v[2]);
            let (t1, t2, t3) = (tau, tau * v2, tau * v3);
            for col in row..order {
                if let [a, b, c] = h.part(row, col, 3) {
                    let sum = *a + v2 * *b + v3 * *c;
                    *a -= sum * t1;
                    *b -= sum * t2;
                    *c -= sum * t3;
                }
            }
            let last = (row + 3).min(end);
            three_columns(h.neighbors(row), last + 1, v2, v3, tau);
            three_columns(z.neighbors(row), order, v2, v3, tau);
        } else {
            let v2 = v[1];
            let (t1, t2) = (tau, tau * v2);
            for col in row..order {
                if let [a, b] = h.part(row, col, 2) {
                    let sum = *a + v2 * *b;
                    *a -= sum * t1;
                    *b -= sum * t2;
                }
            }
            two_columns(h.neighbors(row), end + 1, v2, tau);
            two_columns(z.neighbors(row), order, v2, tau);
        }
    }
}

fn three_columns<R: Real>(columns: [&mut [R]; 3], count: usize, v2: R, v3: R, tau: R) {
    let [a, b, c] = columns;
    let (t1, t2, t3) = (tau, tau * v2, tau * v3);
    for ((a, b), c) in a[..count]
        .iter_mut()
        .zip(&mut b[..count])
        .zip(&mut c[..count])
    {
        let sum = *a + v2 * *b + v3 * *c;
        *a -= sum * t1;
        *b -= sum * t2;
        *c -= sum * t3;
    }
}

fn two_columns<R: Real>(columns: [&mut [R]; 2], count: usize, v2: R, tau: R) {
    let [a, b] = columns;
    let (t1, t2) = (tau, tau * v2);
    for (a, b) in a[..count].iter_mut().zip(&mut b[..count]) {
        let sum = *a + v2 * *b;
        *a -= sum * t1;
        *b -= sum * t2;
    }
}

/// Brings the block of two at `row` into its standard form, or splits it.
fn split_pair<R: Real>(
    h: &mut View<'_, R>,
    z: &mut View<'_, R>,
    row: usize,
    re: &mut [R],
    im: &mut [R],
) {
    let order = h.rows();
    let next = row + 1;
    let block = [
        h.at(row, row),
        h.at(row, next),
        h.at(next, row),
        h.at(next, next),
    ];
    let ([a, b, c, d], cs, sn) = standard_form(block);
    for (row, col, value) in [
        (row, row, a),
        (row, next, b),
        (next, row, c),
        (next, next, d),
    ] {
        h.set(row, col, value);
    }
    (re[row], re[next]) = (a, d);
    let imaginary = if c == R::ZERO {
        R::ZERO
    } else {
        b.magnitude().root() * c.magnitude().root()
    };
    (im[row], im[next]) = (imaginary, -imaginary);
    for col in next + 1..order {
        if let [x, y] = h.part(row, col, 2) {
            (*x, *y) = (cs * *x + sn * *y, cs * *y - sn * *x);
        }
    }
    let rotate = |[x, y]: [&mut [R]; 2], count: usize| {
        for (x, y) in x[..count].iter_mut().zip(&mut y[..count]) {
            (*x, *y) = (cs * *x + sn * *y, cs * *y - sn * *x);
        }
    };
    rotate(h.neighbors(row), row);
    rotate(z.neighbors(row), order);
}

/// The rotation, as cosine and sine, that gives a block `[a, b, c, d]` its standard form.
///
/// That is upper triangular for real eigenvalues, else with `a = d` and `b c < 0`.
fn standard_form<R: Real>([a, b, c, d]: [R; 4]) -> ([R; 4], R, R) {
    let (zero, one, half) = (R::ZERO, R::ONE, R::of(0.5));
    let unlike = |x: R, y: R| (x < zero) != (y < zero);
    if c == zero {
        return ([a, b, c, d], one, zero);
    }
    if b == zero {
        return ([d, -c, zero, a], zero, one);
    }
    if a - d == zero && unlike(b, c) {
        return ([a, b, c, d], one, zero);
    }
    let difference = a - d;
    let p = half * difference;
    let larger = b.magnitude().larger(c.magnitude());
    let smaller = b.magnitude().smaller(c.magnitude()) * one.with_sign_of(b) * one.with_sign_of(c);
    let size = p.magnitude().larger(larger);
    let discriminant = (p / size) * p + (larger / size) * smaller;
    if discriminant >= R::of(4.0) * R::EPSILON {
        // Two real eigenvalues that are apart.
        let shift = p + (size.root() * discriminant.root()).with_sign_of(p);
        let length = c.hypotenuse(shift);
        let (cs, sn) = (shift / length, c / length);
        return (
            [d + shift, b - c, zero, d - (larger / shift) * smaller],
            cs,
            sn,
        );
    }
    // A complex pair, or real ones that are almost equal: first equal diagonal elements.
    let (mut sigma, mut difference) = (b + c, difference);
    let limit = one / (R::SAFE_MIN.root() / R::EPSILON);
    let size = difference.magnitude().larger(sigma.magnitude());
    if size > limit {
        (sigma, difference) = (sigma / size, difference / size);
    } else if size < one / limit && size > zero {
        (sigma, difference) = (sigma * limit, difference * limit);
    }
    let p = half * difference;
    let length = sigma.hypotenuse(difference);
    let mut cs = (half * (one + sigma.magnitude() / length)).root();
    let mut sn = -(p / (length * cs)) * one.with_sign_of(sigma);
    let (aa, bb) = (a * cs + b * sn, b * cs - a * sn);
    let (cc, dd) = (c * cs + d * sn, d * cs - c * sn);
    let (a, mut b) = (aa * cs + cc * sn, bb * cs + dd * sn);
    let (mut c, d) = (cc * cs - aa * sn, dd * cs - bb * sn);
    let mean = half * (a + d);
    let (mut a, mut d) = (mean, mean);
    if c != zero {
        if b == zero {
            (b, c) = (-c, zero);
            (cs, sn) = (-sn, cs);
        } else if !unlike(b, c) {
            // Real after all.
            let (root_b, root_c) = (b.magnitude().root(), c.magnitude().root());
            let shift = (root_b * root_c).with_sign_of(c);
            let inverse = one / (b + c).magnitude().root();
            (a, d) = (mean + shift, mean - shift);
            (b, c) = (b - c, zero);
            let (cs1, sn1) = (root_b * inverse, root_c * inverse);
            (cs, sn) = (cs * cs1 - sn * sn1, cs * sn1 + sn * cs1);
        }
    }
    ([a, b, c, d], cs, sn)
}
