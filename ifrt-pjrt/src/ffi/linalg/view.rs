//! [`View`]: a column-major block of somebody's memory.

use faer::{MatMut, MatRef};

use super::Triangle;
use super::scalar::{Real, Scalar};

/// A block of a column-major matrix.
#[derive(Debug)]
pub(crate) struct View<'a, T> {
    data: &'a mut [T],
    rows: usize,
    cols: usize,
    stride: usize,
}

impl<'a, T: Scalar> View<'a, T> {
    /// A whole matrix without gaps.
    pub(crate) fn new(data: &'a mut [T], rows: usize, cols: usize) -> Self {
        debug_assert_eq!(data.len(), rows * cols);
        Self {
            data,
            rows,
            cols,
            stride: rows,
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    pub(crate) fn at(&self, row: usize, col: usize) -> T {
        debug_assert!(row < self.rows && col < self.cols);
        self.data[row + col * self.stride]
    }

    pub(crate) fn set(&mut self, row: usize, col: usize, value: T) {
        debug_assert!(row < self.rows && col < self.cols);
        self.data[row + col * self.stride] = value;
    }

    pub(crate) fn col(&self, col: usize) -> &[T] {
        &self.data[col * self.stride..][..self.rows]
    }

    pub(crate) fn col_mut(&mut self, col: usize) -> &mut [T] {
        &mut self.data[col * self.stride..][..self.rows]
    }

    /// `N` neighboring columns.
    pub(crate) fn neighbors<const N: usize>(&mut self, col: usize) -> [&mut [T]; N] {
        debug_assert!(col + N <= self.cols);
        let (rows, stride) = (self.rows, self.stride.max(1));
        let mut chunks = self.data[col * stride..].chunks_mut(stride);
        std::array::from_fn(|_| match chunks.next() {
            Some(chunk) => &mut chunk[..rows],
            None => &mut [],
        })
    }

    /// Some elements of a column, one below the other.
    pub(crate) fn part(&mut self, row: usize, col: usize, count: usize) -> &mut [T] {
        &mut self.data[row + col * self.stride..][..count]
    }

    /// The block of `rows` by `cols` elements that begins at `row` and `col`.
    pub(crate) fn block(
        &mut self,
        row: usize,
        col: usize,
        rows: usize,
        cols: usize,
    ) -> View<'_, T> {
        debug_assert!(row + rows <= self.rows && col + cols <= self.cols);
        let data = if rows == 0 || cols == 0 {
            &mut []
        } else {
            let start = row + col * self.stride;
            &mut self.data[start..start + (cols - 1) * self.stride + rows]
        };
        View {
            data,
            rows,
            cols,
            stride: self.stride,
        }
    }

    /// Everything from `row` and `col` on.
    pub(crate) fn rest(&mut self, row: usize, col: usize) -> View<'_, T> {
        self.block(row, col, self.rows - row, self.cols - col)
    }

    /// The columns before `col`, and the others.
    pub(crate) fn split_at_col(&mut self, col: usize) -> (View<'_, T>, View<'_, T>) {
        let (rows, stride) = (self.rows, self.stride);
        let end = self.data.len().min(col * stride);
        let (left, right) = self.data.split_at_mut(end);
        (
            View {
                data: left,
                rows,
                cols: col,
                stride,
            },
            View {
                data: right,
                rows,
                cols: self.cols - col,
                stride,
            },
        )
    }

    /// Exchanges two rows.
    pub(crate) fn swap_rows(&mut self, one: usize, other: usize) {
        for col in 0..self.cols {
            self.data
                .swap(one + col * self.stride, other + col * self.stride);
        }
    }

    /// Exchanges two columns.
    pub(crate) fn swap_cols(&mut self, one: usize, other: usize) {
        for row in 0..self.rows {
            self.data
                .swap(row + one * self.stride, row + other * self.stride);
        }
    }

    pub(crate) fn fill(&mut self, value: T) {
        for col in 0..self.cols {
            self.col_mut(col).fill(value);
        }
    }

    pub(crate) fn fill_identity(&mut self) {
        self.fill(T::ZERO);
        for position in 0..self.rows.min(self.cols) {
            self.set(position, position, T::ONE);
        }
    }

    /// Multiplies every element by a real number.
    pub(crate) fn scale(&mut self, by: T::Part) {
        for col in 0..self.cols {
            for element in self.col_mut(col) {
                *element = element.scaled(by);
            }
        }
    }

    pub(crate) fn faer(&self) -> MatRef<'_, T> {
        MatRef::from_column_major_slice_with_stride(self.data, self.rows, self.cols, self.stride)
    }

    pub(crate) fn faer_mut(&mut self) -> MatMut<'_, T> {
        MatMut::from_column_major_slice_with_stride_mut(
            self.data,
            self.rows,
            self.cols,
            self.stride,
        )
    }

    /// True if no element is infinite or not a number.
    pub(crate) fn is_finite(&self) -> bool {
        (0..self.cols).all(|col| self.col(col).iter().all(|element| element.finite()))
    }

    /// The largest absolute value of a part of an element; 0 for an empty matrix.
    pub(crate) fn largest_part(&self) -> T::Part {
        let mut largest = <T::Part as Scalar>::ZERO;
        for col in 0..self.cols {
            for element in self.col(col) {
                largest = largest
                    .larger(element.re().magnitude())
                    .larger(element.im().magnitude());
            }
        }
        largest
    }

    /// Writes the conjugate of the `from` triangle over the other one.
    pub(crate) fn complete_hermitian(&mut self, from: Triangle) {
        for col in 0..self.cols {
            for row in col + 1..self.rows {
                match from {
                    Triangle::Lower => self.set(col, row, self.at(row, col).conjugate()),
                    Triangle::Upper => self.set(row, col, self.at(col, row).conjugate()),
                }
            }
        }
    }
}

/// An immutable view of a whole matrix without gaps, as `faer` takes it.
pub(crate) fn matrix<T: Scalar>(data: &[T], rows: usize, cols: usize) -> MatRef<'_, T> {
    MatRef::from_column_major_slice(data, rows, cols)
}
