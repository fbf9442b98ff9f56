//! Arrays inside of other people's executors, which this crate does not need and does not mind.

use ifrt::fake::fault::{Fault, Gate, Op, When};
use jax_api::Error;
use jax_api::prelude::*;

use crate::arrays::client;

fn runtime(threads: usize) -> tokio::runtime::Runtime {
    let mut builder = if threads == 0 {
        tokio::runtime::Builder::new_current_thread()
    } else {
        tokio::runtime::Builder::new_multi_thread()
    };
    if threads > 0 {
        builder.worker_threads(threads);
    }
    builder.build().unwrap()
}

/// `delete` waits for nothing and needs nothing, wherever it is called.
#[test]
fn deleting_inside_of_executors() {
    struct Deletes(Array);
    impl Drop for Deletes {
        fn drop(&mut self) {
            self.0.delete();
        }
    }
    for threads in [0, 2] {
        let (client, fake) = client();
        let gate = Gate::new();
        for fault in [
            Fault::Slow(gate.clone()),
            Fault::Never,
            Fault::Panic,
            Fault::Block(gate.clone()),
        ] {
            fake.faults().add(Op::Delete, When::Once, fault);
        }
        let runtime = runtime(threads);
        let arrays: Vec<Array> = (0..5)
            .map(|_| device_put(&[1.0_f32; 4], &client).unwrap())
            .collect();
        let task = arrays.clone();
        runtime.block_on(async move {
            task[0].delete();
            task[0].delete();
            let one = task[1].clone();
            let other = tokio::spawn(async move { drop(Deletes(one)) });
            other.await.unwrap();
            task[2].delete();
            task[3].delete();
            assert!(task[..4].iter().all(Array::is_deleted));
            // And a task that is thrown away in the middle of its life.
            let last = Deletes(task[4].clone());
            let waiting = tokio::spawn(async move {
                let _last = last;
                std::future::pending::<()>().await;
            });
            tokio::task::yield_now().await;
            waiting.abort();
            assert!(waiting.await.unwrap_err().is_cancelled());
            assert!(task[4].is_deleted());
        });
        // The runtime may go away with deletions under way; they need no executor.
        drop(runtime);
        gate.open();
        assert!(client.drain_deletions(std::time::Duration::from_secs(20)));
        assert_eq!(client.deletion_stats().told, 5);
    }
}

#[test]
fn waiting_without_blocking() {
    let (client, fake) = client();
    let f = jit::from_stablehlo("fake:add(f32[4], f32[4]) -> (f32[4])")
        .compile(&client)
        .unwrap();
    let x = device_put(&[1.0_f32; 4], &client).unwrap();
    let gate = Gate::new();
    fake.faults()
        .add(Op::Execute, When::Once, Fault::Slow(gate.clone()));
    let y = f.call(args![&x, &x]).unwrap().remove(0);
    assert!(!y.is_ready().unwrap());
    let ready = y.ready();
    gate.open();
    runtime(0).block_on(ready).unwrap();
    assert!(y.is_ready().unwrap());
    x.delete();
    let error = runtime(0).block_on(x.ready()).unwrap_err();
    assert!(matches!(error, Error::ArrayDeleted { .. }), "{error}");
    assert!(matches!(x.is_ready(), Err(Error::ArrayDeleted { .. })));
}
