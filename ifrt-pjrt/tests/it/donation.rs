//! Programs that consume their inputs.

use std::sync::Arc;
use std::time::Instant;

use ifrt::{ArrayRef, Code, ExecuteOptions, LoadedExecutableRef};

use crate::support::*;

/// `x + y`, which may put its result where `x` was.
fn add_into() -> String {
    "module @add_into {
      func.func public @main(%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %y: tensor<4xf32>)
          -> tensor<4xf32> {
        %0 = stablehlo.add %x, %y : tensor<4xf32>
        return %0 : tensor<4xf32>
      }
    }"
    .to_owned()
}

fn texts(f: &LoadedExecutableRef, args: &[&ArrayRef]) -> String {
    run(f, args).unwrap_err().to_string()
}

#[test]
fn a_donated_array_is_deleted_and_its_memory_is_the_result() {
    let client = client(1);
    let f = compile(&client, &add_into());
    assert_eq!(f.donatable_input_indices().unwrap(), [0]);
    let x = put(&client, &[4], &[1.0; 4]);
    let y = put(&client, &[4], &[2.0; 4]);
    let z = run(&f, &[&x, &y]).unwrap().remove(0);
    assert!(x.is_deleted() && !y.is_deleted());
    assert_eq!(fetch(&z), [3.0; 4]);
    // Deleting what was donated does nothing.
    assert_eq!(wait(x.delete()), Ok(()));
    assert_eq!(fetch(&z), [3.0; 4]);
    let error = wait(x.ready()).unwrap_err();
    assert_eq!(
        error.message(),
        "GetReadyFuture() called on deleted or donated buffer"
    );
    assert_eq!(error.code(), Code::InvalidArgument);
    assert_eq!(fetch_bytes(&x).unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(
        texts(&f, &[&x, &y]),
        "INVALID_ARGUMENT: Invalid buffer passed to Execute() as argument 0 to replica 0: \
         INVALID_ARGUMENT: Buffer has been deleted or donated."
    );
    assert_eq!((x.dtype().name(), x.shape().dims()), ("f32", &[4][..]));
}

/// Older versions of the stack hung here (jax-ml/jax#9635).
#[test]
fn jax_9635_an_array_that_is_donated_and_used_again_is_refused_at_once_and_stays_alive() {
    let client = client(1);
    let f = compile(&client, &add_into());
    let x = put(&client, &[4], &[1.0; 4]);
    let start = Instant::now();
    assert_eq!(
        texts(&f, &[&x, &x]),
        "INVALID_ARGUMENT: Attempt to use a buffer that was previously donated in the same call to \
         Execute() (flattened argument 1, replica 0, partition 0, first use: 0). Toy example for \
         this bug: `f(donate(a), a)`."
    );
    assert!(start.elapsed().as_secs() < 1);
    assert!(!x.is_deleted());
    assert_eq!(fetch(&x), [1.0; 4]);
    let y = put(&client, &[4], &[2.0; 4]);
    assert_eq!(fetch(&run(&f, &[&x, &y]).unwrap()[0]), [3.0; 4]);
}

#[test]
fn aliases_are_seen_through() {
    use ifrt::{ArrayCopySemantics, Client};
    let client = client(1);
    let f = compile(&client, &add_into());
    let x = put(&client, &[4], &[1.0; 4]);
    let alias = client
        .copy_arrays(
            &[Arc::clone(&x)],
            None,
            None,
            ArrayCopySemantics::ReuseInput,
        )
        .unwrap()
        .remove(0);
    assert!(texts(&f, &[&alias, &x]).contains("`f(donate(a), a)`"));
    let y = put(&client, &[4], &[2.0; 4]);
    run(&f, &[&alias, &y]).unwrap();
    assert!(alias.is_deleted() && x.is_deleted());
}

#[test]
fn every_way_of_naming_a_donated_array_twice() {
    let client = client(1);
    let both = compile(
        &client,
        "module {
          func.func public @main(%x: tensor<4xf32> {tf.aliasing_output = 0 : i32},
                                 %y: tensor<4xf32> {tf.aliasing_output = 1 : i32})
              -> (tensor<4xf32>, tensor<4xf32>) {
            %0 = stablehlo.add %x, %y : tensor<4xf32>
            %1 = stablehlo.multiply %x, %y : tensor<4xf32>
            return %0, %1 : tensor<4xf32>, tensor<4xf32>
          }
        }",
    );
    let second = compile(
        &client,
        "module {
          func.func public @main(%x: tensor<4xf32>, %y: tensor<4xf32> {tf.aliasing_output = 0 : i32})
              -> tensor<4xf32> {
            %0 = stablehlo.add %x, %y : tensor<4xf32>
            return %0 : tensor<4xf32>
          }
        }",
    );
    let x = put(&client, &[4], &[1.0; 4]);
    assert!(texts(&both, &[&x, &x]).contains("`f(donate(a), donate(a))`"));
    assert!(texts(&second, &[&x, &x]).contains("`f(a, donate(a))`"));
    assert_eq!(fetch(&x), [1.0; 4]);
}

