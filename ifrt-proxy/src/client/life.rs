//! Which arrays live, known without asking the server.
//!
//! A [`Cell`] stands for the buffer of one shard. Arrays that share a buffer share its cell, so that a
//! deletion or donation is seen by all of them at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ifrt::value::STRINGS_ON_DELETED;
use ifrt::{DType, Result, Status};

/// The buffer of one shard.
#[derive(Debug, Default)]
pub(super) struct Cell {
    is_dead: AtomicBool,
    is_shared: AtomicBool,
}

impl Cell {
    /// The same buffer for another array.
    pub(super) fn share(self: &Arc<Self>) -> Arc<Self> {
        self.is_shared.store(true, Ordering::Relaxed);
        Arc::clone(self)
    }
}

/// The buffers of an array: one per addressable shard, and at least one.
#[derive(Debug)]
pub(super) struct Cells {
    cells: Box<[Arc<Cell>]>,
    hold_strings: bool,
}

impl Cells {
    /// Buffers that no other array has.
    pub(super) fn fresh(addressable_shards: usize) -> Self {
        let cells = (0..addressable_shards.max(1)).map(|_| Arc::default());
        Self {
            cells: cells.collect(),
            hold_strings: false,
        }
    }

    /// These buffers.
    pub(super) fn of(cells: Vec<Arc<Cell>>) -> Self {
        if cells.is_empty() {
            return Self::fresh(0);
        }
        Self {
            cells: cells.into(),
            hold_strings: false,
        }
    }

    /// The same, for an array of this type. It decides how the error after deletion looks.
    pub(super) fn holding(self, dtype: DType) -> Self {
        Self {
            hold_strings: dtype == DType::String,
            ..self
        }
    }

    /// The error of an operation on the array after deletion or donation; `position` is its place
    /// among the arrays of the operation.
    pub(super) fn dead(&self, operation: &str, position: usize) -> Status {
        if self.hold_strings {
            return Status::failed_precondition(STRINGS_ON_DELETED);
        }
        let which = match position {
            0 => String::new(),
            position => format!(" (array {position})"),
        };
        Status::invalid_argument(format!(
            "{operation}() called on deleted or donated buffer{which}"
        ))
    }

    pub(super) fn get(&self, shard: usize) -> Option<&Arc<Cell>> {
        self.cells.get(shard)
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Arc<Cell>> {
        self.cells.iter()
    }

    /// An array without one of its shards is no array.
    pub(super) fn is_dead(&self) -> bool {
        self.iter().any(|cell| cell.is_dead.load(Ordering::Acquire))
    }

    /// True if no other array has one of the buffers.
    pub(super) fn are_owned(&self) -> bool {
        !self
            .iter()
            .any(|cell| cell.is_shared.load(Ordering::Relaxed))
    }

    /// Ends the buffers. False if all had ended before.
    pub(super) fn kill(&self) -> bool {
        let mut any = false;
        for cell in self.iter() {
            any |= !cell.is_dead.swap(true, Ordering::AcqRel);
        }
        any
    }
}

/// Makes sure that of two operations that donate a buffer one is refused.
#[derive(Debug, Default)]
pub(super) struct Donations(Mutex<()>);

/// A use of the buffers of an array, and whether they are donated.
pub(super) type Use<'a> = (&'a Cells, bool);

impl Donations {
    /// Checks that all arrays live and that nothing is donated that the operation uses twice.
    ///
    /// # Errors
    /// INVALID_ARGUMENT naming the first array that does not do.
    pub(super) fn check(&self, operation: &str, uses: &[Use<'_>]) -> Result<()> {
        for (position, (cells, _)) in uses.iter().enumerate() {
            if cells.is_dead() {
                return Err(cells.dead(operation, position));
            }
        }
        if !uses.iter().any(|(_, donated)| *donated) {
            return Ok(());
        }
        // Whether an earlier use, or this one, donates the buffer.
        let mut seen: HashMap<*const Cell, bool> = HashMap::new();
        for (position, (cells, donated)) in uses.iter().enumerate() {
            for cell in cells.iter() {
                let earlier = seen.insert(Arc::as_ptr(cell), *donated);
                if earlier.is_some_and(|earlier| earlier || *donated) {
                    return Err(Status::invalid_argument(format!(
                        "{operation}() was asked to donate a buffer that another of its arrays \
                         uses too (array {position})"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Donates what is to be donated, after the same checks; if one fails nothing is.
    ///
    /// # Errors
    /// INVALID_ARGUMENT naming the first array that does not do.
    pub(super) fn take(&self, operation: &str, uses: &[Use<'_>]) -> Result<()> {
        if !uses.iter().any(|(_, donated)| *donated) {
            return self.check(operation, uses);
        }
        let _guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        self.check(operation, uses)?;
        for (cells, _) in uses.iter().filter(|(_, donated)| *donated) {
            cells.kill();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ifrt::value::READY_ON_DELETED;

    use super::*;

    #[test]
    fn a_shard_takes_its_array_along() {
        let whole = Cells::fresh(2);
        let shard = Cells::of(vec![whole.get(1).unwrap().share()]);
        assert!(!whole.are_owned() && !shard.are_owned());
        assert!(shard.kill());
        assert!(whole.is_dead());
        assert!(whole.kill(), "the other buffer was alive");
        assert!(!whole.kill() && !shard.kill());
    }

    #[test]
    fn the_texts_after_deletion_are_those_of_the_contract() {
        let cells = Cells::fresh(1);
        let expected = Status::invalid_argument(READY_ON_DELETED);
        assert_eq!(cells.dead("GetReadyFuture", 0), expected);
        let strings = cells.holding(DType::String);
        let expected = Status::failed_precondition(STRINGS_ON_DELETED);
        assert_eq!(strings.dead("GetReadyFuture", 0), expected);
    }

    #[test]
    fn donations_are_all_or_nothing() {
        let donations = Donations::default();
        let (one, two) = (Cells::fresh(1), Cells::fresh(1));
        let alias = Cells::of(vec![one.get(0).unwrap().share()]);
        for uses in [
            [(&one, true), (&alias, false)],
            [(&alias, false), (&one, true)],
            [(&one, true), (&one, true)],
        ] {
            let error = donations.take("Execute", &uses).unwrap_err();
            assert!(error.message().contains("array 1"), "{error}");
            assert!(!one.is_dead());
        }
        assert_eq!(
            donations.take("Execute", &[(&one, false), (&one, false)]),
            Ok(())
        );
        assert_eq!(
            donations.take("Execute", &[(&two, true), (&one, false)]),
            Ok(())
        );
        assert!(two.is_dead() && !one.is_dead());
        let error = donations.take("Execute", &[(&one, true), (&two, false)]);
        assert!(error.unwrap_err().message().contains("array 1"));
        assert!(!alias.is_dead());
    }
}
