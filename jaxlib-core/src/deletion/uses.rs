//! [`Uses`]: the buffers of one call, taken all together or not at all.

use std::collections::HashMap;

use ifrt::{ArrayRef, Status};

use super::buffer_set::BufferSet;
use super::cell::{Begin, Cell, DeadReason};
use crate::messages;

/// What a call does with an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Reference,
    Donate,
}

/// The argument with this position is dead, for this reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeadArgument(pub(crate) usize, pub(crate) DeadReason);

/// The buffers of one call. Until this is dropped no deletion reaches the runtime, and nobody else
/// can have the donated ones.
///
/// Dropped without [`Uses::finish`] it gives everything back as it was.
#[derive(Debug)]
pub(crate) struct Uses<'a> {
    args: Vec<Use<'a>>,
}

#[derive(Debug)]
struct Use<'a> {
    set: &'a BufferSet,
    /// What the call does in the end; a donation that cannot be is a reference.
    mode: Mode,
    /// The cells taken so far.
    taken: usize,
}

impl<'a> Uses<'a> {
    /// Takes the buffers of all arguments, which [`Uses::check`] has found to be compatible.
    ///
    /// A donated buffer that another thread is just enqueueing an operation with is taken by
    /// reference instead, as the runtime would do: donation is a permission, not a duty.
    pub(crate) fn begin(args: &[(&'a BufferSet, Mode)]) -> Result<Self, DeadArgument> {
        let mut uses = Self {
            args: Vec::with_capacity(args.len()),
        };
        for (position, (set, mode)) in args.iter().enumerate() {
            uses.args.push(Use {
                set,
                mode: *mode,
                taken: 0,
            });
            if let Some(one) = uses.args.last_mut() {
                one.take()
                    .map_err(|reason| DeadArgument(position, reason))?;
            }
        }
        Ok(uses)
    }

    /// Finds a buffer that is donated and stands elsewhere in the same call as well, under whatever
    /// alias. The runtime would find it too, but some have hung or crashed instead.
    pub(crate) fn check(args: &[(&'a BufferSet, Mode)]) -> Result<(), Status> {
        let partitions = args.iter().map(|(set, _)| set.cells().len()).max();
        for partition in 0..partitions.unwrap_or(0) {
            let mut seen: HashMap<*const Cell, (usize, Mode)> = HashMap::new();
            for (position, (set, mode)) in args.iter().enumerate() {
                let Some(cell) = set.cells().get(partition) else {
                    continue;
                };
                let Some((first, first_mode)) = seen.get(&std::ptr::from_ref(cell)).copied() else {
                    seen.insert(std::ptr::from_ref(cell), (position, *mode));
                    continue;
                };
                let text = match (first_mode, *mode) {
                    (Mode::Reference, Mode::Reference) => continue,
                    (Mode::Donate, Mode::Donate) => messages::donated_twice,
                    (Mode::Reference, Mode::Donate) => messages::donated_after_use,
                    (Mode::Donate, Mode::Reference) => messages::used_after_donation,
                };
                return Err(text(position, partition, first));
            }
        }
        Ok(())
    }

    /// The handles of the arguments, in order.
    pub(crate) fn handles(&self) -> Result<Vec<ArrayRef>, DeadArgument> {
        let handle = |(position, one): (usize, &Use<'_>)| {
            one.set.handle().ok_or_else(|| {
                DeadArgument(position, one.set.dead().unwrap_or(DeadReason::Deleted))
            })
        };
        self.args.iter().enumerate().map(handle).collect()
    }

    /// True if the call may consume this argument.
    pub(crate) fn is_donated(&self, position: usize) -> bool {
        self.args
            .get(position)
            .is_some_and(|one| one.mode == Mode::Donate)
    }

    /// Ends the call. What the runtime has consumed is donated from now on; the rest is as before.
    pub(crate) fn finish(mut self, handles: &[ArrayRef]) {
        for (one, handle) in self.args.iter_mut().zip(handles) {
            if one.mode == Mode::Donate && one.set.runtime_says_deleted(handle) {
                one.give_back(true);
                one.set.release();
            }
        }
    }
}

impl Use<'_> {
    fn take(&mut self) -> Result<(), DeadReason> {
        if self.mode == Mode::Donate && !self.begin_donation()? {
            self.give_back(false);
            self.mode = Mode::Reference;
        }
        if self.mode == Mode::Reference {
            for cell in self.set.cells().iter() {
                cell.pin()?;
                self.taken += 1;
            }
        }
        Ok(())
    }

    /// False if a cell is busy.
    fn begin_donation(&mut self) -> Result<bool, DeadReason> {
        for cell in self.set.cells().iter() {
            match cell.begin_donation() {
                Begin::Begun => self.taken += 1,
                Begin::Busy => return Ok(false),
                Begin::Dead(reason) => return Err(reason),
            }
        }
        Ok(true)
    }

    fn give_back(&mut self, consumed: bool) {
        let cells = self.set.cells().iter().take(self.taken);
        match self.mode {
            Mode::Reference => cells.for_each(Cell::unpin),
            Mode::Donate => cells.for_each(|cell| cell.end_donation(consumed)),
        }
        self.taken = 0;
    }
}

impl Drop for Uses<'_> {
    fn drop(&mut self) {
        for one in &mut self.args {
            one.give_back(false);
        }
    }
}
