//! Each test uses ids of its own, because the registry belongs to the process and tests run at
//! once. Those that count references also take turns, since whoever lists the registry holds
//! everything in it for a moment.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use ifrt::proto::tensorflow::StatusProto;
use ifrt::serdes::{status_from_proto, status_to_proto};
use ifrt::user_context::{
    AnnotatedUserContext, BasicUserContext, ChainedUserContext, FusedUserContext,
    USER_CONTEXT_PAYLOAD, attach_id, attach_ref, current, expand, lookup, lookup_all,
    reattach_refs, register, register_expander, scope, with_current_user_context,
    with_current_user_context_once, with_user_context, with_user_context_once,
};
use ifrt::{Code, Status, UserContext, UserContextRef};
use prost::Message;

#[derive(Debug)]
struct TestUserContext(u64);

impl UserContext for TestUserContext {
    fn id(&self) -> u64 {
        self.0
    }

    fn debug_string(&self) -> String {
        format!("TestUserContext({})", self.0)
    }
}

/// Keeps other tests from listing the registry.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn context(id: u64) -> UserContextRef {
    Arc::new(TestUserContext(id))
}

fn current_id() -> Option<u64> {
    current().map(|context| context.id())
}

fn payload(status: &Status) -> Option<&[u8]> {
    status.payload(USER_CONTEXT_PAYLOAD).map(|bytes| &bytes[..])
}

#[test]
fn uc_01_basic() {
    let basic = BasicUserContext::create("a message");
    assert_eq!(basic.debug_string(), "a message");
    assert_ne!(basic.id(), BasicUserContext::create("a message").id());
}

#[test]
fn uc_02_annotated() {
    let after = |context| AnnotatedUserContext::after(context, "; test annotation");
    let before = AnnotatedUserContext::before("test annotation: ", Some(context(200)));
    let first = after(Some(context(100)));
    let ids = [
        first.id(),
        after(Some(context(100))).id(),
        after(None).id(),
        before.id(),
        100,
        200,
    ];
    for (i, id) in ids.iter().enumerate() {
        assert!(!ids[..i].contains(id), "{ids:?}");
    }
    assert_eq!(
        first.debug_string(),
        "TestUserContext(100); test annotation"
    );
    assert_eq!(
        before.debug_string(),
        "test annotation: TestUserContext(200)"
    );
    assert_eq!(
        after(None).debug_string(),
        "(nullptr user context); test annotation"
    );
}

#[test]
fn uc_03_chained() {
    let chained = ChainedUserContext::create([Some(context(100)), None, Some(context(200))]);
    assert!(![100, 200].contains(&chained.id()));
    assert_eq!(
        chained.debug_string(),
        "TestUserContext(100)\n\n ->\n\n(nullptr user context)\n\n ->\n\nTestUserContext(200)"
    );
}

#[test]
fn uc_04_fused() {
    let fused = FusedUserContext::create([Some(context(100)), None, Some(context(200))]);
    assert!(![100, 200].contains(&fused.id()));
    assert_eq!(
        fused.debug_string(),
        "Fused user context: {\n\nTestUserContext(100)\n\n(nullptr user context)\n\n\
         TestUserContext(200)\n\n}"
    );
}

#[test]
fn uc_05_to_uc_07_scopes() {
    assert_eq!(current_id(), None);
    {
        let _outer = scope(Some(context(100)));
        assert_eq!(current_id(), Some(100));
        {
            let _inner = scope(Some(context(200)));
            assert_eq!(current_id(), Some(200));
            let _none = scope(None);
            assert_eq!(current_id(), None);
        }
        assert_eq!(current_id(), Some(100));
    }
    assert_eq!(current_id(), None);
}

#[test]
fn uc_08_scopes_of_threads_do_not_mix() {
    let _own = scope(Some(context(1)));
    thread::scope(|threads| {
        for group in [100, 200] {
            for _ in 0..10 {
                threads.spawn(move || {
                    assert_eq!(current_id(), None);
                    let _scope = scope(Some(context(group)));
                    assert_eq!(current_id(), Some(group));
                });
            }
        }
    });
    assert_eq!(current_id(), Some(1));
}

