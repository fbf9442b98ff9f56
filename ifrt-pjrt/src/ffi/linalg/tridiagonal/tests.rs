//! Solutions against their systems, singular ones too.

use super::super::testing::*;
use super::*;
use faer::Mat;

for_each_type! {
    solutions_solve_their_systems;
    singular_systems_are_named_or_perturbed;
    numbers_that_are_none_pass_through;
}

fn whole<T: Scalar>(below: &[T], diagonal: &[T], above: &[T]) -> Mat<T> {
    let order = diagonal.len();
    Mat::from_fn(order, order, |row, col| match (row, col) {
        (row, col) if row == col => diagonal[row],
        (row, col) if row == col + 1 => below[col],
        (row, col) if row + 1 == col => above[row],
        _ => T::ZERO,
    })
}

fn solutions_solve_their_systems<T: Scalar>() {
    for order in [1, 2, 3, 4, 10, 33] {
        for (cols, dominant) in [(0, true), (1, true), (4, false)] {
            let mut random = Random(81);
            let (below, above) = (
                random.matrix::<T>(order - 1, 1),
                random.matrix::<T>(order - 1, 1),
            );
            let mut main = random.matrix::<T>(order, 1);
            if dominant {
                main.iter_mut()
                    .for_each(|e| *e += T::from_re(<T::Part as Real>::of(4.0)));
            }
            let matrix = whole(&below, &main, &above);
            let b = random.matrix::<T>(order, cols);
            let mut x = b.clone();
            let info = solve(
                &mut below.clone(),
                &mut main.clone(),
                &mut above.clone(),
                &mut View::new(&mut x, order, cols),
            );
            assert_eq!(info, 0);
            let mut y = b.clone();
            let (mut long_below, mut long_above) = (vec![poisons::<T>()[0]], above.clone());
            long_below.extend(&below);
            long_above.push(poisons::<T>()[0]);
            solve_perturbed(
                &long_below,
                &main,
                &long_above,
                &mut View::new(&mut y, order, cols),
            );
            for x in [&x, &y] {
                let x = mat(x, order, cols);
                let product = times(matrix.as_ref(), x.as_ref());
                let size = (0..cols)
                    .flat_map(|col| (0..order).map(move |row| (row, col)))
                    .fold(1.0, |size, at| f64::max(size, to_f64(x[at].modulus())));
                let scale = T::from_re(<T::Part as Real>::of(1.0 / size));
                let scaled = |a: &Mat<T>| {
                    Mat::from_fn(order, cols + 1, |row, col| match col {
                        0 => T::ONE,
                        col => a[(row, col - 1)] * scale,
                    })
                };
                let expected = scaled(&mat(&b, order, cols));
                assert_close(scaled(&product).as_ref(), expected.as_ref(), "T X");
            }
        }
    }
}

fn singular_systems_are_named_or_perturbed<T: Scalar>() {
    for (position, mut main) in [
        (0, [T::ZERO, T::ONE, T::ONE]),
        (1, [T::ONE, T::ZERO, T::ONE]),
        (2, [T::ONE, T::ONE, T::ZERO]),
    ] {
        let (mut below, mut above) = ([T::ZERO; 2], [T::ZERO; 2]);
        let original = main;
        let mut x = [T::ONE; 3];
        let mut view = View::new(&mut x, 3, 1);
        assert_eq!(
            solve(&mut below, &mut main, &mut above, &mut view),
            one_based(position)
        );
        let mut x = [T::ONE; 3];
        let zeros = [T::ZERO; 3];
        solve_perturbed(&zeros, &original, &zeros, &mut View::new(&mut x, 3, 1));
        assert!(x.iter().all(|element| element.finite()), "{x:?}");
        assert!(to_f64(x[position].modulus()) > 1e6);
    }
    let mut x = [T::ONE];
    solve_perturbed(
        &[T::ZERO],
        &[T::ZERO],
        &[T::ZERO],
        &mut View::new(&mut x, 1, 1),
    );
    assert!(x[0].finite() && to_f64(x[0].modulus()) > 1e30);
}

fn numbers_that_are_none_pass_through<T: Scalar>() {
    for poison in poisons::<T>() {
        for position in 0..4 {
            let mut parts = [[T::ONE; 4], [T::ONE; 4], [T::ONE; 4], [T::ONE; 4]];
            parts[position][1] = poison;
            let [below, main, above, b] = parts;
            let mut x = b;
            solve_perturbed(&below, &main, &above, &mut View::new(&mut x, 4, 1));
            let ([mut below, mut main, mut above], mut b) = ([below, main, above], b);
            let mut view = View::new(&mut b, 4, 1);
            solve(&mut below[..3], &mut main, &mut above[..3], &mut view);
        }
    }
}