#[test]
fn what_the_options_keep_is_not_donated() {
    let client = client(1);
    let f = compile(&client, &add_into());
    let keep = ExecuteOptions {
        non_donatable_input_indices: [0].into(),
        ..ExecuteOptions::default()
    };
    let x = put(&client, &[4], &[1.0; 4]);
    let args = [Arc::clone(&x), Arc::clone(&x)];
    let y = f.execute(&args, &keep, None).unwrap().outputs.remove(0);
    assert!(!x.is_deleted());
    assert_eq!((fetch(&x), fetch(&y)), (vec![1.0; 4], vec![2.0; 4]));
    // An index that no argument has changes nothing.
    let odd = ExecuteOptions {
        non_donatable_input_indices: [usize::MAX, 7].into(),
        ..ExecuteOptions::default()
    };
    let y = put(&client, &[4], &[2.0; 4]);
    f.execute(&[Arc::clone(&x), y], &odd, None).unwrap();
    assert!(x.is_deleted());
}

#[test]
fn a_call_that_fails_donates_nothing() {
    let client = client(1);
    let f = compile(&client, &add_into());
    let x = put(&client, &[4], &[1.0; 4]);
    let y = put(&client, &[4], &[2.0; 4]);
    wait(y.delete()).unwrap();
    assert!(texts(&f, &[&x, &y]).contains("as argument 1"));
    assert!(!x.is_deleted());
    let wrong = put(&client, &[5], &[2.0; 5]);
    assert!(texts(&f, &[&x, &wrong]).contains("shape [5]"));
    assert_eq!(fetch(&x), [1.0; 4]);
}

#[test]
fn a_donor_without_a_matching_output_may_stay_alive_but_is_never_changed() {
    let client = client(1);
    let f = compile(
        &client,
        "module {
          func.func public @main(%x: tensor<4xf32> {jax.buffer_donor = true}) -> tensor<2xf32> {
            %0 = stablehlo.slice %x [0:2] : (tensor<4xf32>) -> tensor<2xf32>
            %1 = stablehlo.add %0, %0 : tensor<2xf32>
            return %1 : tensor<2xf32>
          }
        }",
    );
    let x = put(&client, &[4], &[1.0; 4]);
    let y = run(&f, &[&x]).unwrap().remove(0);
    assert_eq!(fetch(&y), [2.0; 2]);
    if !x.is_deleted() {
        assert_eq!(fetch(&x), [1.0; 4]);
    }
}

/// A chain of donations leaves one buffer, whatever its length.
#[test]
fn a_chain_of_donations_keeps_one_buffer() {
    let client = client(1);
    let f = compile(&client, &add_into());
    let one = put(&client, &[4], &[1.0; 4]);
    let mut x = put(&client, &[4], &[0.0; 4]);
    for _ in 0..500 {
        x = run(&f, &[&x, &one]).unwrap().remove(0);
    }
    assert_eq!(fetch(&x), [500.0; 4]);
    assert_eq!(client.buffer_counts().live(), 2);
}

/// Threads fight for one array: exactly one donates it, the others are told, and nothing crashes.
#[test]
fn one_of_many_donations_wins() {
    let client = client(1);
    let f = compile(&client, &add_into());
    let y = put(&client, &[4], &[2.0; 4]);
    for _ in 0..50 {
        let x = put(&client, &[4], &[1.0; 4]);
        let won = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| match run(&f, &[&x, &y]) {
                        Ok(outputs) => {
                            assert_eq!(fetch(&outputs[0]), [3.0; 4]);
                            1
                        }
                        Err(error) => {
                            assert_eq!(error.code(), Code::InvalidArgument);
                            0
                        }
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum::<i32>()
        });
        assert_eq!(won, 1);
        assert!(x.is_deleted() && !y.is_deleted());
    }
}

/// A read that was enqueued before the donation brings the old data.
#[test]
fn reads_race_with_donations() {
    let client = client(1);
    let f = compile(&client, &add_into());
    let y = put(&client, &[4], &[2.0; 4]);
    for _ in 0..200 {
        let x = put(&client, &[4], &[1.0; 4]);
        std::thread::scope(|scope| {
            scope.spawn(|| match fetch_bytes(&x) {
                Ok(bytes) => assert_eq!(floats_of(&bytes), [1.0; 4]),
                Err(error) => assert_eq!(error.code(), Code::InvalidArgument),
            });
            let z = run(&f, &[&x, &y]).unwrap();
            assert_eq!(fetch(&z[0]), [3.0; 4]);
        });
    }
}