#[test]
fn uc_10_to_uc_12_the_registry_knows_what_is_held() {
    let _turn = turn();
    let (one, two) = (register(context(1001)), register(context(1002)));
    assert!(Arc::ptr_eq(&lookup(1001).unwrap(), &one));
    assert!(Arc::ptr_eq(&lookup(1002).unwrap(), &two));
    assert_eq!(one.user_context().debug_string(), "TestUserContext(1001)");
    // Another context of the same id does not replace the first.
    assert!(Arc::ptr_eq(&register(context(1001)), &one));
    let live = || {
        let ids = lookup_all()
            .into_iter()
            .map(|tracked| tracked.user_context().id());
        ids.filter(|id| (1001..=1002).contains(id))
            .collect::<Vec<u64>>()
    };
    assert_eq!(live(), [1001, 1002]);
    drop(one);
    assert!(lookup(1001).is_none());
    assert_eq!(live(), [1002]);
    drop(two);
    assert_eq!(live(), [0; 0]);
}

#[test]
fn uc_13_the_registry_under_contention() {
    let _turn = turn();
    const ID: u64 = 1301;
    thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                for _ in 0..100_000 {
                    let tracked = register(context(ID));
                    assert_eq!(tracked.user_context().id(), ID);
                    // Held here, so it is known.
                    assert!(Arc::ptr_eq(&lookup(ID).unwrap(), &tracked));
                    let all = lookup_all();
                    assert!(all.iter().any(|one| Arc::ptr_eq(one, &tracked)));
                }
            });
        }
    });
    assert!(lookup(ID).is_none());
}

#[test]
fn uc_14_and_uc_15_ids_on_errors() {
    let status = attach_id(Status::internal("test"), 100);
    assert_eq!(status.code(), Code::Internal);
    assert_eq!(status.message(), "test");
    assert_eq!(payload(&status), Some(&b"100"[..]));
    assert_eq!(payload(&attach_id(status, 200)), Some(&b"200"[..]));
}

#[test]
fn uc_17_and_uc_18_errors_keep_their_context() {
    let _turn = turn();
    let (one, two) = (register(context(1701)), register(context(1702)));
    let uses = || (Arc::strong_count(&one), Arc::strong_count(&two));
    assert_eq!(uses(), (1, 1));
    let status = attach_ref(Status::internal("test"), context(1701));
    assert_eq!(payload(&status), Some(&b"1701"[..]));
    assert_eq!(uses(), (2, 1));
    let status = attach_ref(status, context(1702));
    assert_eq!(payload(&status), Some(&b"1702"[..]));
    assert_eq!(uses(), (1, 2));
    let copy = status.clone();
    drop(status);
    assert_eq!(uses(), (1, 2));
    drop(copy);
    assert_eq!(uses(), (1, 1));
}

#[test]
fn uc_20_and_uc_21_ids_find_their_context_again() {
    let _turn = turn();
    let status = attach_id(Status::internal("test"), 2001);
    let status = reattach_refs(status);
    assert_eq!(payload(&status), Some(&b"2001"[..]));
    let tracked = register(context(2001));
    let status = reattach_refs(status);
    assert_eq!(Arc::strong_count(&tracked), 2);
    let status = reattach_refs(status);
    assert_eq!(Arc::strong_count(&tracked), 2);
    assert_eq!(payload(&status), Some(&b"2001"[..]));
    // What carries no id, or none that can be read, stays as it is.
    let plain = Status::internal("test");
    assert_eq!(reattach_refs(plain.clone()), plain);
    let odd = plain.with_payload(USER_CONTEXT_PAYLOAD, "odd");
    assert_eq!(reattach_refs(odd.clone()), odd);
}

