//! What the contract itself costs: completions, calls through its traits, reading shardings,
//! validating remap plans.
//!
//! `cargo bench -p ifrt --features fake`

#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark stops where a value cannot be made, and speaks by its names"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use divan::{AllocProfiler, Bencher};
use ifrt::fake::{FakeClient, FakeOptions};
use ifrt::proto::xla::OpSharding;
use ifrt::proto::xla::ifrt::ShardingProto;
use ifrt::remap_plan::{Interval, Mapping, RemapPlan};
use ifrt::serdes::{SerDesVersion, sharding_from_proto, sharding_to_proto};
use ifrt::xla::HloSharding;
use ifrt::{
    ArraySpec, Client, Completion, DType, DeviceList, MemoryKind, Promise, Shape, ShardSemantics,
    Sharding, ShardingRef, Status,
};
use prost::Message;

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

#[divan::bench_group]
mod completion {
    use super::*;

    /// Known from the start, as after most deletions.
    #[divan::bench]
    fn ready_and_wait() {
        let completion = black_box(Completion::done());
        black_box(completion.wait()).unwrap();
    }

    #[divan::bench]
    fn create() -> (Promise, Completion) {
        Completion::pair()
    }

    #[divan::bench]
    fn create_set_and_peek() -> Option<Result<u64, Status>> {
        let (promise, completion) = Completion::pair();
        promise.set(Ok(7));
        completion.peek()
    }

    #[divan::bench]
    fn create_callback_and_set() {
        let (promise, completion) = Completion::pair();
        completion.on_ready(|result: &Result<u64, Status>| drop(black_box(result.clone())));
        promise.set(Ok(7));
    }

    /// Several handles, one waker, then the result for all of them.
    #[divan::bench]
    fn create_poll_set_and_poll() -> Poll<Result<u64, Status>> {
        let (promise, completion) = Completion::pair();
        let mut others = [completion.clone(), completion];
        let mut cx = Context::from_waker(Waker::noop());
        assert!(poll(&mut others[0], &mut cx).is_pending());
        promise.set(Ok(7));
        assert!(poll(&mut others[0], &mut cx).is_ready());
        poll(&mut others[1], &mut cx)
    }

    fn poll(completion: &mut Completion<u64>, cx: &mut Context<'_>) -> Poll<Result<u64, Status>> {
        std::pin::Pin::new(completion).poll(cx)
    }

    #[divan::bench]
    fn wait_when_set(bencher: Bencher<'_, '_>) {
        let (promise, completion) = Completion::pair();
        promise.set(Ok(7_u64));
        bencher.bench(|| black_box(&completion).wait());
    }

    #[divan::bench(args = [1, 10, 100])]
    fn join_of_pending(bencher: Bencher<'_, '_>, count: usize) {
        bencher.bench(|| {
            let (promises, completions): (Vec<_>, Vec<_>) =
                (0..count).map(|_| Completion::pair()).unzip();
            let joined = ifrt::join_all(completions);
            promises.into_iter().for_each(|promise| promise.set(Ok(())));
            joined.peek()
        });
    }
}

fn client(num_devices: usize) -> Arc<FakeClient> {
    FakeClient::new(FakeOptions {
        num_devices,
        ..FakeOptions::default()
    })
}

#[divan::bench_group]
mod calls {
    use super::*;

    #[divan::bench]
    fn of_the_type(bencher: Bencher<'_, '_>) {
        let client = client(4);
        bencher.bench(|| black_box(&*client).process_index());
    }

    #[divan::bench]
    fn of_the_trait(bencher: Bencher<'_, '_>) {
        let client: Arc<dyn Client> = client(4);
        bencher.bench(|| black_box(&*client).process_index());
    }
}

const COUNTS: [usize; 3] = [4, 64, 1024];

