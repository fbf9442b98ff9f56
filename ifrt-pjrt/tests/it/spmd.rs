//! Programs over several devices.

use std::sync::Arc;

use ifrt::proto::xla::DeviceAssignmentProto;
use ifrt::proto::xla::device_assignment_proto::ComputationDevice;
use ifrt::xla::HloSharding;
use ifrt::{
    ArrayCopySemantics, ArrayRef, ArraySpec, Client, Code, DType, DeviceList, ExecuteOptions,
    HostBuffer, HostData, HostShards, LoadedExecutableRef, MemoryKind, ShardSemantics, Sharding,
    ShardingKind,
};
use ifrt_pjrt::PjrtClient;

use crate::support::*;

/// Doubles its argument, and sums it up over the devices.
const DOUBLE_AND_SUM: &str = r#"
module @double_and_sum attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(
      %x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
      -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
          tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
    %two = stablehlo.constant dense<2.0> : tensor<8x4xf32>
    %double = stablehlo.multiply %x, %two : tensor<8x4xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
    return %double, %sum : tensor<8x4xf32>, tensor<4xf32>
  }
}"#;

fn compile_on(client: &PjrtClient, ids: &[i64], module: &str) -> ifrt::Result<LoadedExecutableRef> {
    let partitions = i64::try_from(ids.len()).unwrap();
    let mut options = options(partitions);
    options
        .executable_build_options
        .as_mut()
        .unwrap()
        .device_assignment = Some(DeviceAssignmentProto {
        replica_count: 1,
        computation_count: i32::try_from(ids.len()).unwrap(),
        computation_devices: ids
            .iter()
            .map(|id| ComputationDevice {
                replica_device_ids: vec![*id],
            })
            .collect(),
    });
    try_compile(client, module.to_owned(), &options)
}

/// An array of rows, one per device of the list.
fn rows(client: &PjrtClient, devices: &DeviceList, base: f32) -> ArrayRef {
    let count = devices.len();
    let sharding = Sharding::hlo(
        HloSharding::tile([i64::try_from(count).unwrap(), 1]).unwrap(),
        devices.clone(),
        MemoryKind::default(),
    );
    let spec = ArraySpec {
        dtype: DType::F32,
        shape: shape(&[i64::try_from(count).unwrap(), 4]),
        sharding: sharding.unwrap(),
        layout: None,
    };
    let rows: Vec<Vec<u8>> = (0..count)
        .map(|n| bytes_of(&[base + f32::from(u8::try_from(n).unwrap()); 4]))
        .collect();
    let buffers = rows.iter().enumerate().map(|(n, row)| {
        (
            vec![n],
            HostBuffer::dense(HostData::Borrowed(row), DType::F32, shape(&[1, 4])),
        )
    });
    let buffers = buffers.collect();
    client
        .make_arrays_from_host_buffer_shards(vec![HostShards { spec, buffers }])
        .unwrap()
        .remove(0)
}

fn shards(array: &ArrayRef) -> Vec<Vec<f32>> {
    let shards = array
        .disassemble(ArrayCopySemantics::ReuseInput, ShardSemantics::All)
        .unwrap();
    shards.iter().map(fetch).collect()
}

#[test]
fn a_program_runs_over_eight_devices() {
    let client = client(8);
    let f = compile_on(&client, &[0, 1, 2, 3, 4, 5, 6, 7], DOUBLE_AND_SUM).unwrap();
    assert_eq!(f.num_devices(), 8);
    let devices = f.devices().unwrap().clone();
    let tiled = HloSharding::tile([8, 1]).unwrap();
    let parameters = f.parameter_shardings().unwrap();
    assert!(matches!(&parameters[..], [HloSharding::Tiled(tiles)] if tiles.data_dims() == [8, 1]));
    let outputs = f.output_shardings().unwrap();
    assert!(matches!(&outputs[0], HloSharding::Tiled(tiles) if tiles.data_dims() == [8, 1]));
    assert!(outputs[1].is_fully_replicated(8));

    let x = rows(&client, &devices, 1.0);
    assert_eq!(x.sharding().kind(), &ShardingKind::Hlo(tiled));
    let options = ExecuteOptions {
        fill_status: true,
        ..ExecuteOptions::default()
    };
    let result = f.execute(&[x], &options, None).unwrap();
    assert_eq!(wait(result.status.unwrap()), Ok(()));
    let [double, sum] = &result.outputs[..] else {
        panic!()
    };
    assert_eq!(double.shape().dims(), [8, 4]);
    assert_eq!(sum.shape().dims(), [4]);
    let expected: Vec<Vec<f32>> = (1..=8_u8).map(|n| vec![2.0 * f32::from(n); 4]).collect();
    assert_eq!(shards(double), expected);
    assert!(sum.sharding().is_fully_replicated());
    assert_eq!(shards(sum), vec![vec![36.0; 4]; 8]);
    assert_eq!(fetch(sum), [36.0; 4]);
}

#[test]
fn shards_follow_the_device_assignment() {
    let client = client(8);
    let order = [3, 1, 0, 2, 7, 6, 5, 4];
    let f = compile_on(&client, &order, DOUBLE_AND_SUM).unwrap();
    let devices = f.devices().unwrap().clone();
    assert!(devices.ids().map(|id| i64::from(id.0)).eq(order));
    let x = rows(&client, &devices, 0.0);
    let outputs = run(&f, &[&x]).unwrap();
    assert_eq!(outputs[0].sharding().devices(), &devices);
    let expected: Vec<Vec<f32>> = (0..8_u8).map(|n| vec![2.0 * f32::from(n); 4]).collect();
    assert_eq!(shards(&outputs[0]), expected);

    // The same array in the order of the ids is on the wrong devices for this program.
    let sorted: DeviceList = client.devices().iter().cloned().collect();
    let y = rows(&client, &sorted, 0.0);
    let error = run(&f, &[&y]).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("is on device"), "{error}");
}