#[test]
fn uc_23_contexts_become_text() {
    let _turn = turn();
    let status = attach_id(Status::internal("test"), 2301);
    let lost = expand(status.clone());
    assert_eq!(
        lost.message(),
        "test\n\t\n(failed to find a user context for ID: 2301)"
    );
    assert_eq!((lost.code(), payload(&lost)), (Code::Internal, None));
    let tracked = register(context(2301));
    let status = reattach_refs(status);
    drop(tracked);
    let found = expand(status);
    assert_eq!(found.message(), "test\n\t\nTestUserContext(2301)");
    assert_eq!(payload(&found), None);
    let odd = Status::internal("test").with_payload(USER_CONTEXT_PAYLOAD, "odd");
    assert_eq!(
        expand(odd).message(),
        "test\n\t\n(failed to parse a user context ID: odd)"
    );
    let plain = Status::internal("test");
    assert_eq!(expand(plain.clone()), plain);
}

#[test]
fn uc_24_ids_survive_the_wire_and_references_do_not() {
    let _turn = turn();
    let status = attach_ref(Status::internal("test"), context(2401));
    let over_the_wire = |status: &Status| {
        let bytes = status_to_proto(status).encode_to_vec();
        status_from_proto(&StatusProto::decode(&bytes[..]).unwrap()).unwrap()
    };
    let arrived = over_the_wire(&status);
    drop(status);
    assert_eq!(payload(&arrived), Some(&b"2401"[..]));
    assert_eq!(
        expand(arrived.clone()).message(),
        "test\n\t\n(failed to find a user context for ID: 2401)"
    );
    let _live = register(context(2401));
    let arrived = reattach_refs(arrived);
    assert_eq!(expand(arrived).message(), "test\n\t\nTestUserContext(2401)");
}

#[test]
fn uc_25_callbacks_run_in_their_context() {
    let see = |_: i32| current_id();
    let (many, once);
    {
        let _scope = scope(Some(context(100)));
        many = with_current_user_context(see);
        once = with_current_user_context_once(see);
    }
    assert_eq!(current_id(), None);
    assert_eq!([many.clone()(1), many(2), once(3)], [Some(100); 3]);
    let many = with_user_context(Some(context(200)), see);
    let once = with_user_context_once(Some(context(200)), see);
    assert_eq!([many.clone()(1), many(2), once(3)], [Some(200); 3]);
    let _scope = scope(Some(context(100)));
    assert_eq!(with_user_context(None, see)(1), None);
    assert_eq!(current_id(), Some(100));
}

#[test]
fn expanders_run_in_order() {
    const PAYLOAD: &str = "ifrt.test.expanders";
    let order = Arc::new(Mutex::new(Vec::new()));
    for position in [Some(-2), Some(3), None] {
        let order = Arc::clone(&order);
        let expander = move |status: Status| {
            if status.payload(PAYLOAD).is_some() {
                let has_context = payload(&status).is_some();
                order.lock().unwrap().push((position, has_context));
            }
            status
        };
        register_expander(PAYLOAD, position, Arc::new(expander)).unwrap();
    }
    let status = Status::internal("test").with_payload(PAYLOAD, "");
    let status = expand(attach_id(status, 2501));
    assert!(status.message().ends_with("ID: 2501)"));
    // That of user contexts has the order −1.
    assert_eq!(
        *order.lock().unwrap(),
        [(Some(-2), true), (Some(3), false), (None, false)]
    );
    for (name, order) in [(PAYLOAD, Some(3)), (USER_CONTEXT_PAYLOAD, Some(-1))] {
        let again = register_expander(name, order, Arc::new(|status| status));
        assert_eq!(again.unwrap_err().code(), Code::AlreadyExists);
    }
}

/// Calls what other code calls while it is dropped, for example with the last executable of a thread.
struct CallsWhenDropped;

impl Drop for CallsWhenDropped {
    fn drop(&mut self) {
        let _scope = scope(current());
        DROPPED.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

static DROPPED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

#[test]
fn calls_of_a_thread_that_ends() {
    thread_local! {
        static BEFORE: CallsWhenDropped = const { CallsWhenDropped };
        static AFTER: CallsWhenDropped = const { CallsWhenDropped };
    }
    let ended = thread::spawn(|| {
        // Whatever the order in which these are dropped, one of them outlives the contexts.
        BEFORE.with(|_| ());
        drop(scope(None));
        AFTER.with(|_| ());
    });
    ended.join().unwrap();
    assert_eq!(DROPPED.load(std::sync::atomic::Ordering::Relaxed), 2);
}
