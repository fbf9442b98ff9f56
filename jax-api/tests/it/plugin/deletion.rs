//! Deletion and donation.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use jax_api::Error;
use jax_api::prelude::*;

use super::client;

const DOUBLE: &str = "module @double {
  func.func public @main(%x: tensor<1024xf32>) -> tensor<1024xf32> {
    %y = stablehlo.add %x, %x : tensor<1024xf32>
    return %y : tensor<1024xf32>
  }
}";

#[test]
fn the_story() {
    let client = client(8);
    let f = jit::from_stablehlo(DOUBLE).compile(&client).unwrap();
    let x = device_put(&[1.0_f32; 1024], &client).unwrap();
    let y = f.call(args![&x]).unwrap().remove(0);
    // In use by a run that may still be going on.
    x.delete();
    x.delete();
    assert!(x.is_deleted());
    assert_eq!(y.to_vec::<f32>().unwrap(), [2.0; 1024]);
    let error = x.to_vec::<f32>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "Array has been deleted with shape=float32[1024]."
    );
    // A result that is still being computed.
    let z = f.call(args![&y]).unwrap().remove(0);
    let w = f.call(args![&z]).unwrap().remove(0);
    z.delete();
    assert_eq!(w.to_vec::<f32>().unwrap(), [8.0; 1024]);
    assert!(f.call(args![&z]).is_err());
    assert!(client.drain_deletions(Duration::from_secs(60)));
    let stats = client.deletion_stats();
    assert_eq!((stats.requested, stats.told, stats.failed), (2, 2, 0));
}

#[test]
fn an_array_over_eight_devices() {
    let client = client(8);
    let mesh = Mesh::new(client.devices(), [("x", 8)]).unwrap();
    let sharding = NamedSharding::new(&mesh, P!["x"]).unwrap();
    let values: Vec<f32> = (0..1024_u16).map(f32::from).collect();
    let x = device_put(&values, &sharding).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), values);
    let shards = x.addressable_shards().unwrap();
    // Not the first one: the runtime looks only at that.
    shards[5].data.delete();
    assert!(x.is_deleted());
    assert!(matches!(x.to_vec::<f32>(), Err(Error::ArrayDeleted { .. })));
    assert_eq!(shards[4].data.to_vec::<f32>().unwrap(), values[512..640]);
    x.delete();
    assert!(shards.iter().all(|shard| shard.data.is_deleted()));
}

#[test]
fn a_dead_array_over_several_devices_in_a_call() {
    // Stock JAX dies of a call with a donated array over several devices.
    let client = client(2);
    let module = "module @m attributes {mhlo.num_partitions = 2 : i32} {
      sdy.mesh @mesh = <[\"x\"=2]>
      func.func public @main(
          %a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>, tf.aliasing_output = 0 : i32})
          -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}) {
        %b = stablehlo.add %a, %a : tensor<4xf32>
        return %b : tensor<4xf32>
      }
    }";
    let f = jit::from_stablehlo(module).compile(&client).unwrap();
    let mesh = Mesh::new(client.devices(), [("x", 2)]).unwrap();
    let sharding = NamedSharding::new(&mesh, P!["x"]).unwrap();
    let x = device_put(&[1.0_f32; 4], &sharding).unwrap();
    let y = f.call(args![donate(&x)]).unwrap().remove(0);
    assert!(x.is_deleted());
    for _ in 0..3 {
        assert!(matches!(f.call(args![&x]), Err(Error::ArrayDeleted { .. })));
        assert!(matches!(
            f.call(args![donate(&x)]),
            Err(Error::ArrayDeleted { .. })
        ));
    }
    assert!(x.addressable_shards().is_err());
    assert!(x.block_until_ready().is_err());
    assert!(device_put(&x, &client.devices()[0]).is_err());
    assert_eq!(y.to_vec::<f32>().unwrap(), [2.0; 4]);
    let shard = y.addressable_shards().unwrap().remove(1);
    shard.data.delete();
    assert!(matches!(f.call(args![&y]), Err(Error::ArrayDeleted { .. })));
}

/// Stock JAX dies of this within two thousand tries.
#[test]
fn known_bug_a1_reading_against_deleting() {
    let tries: u16 = 5_000;
    let client = client(1);
    let f = jit::from_stablehlo(DOUBLE).compile(&client).unwrap();
    let barrier = Barrier::new(2);
    for n in 0..tries {
        let value = f32::from(n);
        let x = f
            .call(args![&device_put(&[value; 1024], &client).unwrap()])
            .unwrap()
            .remove(0);
        x.block_until_ready().unwrap();
        let read = thread::scope(|scope| {
            scope.spawn(|| {
                barrier.wait();
                x.delete();
            });
            barrier.wait();
            x.to_vec::<f32>()
        });
        match read {
            Ok(found) => assert_eq!(found, [2.0 * value; 1024]),
            Err(error) => assert!(matches!(error, Error::ArrayDeleted { .. }), "{error}"),
        }
        assert!(x.is_deleted());
    }
}

#[test]
fn calling_against_deleting_against_donating() {
    let client = client(1);
    let f = jit::from_stablehlo(DOUBLE)
        .donate_argnums([0])
        .compile(&client)
        .unwrap();
    let barrier = Barrier::new(3);
    for n in 0..500_u16 {
        let value = f32::from(n);
        let x = device_put(&[value; 1024], &client).unwrap();
        let (donating, using) = thread::scope(|scope| {
            let donating = scope.spawn(|| {
                barrier.wait();
                f.call(args![donate(&x)])
            });
            scope.spawn(|| {
                barrier.wait();
                x.delete();
            });
            barrier.wait();
            let using = f.call(args![&x]);
            (donating.join().unwrap(), using)
        });
        for result in [donating, using] {
            match result {
                Ok(found) => {
                    assert_eq!(found[0].to_vec::<f32>().unwrap(), [2.0 * value; 1024]);
                }
                Err(error) => assert!(matches!(error, Error::ArrayDeleted { .. }), "{error}"),
            }
        }
        assert!(x.is_deleted());
    }
}

#[test]
fn a_large_array_takes_nothing_from_the_caller() {
    let client = client(1);
    let x = device_put(vec![1.0_f32; 16 << 20], &client).unwrap();
    x.block_until_ready().unwrap();
    let before = client.deletion_stats().told;
    x.delete();
    assert!(x.is_deleted());
    assert!(client.drain_deletions(Duration::from_secs(60)));
    assert_eq!(client.deletion_stats().told, before + 1);
}

#[test]
fn everything_may_outlive_the_client() {
    let client = client(2);
    let x = device_put(&[1.0_f32; 4], &client.devices()[1]).unwrap();
    let y = device_put(&[2.0_f32; 4], &client.devices()[1]).unwrap();
    drop(client);
    x.delete();
    assert!(x.is_deleted());
    assert_eq!(y.to_vec::<f32>().unwrap(), [2.0; 4]);
}