/// Tiles over rows and columns, with the devices of a mesh walked the other way.
fn mesh(num_devices: usize) -> (FakeDevices, HloSharding) {
    let columns = i64::try_from(num_devices / 2).unwrap();
    let proto = OpSharding {
        r#type: 3,
        tile_assignment_dimensions: vec![2, columns],
        iota_reshape_dims: vec![columns, 2],
        iota_transpose_perm: vec![1, 0],
        ..OpSharding::default()
    };
    let hlo = HloSharding::from_proto(&proto).unwrap();
    (FakeDevices::new(num_devices), hlo)
}

struct FakeDevices {
    client: Arc<FakeClient>,
    devices: DeviceList,
}

impl FakeDevices {
    fn new(count: usize) -> Self {
        let client = client(count);
        let devices = client.devices().iter().cloned().collect();
        Self { client, devices }
    }
}

#[divan::bench_group]
mod sharding {
    use super::*;

    fn shape(num_devices: usize) -> Shape {
        let columns = i64::try_from(num_devices).unwrap();
        Shape::new([1024, 16 * columns]).unwrap()
    }

    #[divan::bench(args = COUNTS)]
    fn hlo_decode(bencher: Bencher<'_, '_>, num_devices: usize) {
        let wire = mesh(num_devices).1.to_proto().encode_to_vec();
        bencher.bench(|| HloSharding::from_proto(&OpSharding::decode(&wire[..]).unwrap()));
    }

    /// The whole message, with the devices looked up.
    #[divan::bench(args = COUNTS)]
    fn envelope_decode(bencher: Bencher<'_, '_>, num_devices: usize) {
        let (FakeDevices { client, devices }, hlo) = mesh(num_devices);
        let sharding = Sharding::hlo(hlo, devices, MemoryKind::default()).unwrap();
        let proto = sharding_to_proto(&sharding, SerDesVersion::CURRENT).unwrap();
        let wire = proto.encode_to_vec();
        bencher.bench(|| {
            let proto = ShardingProto::decode(&wire[..]).unwrap();
            sharding_from_proto(&proto, &*client)
        });
    }

    #[divan::bench(args = COUNTS)]
    fn shard_shape(bencher: Bencher<'_, '_>, num_devices: usize) {
        let (_, hlo) = mesh(num_devices);
        let shape = shape(num_devices);
        bencher.bench(|| hlo.shard_shape(black_box(&shape)));
    }

    #[divan::bench(args = COUNTS)]
    fn index_domains(bencher: Bencher<'_, '_>, num_devices: usize) {
        let (FakeDevices { devices, .. }, hlo) = mesh(num_devices);
        let sharding = Sharding::hlo(hlo, devices, MemoryKind::default()).unwrap();
        let shape = shape(num_devices);
        bencher.bench(|| sharding.index_domains(black_box(&shape), ShardSemantics::All));
    }
}

#[divan::bench_group]
mod remap {
    use super::*;

    /// All shards of one array become those of another.
    fn plan(num_devices: usize) -> RemapPlan {
        let (FakeDevices { devices, .. }, hlo) = mesh(num_devices);
        let columns = i64::try_from(num_devices).unwrap();
        let sharding: ShardingRef = Sharding::hlo(hlo, devices, MemoryKind::default()).unwrap();
        let spec = ArraySpec {
            dtype: DType::F32,
            shape: Shape::new([1024, 16 * columns]).unwrap(),
            sharding,
            layout: None,
        };
        let all = Interval {
            start: 0,
            end: columns,
            step: 1,
        };
        let mapping = Mapping {
            in_array: 0,
            out_array: 0,
            from: vec![all],
            to: vec![all],
        };
        RemapPlan::new(vec![spec.clone()], vec![spec], vec![mapping])
    }

    #[divan::bench(args = COUNTS)]
    fn validate(bencher: Bencher<'_, '_>, num_devices: usize) {
        let plan = plan(num_devices);
        bencher.bench(|| black_box(&plan).validate());
    }

    #[divan::bench(args = COUNTS)]
    fn create_optimized(bencher: Bencher<'_, '_>, num_devices: usize) {
        let plan = plan(num_devices);
        bencher.with_inputs(|| plan.clone()).bench_values(|plan| {
            RemapPlan::create_optimized(plan.input_specs, plan.output_specs, plan.mappings)
        });
    }
}
