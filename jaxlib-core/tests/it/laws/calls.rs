//! What calls do with their arguments, over the fake and over the CPU plugin.

use ifrt::Status;
use ifrt::fake::fault::{Fault, Op, When};
use jaxlib_core::{Arg, Array, HostArray, HostRead, Kind};
use proptest::prelude::*;

use crate::model::ground::{CpuWorld, Dialect, Ground, Place};
use crate::support::{World, from_bytes, read};
use crate::witness::Event;

thread_local! {
    static ON_CPU: (&'static CpuWorld, Ground<'static>) = {
        let world: &CpuWorld = Box::leak(Box::new(CpuWorld::new()));
        (world, Ground::new(&world.stage, Dialect::StableHlo))
    };
}

fn on_cpu(check: impl FnOnce(&Ground<'_>)) {
    ON_CPU.with(|(world, ground)| {
        world.stage.witness.forget();
        check(ground);
        world.stage.drain();
        world.wait_until_empty();
    });
}

fn on_fake(check: impl FnOnce(&Ground<'_>)) {
    let world = World::new();
    check(&Ground::new(&world, Dialect::Fake));
    world.drain();
    assert_eq!(world.fake.live_buffers(), 0);
}

/// Why a call is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    DeadFirst,
    DeadSecond,
    DonatedTwice,
    DonatedAndUsed,
    TooFew,
    WrongShape,
    Elsewhere,
}

fn trouble() -> impl Strategy<Value = Trouble> {
    prop_oneof![
        Just(Trouble::DeadFirst),
        Just(Trouble::DeadSecond),
        Just(Trouble::DonatedTwice),
        Just(Trouble::DonatedAndUsed),
        Just(Trouble::TooFew),
        Just(Trouble::WrongShape),
        Just(Trouble::Elsewhere),
    ]
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![
        (0_usize..3).prop_map(Place::Single),
        Just(Place::Copies(2)),
        Just(Place::Split(4)),
    ]
}

fn pass(array: &Array, donate: bool) -> Arg<'_> {
    if donate {
        Arg::Donate(array)
    } else {
        Arg::Reference(array)
    }
}

fn refuse(ground: &Ground<'_>, place: Place, trouble: Trouble, donate: (bool, bool)) {
    let put = |values: &[f32], place: Place| ground.stage.put(values, place.sharding(ground.stage));
    let (x, y) = (put(&[1.0; 8], place), put(&[2.0; 8], place));
    let add = ground.add(place, 8, &x);
    let other = match trouble {
        Trouble::WrongShape => put(&[3.0; 4], place),
        _ => put(&[3.0; 8], Place::Single(7)),
    };
    let (first, second) = (pass(&x, donate.0), pass(&y, donate.1));
    ground.stage.witness.forget();
    let result = match trouble {
        Trouble::DeadFirst => {
            x.delete();
            add.execute(&[first, second])
        }
        Trouble::DeadSecond => {
            y.delete();
            add.execute(&[first, second])
        }
        Trouble::DonatedTwice => add.execute(&[Arg::Donate(&x), Arg::Donate(&x)]),
        Trouble::DonatedAndUsed => add.execute(&[pass(&x, donate.0), pass(&x, !donate.0)]),
        Trouble::TooFew => add.execute(&[first]),
        Trouble::WrongShape | Trouble::Elsewhere => add.execute(&[first, pass(&other, donate.1)]),
    };
    let error = result.map(drop).unwrap_err();
    let is_about_death = matches!(Kind::of(&error), Some(Kind::ArrayDeleted { .. }));
    let dead = match trouble {
        Trouble::DeadFirst => Some(&x),
        Trouble::DeadSecond => Some(&y),
        _ => None,
    };
    assert_eq!(is_about_death, dead.is_some(), "{error}");
    let events = ground.stage.witness.events();
    assert!(
        !events
            .iter()
            .any(|event| matches!(event, Event::Donated(_))),
        "{events:?}"
    );
    for (array, value) in [(&x, 1.0), (&y, 2.0), (&other, 3.0)] {
        if dead.is_some_and(|dead| std::ptr::eq(dead, array)) {
            continue;
        }
        assert!(!array.is_deleted());
        let values = read(array).unwrap();
        assert!(values.iter().all(|found| *found == value), "{values:?}");
    }
}

fn consume(ground: &Ground<'_>, place: Place, donate: &[(bool, bool)]) {
    let put = |value: f32| ground.stage.put(&[value; 8], place.sharding(ground.stage));
    let mut x = put(1.0);
    let mut expected = 1.0_f32;
    let add = ground.add(place, 8, &x);
    for (first, second) in donate {
        let y = put(1.0);
        let sum = add.execute(&[pass(&x, *first), pass(&y, *second)]);
        let sum = sum.unwrap().remove(0);
        // The program can make use of its first argument only.
        assert!(!y.is_deleted());
        assert_eq!(read(&y).unwrap(), [1.0; 8]);
        match x.is_deleted() {
            true => assert!(*first, "it was not donated"),
            false => {
                assert!(!*first || ground.dialect == Dialect::StableHlo);
                assert_eq!(read(&x).unwrap(), [expected; 8]);
            }
        }
        expected += 1.0;
        x = sum;
    }
    assert_eq!(read(&x).unwrap(), [expected; 8]);
}