#[test]
fn every_shard_of_every_argument_is_checked() {
    let client = client(8);
    let f = compile_on(&client, &[0, 1, 2, 3, 4, 5, 6, 7], DOUBLE_AND_SUM).unwrap();
    let devices = f.devices().unwrap().clone();
    let one = put(&client, &[1, 4], &[0.0; 4]);
    let error = run(&f, &[&one]).unwrap_err();
    assert_eq!(
        error.message(),
        "Argument 0 has 1 buffers, but executable expects 8 computations"
    );
    // Deleting the last shard is enough.
    let x = rows(&client, &devices, 0.0);
    let shards = x
        .disassemble(ArrayCopySemantics::ReuseInput, ShardSemantics::All)
        .unwrap();
    wait(shards[7].delete()).unwrap();
    assert!(x.is_deleted());
    let error = run(&f, &[&x]).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("deleted or donated"), "{error}");
    assert_eq!(fetch(&shards[0]), [0.0; 4]);
}

#[test]
fn several_threads_launch_at_once() {
    let client = client(8);
    let f = compile_on(&client, &[0, 1, 2, 3, 4, 5, 6, 7], DOUBLE_AND_SUM).unwrap();
    let devices = f.devices().unwrap().clone();
    std::thread::scope(|scope| {
        for number in 0..3_u8 {
            let (client, f, devices) = (&client, &f, &devices);
            scope.spawn(move || {
                for round in 0..10_u8 {
                    let base = f32::from(number * 10 + round);
                    let x = rows(client, devices, base);
                    let outputs = run(f, &[&x]).unwrap();
                    assert_eq!(fetch(&outputs[1]), [base.mul_add(8.0, 28.0); 4]);
                }
            });
        }
    });
}

/// Donates over all devices: each run consumes every shard of its input.
#[test]
fn a_sharded_argument_is_donated_as_a_whole() {
    let client = client(8);
    let module = DOUBLE_AND_SUM.replace(
        "[{\"x\"}, {}]>})\n",
        "[{\"x\"}, {}]>, tf.aliasing_output = 0 : i32})\n",
    );
    let f = compile_on(&client, &[0, 1, 2, 3, 4, 5, 6, 7], &module).unwrap();
    assert_eq!(f.donatable_input_indices().unwrap(), [0]);
    let devices = f.devices().unwrap().clone();
    let mut x = rows(&client, &devices, 1.0);
    for round in 1..=5 {
        let outputs = run(&f, &[&x]).unwrap();
        assert!(x.is_deleted());
        assert_eq!(fetch(&outputs[1])[0], 36.0 * 2.0_f32.powi(round - 1));
        let error = run(&f, &[&x]).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        x = Arc::clone(&outputs[0]);
    }
}

#[test]
fn replicas_each_give_a_result() {
    let client = client(4);
    let mut options = options(1);
    options
        .executable_build_options
        .as_mut()
        .unwrap()
        .num_replicas = 4;
    let f = try_compile(&client, add_one("2"), &options).unwrap();
    assert_eq!(f.num_devices(), 4);
    let devices = f.devices().unwrap().clone();
    let even = ShardingKind::ConcreteEven {
        shape: shape(&[2]),
        shard_shape: shape(&[2]),
        is_fully_replicated: false,
    };
    let sharding = Arc::new(Sharding::new(even, devices, MemoryKind::default()).unwrap());
    let parts: Vec<Vec<u8>> = (0..4_u8).map(|n| bytes_of(&[f32::from(n), 0.0])).collect();
    let buffers = parts.iter().enumerate().map(|(n, part)| {
        (
            vec![n],
            HostBuffer::dense(HostData::Borrowed(part), DType::F32, shape(&[2])),
        )
    });
    let spec = ArraySpec {
        dtype: DType::F32,
        shape: shape(&[2]),
        sharding,
        layout: None,
    };
    let buffers = buffers.collect();
    let x = client
        .make_arrays_from_host_buffer_shards(vec![HostShards { spec, buffers }])
        .unwrap();
    let y = run(&f, &[&x[0]]).unwrap();
    assert_eq!(
        shards(&y[0]),
        [[1.0, 1.0], [2.0, 1.0], [3.0, 1.0], [4.0, 1.0]]
    );
}

#[test]
fn default_device_assignments() {
    let client = client(8);
    let ids = |replicas, partitions| {
        client
            .default_device_assignment(replicas, partitions)
            .map(|rows| {
                rows.into_iter()
                    .map(|row| row.into_iter().map(|id| id.0).collect())
                    .collect::<Vec<Vec<_>>>()
            })
    };
    assert_eq!(ids(1, 4).unwrap(), [[0, 1, 2, 3]]);
    assert_eq!(ids(2, 2).unwrap(), [[0, 1], [2, 3]]);
    for (replicas, partitions) in [(0, 1), (1, 0), (0, 0), (9, 1), (3, 3), (usize::MAX, 2)] {
        let error = ids(replicas, partitions).unwrap_err();
        assert_eq!(
            error.code(),
            Code::InvalidArgument,
            "{replicas} {partitions}"
        );
    }
}
