//! [`FaultPlan`]: which call misbehaves how.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Fault, Op, When};
use crate::completion::{Completion, Promise};
use crate::status::{Result, Status};

/// Which call misbehaves how. A cheap clone of one plan; an empty plan has no faults.
///
/// The first rule that fits a call decides. Printing a plan shows its rules and the calls that were
/// struck last, which is all that a failing test needs to be repeated.
#[derive(Clone, Default)]
pub struct FaultPlan(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    calls: BTreeMap<Op, u64>,
    /// Results that wait for the next call of their operation.
    after_next: BTreeMap<Op, Vec<Promise>>,
    /// Promises that are never kept.
    never: Vec<Promise>,
    struck: VecDeque<String>,
}

/// The number of struck calls that a plan remembers.
const REMEMBERED: usize = 64;

enum Rule {
    One {
        op: Op,
        when: When,
        fault: Fault,
    },
    Scattered {
        seed: u64,
        percent: u64,
        ops: Vec<Op>,
        faults: Vec<Fault>,
    },
}

impl Rule {
    fn fault(&self, op: Op, number: u64) -> Option<&Fault> {
        match self {
            Self::One {
                op: own,
                when,
                fault,
            } => {
                let fits = *own == op && !matches!(when, When::Nth(nth) if *nth != number);
                fits.then_some(fault)
            }
            Self::Scattered {
                seed,
                percent,
                ops,
                faults,
            } => {
                let place = ops.iter().position(|one| *one == op)?;
                let place = u64::try_from(place).unwrap_or(u64::MAX);
                let random = mix(mix(seed ^ mix(place)) ^ number);
                if random % 100 >= *percent {
                    return None;
                }
                let choice = (random / 100).checked_rem(u64::try_from(faults.len()).ok()?)?;
                faults.get(usize::try_from(choice).ok()?)
            }
        }
    }
}

/// A well mixed number for each number (the finalizer of SplitMix64).
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl FaultPlan {
    /// A plan without faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule, after those that are there.
    pub fn add(&self, op: Op, when: When, fault: Fault) {
        self.lock().rules.push(Rule::One { op, when, fault });
    }

    /// Strikes about `percent` of the calls of `ops` with one of `faults`, chosen by `seed` and the
    /// number of the call alone, so that a run can be repeated.
    pub fn scatter(&self, seed: u64, percent: u8, ops: &[Op], faults: &[Fault]) {
        self.lock().rules.push(Rule::Scattered {
            seed,
            percent: u64::from(percent),
            ops: ops.to_vec(),
            faults: faults.to_vec(),
        });
    }

    /// Forgets all rules. What was held back stays so.
    pub fn clear(&self) {
        let rules = std::mem::take(&mut self.lock().rules);
        drop(rules);
    }

    /// The number of calls of an operation so far.
    pub fn calls(&self, op: Op) -> u64 {
        self.lock().calls.get(&op).copied().unwrap_or(0)
    }

    /// Decides about a call of `op`, for calls that can return an error.
    pub(in crate::fake) fn strike(&self, op: Op) -> Result<Strike> {
        let (strike, refused) = self.decide(op);
        match refused {
            Some(status) => Err(status),
            None => Ok(strike),
        }
    }

    /// Decides about a call of `op` that can only return a completion.
    pub(in crate::fake) fn strike_completion(&self, op: Op) -> Strike {
        let (mut strike, refused) = self.decide(op);
        if let Some(status) = refused {
            strike.permit = Completion::ready(Err(status));
        }
        strike
    }

    fn decide(&self, op: Op) -> (Strike, Option<Status>) {
        let (number, fault, before) = self.lock().next_call(op);
        let mut strike = Strike {
            permit: Completion::done(),
            before,
        };
        let Some(fault) = fault else {
            return (strike, None);
        };
        // Nothing below runs under the lock: gates run callbacks, and some faults do not return.
        match fault {
            Fault::Refuse(status) => return (strike, Some(status)),
            Fault::Fail(status) => strike.permit = Completion::ready(Err(status)),
            Fault::Slow(gate) => gate.hold(strike.pend()),
            Fault::Never => {
                let promise = strike.pend();
                self.lock().never.push(promise);
            }
            Fault::DropPromise => drop(strike.pend()),
            Fault::AfterNext => {
                let promise = strike.pend();
                self.lock().after_next.entry(op).or_default().push(promise);
            }
            Fault::Block(gate) => gate.block(),
            Fault::Panic => panic_as_planned(op, number),
        }
        (strike, None)
    }

    /// No user code runs under this lock, so a poisoned one still holds a consistent state.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[allow(clippy::panic, reason = "a panicking runtime is what was asked for")]
fn panic_as_planned(op: Op, number: u64) -> ! {
    panic!("the fault plan makes call {number} of {op} panic")
}

impl State {
    fn next_call(&mut self, op: Op) -> (u64, Option<Fault>, Vec<Promise>) {
        let calls = self.calls.entry(op).or_default();
        let number = *calls;
        *calls += 1;
        let before = self.after_next.remove(&op).unwrap_or_default();
        let found = self
            .rules
            .iter()
            .enumerate()
            .find_map(|(place, rule)| Some((place, rule.fault(op, number)?.clone())));
        let fault = found.map(|(place, fault)| {
            if let Some(Rule::One {
                when: When::Once, ..
            }) = self.rules.get(place)
            {
                self.rules.remove(place);
            }
            if self.struck.len() == REMEMBERED {
                self.struck.pop_front();
            }
            self.struck.push_back(format!("{op} {number}: {fault}"));
            fault
        });
        (number, fault, before)
    }
}

/// What was decided about one call. Kept until the call returns.
#[derive(Debug)]
pub(in crate::fake) struct Strike {
    permit: Completion,
    /// Results of earlier calls that come after the one of this call.
    before: Vec<Promise>,
}

impl Strike {
    /// Ready when the result of the call may come; an error takes its place.
    pub(in crate::fake) fn permit(&self) -> Completion {
        self.permit.clone()
    }

    fn pend(&mut self) -> Promise {
        let (promise, permit) = Completion::pair();
        self.permit = permit;
        promise
    }
}

impl Drop for Strike {
    fn drop(&mut self) {
        for promise in self.before.drain(..) {
            self.permit.on_ready(move |_| promise.set(Ok(())));
        }
    }
}

impl fmt::Display for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        writeln!(f, "faults:")?;
        for rule in &state.rules {
            match rule {
                Rule::One { op, when, fault } => writeln!(f, "  {op}, {when}: {fault}")?,
                Rule::Scattered {
                    seed,
                    percent,
                    ops,
                    faults,
                } => {
                    let ops: Vec<String> = ops.iter().map(ToString::to_string).collect();
                    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
                    writeln!(
                        f,
                        "  {}, {percent}% by seed {seed}: {}",
                        ops.join(" "),
                        faults.join(" or ")
                    )?;
                }
            }
        }
        writeln!(f, "struck last:")?;
        for call in &state.struck {
            writeln!(f, "  {call}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