/// What somebody does to an array whose contents the host holds.
#[derive(Clone, Copy, Debug)]
enum Deed {
    View,
    Read,
    Copy,
    Delete,
    Donate,
    Drop,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        Just(Deed::View),
        Just(Deed::Read),
        Just(Deed::Copy),
        Just(Deed::Delete),
        Just(Deed::Donate),
        Just(Deed::Drop),
    ]
}

fn hold(ground: &Ground<'_>, place: Place, deeds: &[Deed]) {
    let x = ground.stage.put(&[5.0; 8], place.sharding(ground.stage));
    let add = ground.add(place, 8, &x);
    let ones = ground.stage.put(&[1.0; 8], place.sharding(ground.stage));
    let mut array = Some(x);
    let mut views: Vec<HostArray> = Vec::new();
    let mut reads: Vec<HostRead> = Vec::new();
    for deed in deeds {
        let Some(x) = &array else {
            break;
        };
        match deed {
            Deed::View => views.extend(x.to_host()),
            Deed::Read => reads.extend(x.read()),
            Deed::Copy => assert_eq!(x.copy_to_host_async().is_err(), x.is_deleted()),
            Deed::Delete => {
                x.delete();
                assert!(x.is_deleted());
            }
            Deed::Donate => {
                let sum = add.execute(&[Arg::Donate(x), Arg::Reference(&ones)]);
                if let Ok(sum) = sum {
                    assert_eq!(read(&sum[0]).unwrap(), [6.0; 8]);
                }
            }
            Deed::Drop => array = None,
        }
        for view in &views {
            assert_eq!(from_bytes(view.bytes().unwrap()), [5.0; 8]);
        }
    }
    for read in reads {
        let host = read.wait().unwrap();
        assert_eq!(from_bytes(host.bytes().unwrap()), [5.0; 8]);
    }
    // The devices give their memory back while the host still looks at what was there.
    drop((array, ones));
    ground.stage.drain();
    for view in &views {
        assert_eq!(from_bytes(view.bytes().unwrap()), [5.0; 8]);
    }
}

proptest! {
    #[test]
    fn a_refused_call_changes_nothing(
        place in place(),
        trouble in trouble(),
        donate in any::<(bool, bool)>(),
    ) {
        let world = World::new();
        let runs = world.fake.faults().calls(Op::Execute);
        refuse(&Ground::new(&world, Dialect::Fake), place, trouble, donate);
        prop_assert_eq!(world.fake.faults().calls(Op::Execute), runs, "nothing has run");
    }

    #[test]
    fn a_refused_call_changes_nothing_on_the_plugin(
        place in place(),
        trouble in trouble(),
        donate in any::<(bool, bool)>(),
    ) {
        on_cpu(|ground| refuse(ground, place, trouble, donate));
    }

    #[test]
    fn a_call_that_the_runtime_refuses_gives_everything_back(
        place in place(),
        donate in any::<(bool, bool)>(),
        panics in any::<bool>(),
    ) {
        let world = World::new();
        let ground = Ground::new(&world, Dialect::Fake);
        let x = world.put(&[1.0; 8], place.sharding(&world));
        let y = world.put(&[2.0; 8], place.sharding(&world));
        let add = ground.add(place, 8, &x);
        let fault = if panics {
            Fault::Panic
        } else {
            Fault::Refuse(Status::resource_exhausted("no memory"))
        };
        world.fake.faults().add(Op::Execute, When::Once, fault);
        let call = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            add.execute(&[pass(&x, donate.0), pass(&y, donate.1)])
        }));
        prop_assert!(!matches!(call, Ok(Ok(_))));
        prop_assert_eq!(read(&x).unwrap(), [1.0; 8]);
        prop_assert_eq!(read(&y).unwrap(), [2.0; 8]);
        let sum = add.execute(&[pass(&x, donate.0), pass(&y, donate.1)]).unwrap().remove(0);
        prop_assert_eq!(read(&sum).unwrap(), [3.0; 8]);
    }

    #[test]
    fn only_what_is_donated_is_consumed(
        place in place(),
        donate in proptest::collection::vec(any::<(bool, bool)>(), 1..6),
    ) {
        on_fake(|ground| consume(ground, place, &donate));
    }

    #[test]
    fn only_what_is_donated_is_consumed_on_the_plugin(
        place in place(),
        donate in proptest::collection::vec(any::<(bool, bool)>(), 1..6),
    ) {
        on_cpu(|ground| consume(ground, place, &donate));
    }

    #[test]
    fn what_the_host_holds_stays(
        place in place(),
        deeds in proptest::collection::vec(deed(), 1..8),
    ) {
        on_fake(|ground| hold(ground, place, &deeds));
    }

    #[test]
    fn what_the_host_holds_stays_on_the_plugin(
        place in place(),
        deeds in proptest::collection::vec(deed(), 1..8),
    ) {
        on_cpu(|ground| hold(ground, place, &deeds));
    }
}
