//! Clients that vanish in the middle of whatever they were doing, two hundred times over.
//!
//! After each of them everything it had is free, and a client that stays has noticed nothing.

use bytes::Bytes;
use ifrt::fake::FakeOptions;
use ifrt::fake::fault::{Fault, Gate, Op, When};
use ifrt_proxy::proto::xla::ifrt::proxy::*;
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::metadata::BinaryMetadataValue;

use crate::support::{
    STORE_METADATA, TestClient, TestServer, check_value_ready, compile, execute, make_array, until,
    within,
};

const VICTIMS: usize = 200;

/// What a client is in the middle of.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// An upload of which some bytes are there.
    Upload,
    /// An array whose bytes have not come.
    Waiting,
    /// A compilation that the runtime is busy with.
    Compile,
    /// An execution that the runtime is busy with.
    Execute,
    /// A download of which it has read a part.
    Download,
    /// Reading the state of an array that is not ready.
    Ready,
    /// Nothing; it has arrays, executables and buffers.
    Idle,
}

const MOMENTS: [Moment; 7] = [
    Moment::Upload,
    Moment::Waiting,
    Moment::Compile,
    Moment::Execute,
    Moment::Download,
    Moment::Ready,
    Moment::Idle,
];

/// Brings a client into that moment. What is returned has to be dropped with it.
async fn reach(
    server: &TestServer,
    client: &mut TestClient,
    moment: Moment,
) -> (Option<Gate>, Box<dyn Send>) {
    let fake = &*server.fake;
    let executable = client
        .compile("fake:add_one(f32[1]) -> (f32[1])")
        .await
        .unwrap();
    let array = client.put(fake, 0, &[1.0]).await;
    let held = |op| {
        let gate = Gate::new();
        fake.faults()
            .add(op, When::Once, Fault::Block(gate.clone()));
        gate
    };
    match moment {
        Moment::Upload => {
            let (chunks, receiver) = mpsc::unbounded_channel();
            let data = Bytes::from(vec![7; 1 << 16]);
            chunks.send(GrpcHostBufferStoreRequest { data }).unwrap();
            let metadata = GrpcHostBufferStoreMetadata {
                session_id: client.init.session_id,
                handle: client.new_handle(),
                buffer_size: 1 << 20,
            };
            let value = BinaryMetadataValue::from_bytes(&metadata.encode_to_vec());
            let mut request = tonic::Request::new(UnboundedReceiverStream::new(receiver));
            request.metadata_mut().insert_bin(STORE_METADATA, value);
            let mut raw = client.raw.clone();
            let upload = tokio::spawn(async move { raw.0.host_buffer_store(request).await });
            (None, Box::new((chunks, AbortOnDrop(upload))))
        }
        Moment::Waiting => {
            let handle = client.new_handle();
            client.send(make_array(fake, handle, &[0], 1));
            (None, Box::new(()))
        }
        Moment::Compile => {
            let gate = held(Op::Compile);
            client.send(compile("fake:zeros() -> (f32[1])"));
            within_gate(&gate).await;
            (Some(gate), Box::new(()))
        }
        Moment::Execute => {
            let gate = held(Op::Execute);
            client.send(execute(executable, &[array], &[]));
            within_gate(&gate).await;
            (Some(gate), Box::new(()))
        }
        Moment::Download => {
            let handle = client.new_handle();
            client.upload(handle, &[3; 4 << 20]).await.unwrap();
            let request = GrpcHostBufferLookupRequest {
                session_id: client.init.session_id,
                handle,
            };
            let mut chunks = within(client.raw.0.host_buffer_lookup(request))
                .await
                .unwrap()
                .into_inner();
            within(chunks.next()).await.unwrap().unwrap();
            (None, Box::new(chunks))
        }
        Moment::Ready => {
            let gate = held(Op::Ready);
            client.send(check_value_ready(&[array]));
            within_gate(&gate).await;
            (Some(gate), Box::new(()))
        }
        Moment::Idle => {
            client.execute_first(executable, &[array]).await.unwrap();
            (None, Box::new(()))
        }
    }
}

/// A call of which nobody awaits the end.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn within_gate(gate: &Gate) {
    let gate = gate.clone();
    let deadline = std::time::Duration::from_secs(60);
    tokio::task::spawn_blocking(move || gate.wait_until_held(1, deadline))
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_vanish_and_nobody_notices() {
    let server = TestServer::start().await;
    let mut bystander = server.client().await;
    let array = bystander.put(&*server.fake, 0, &[1.0]).await;
    let executable = bystander
        .compile("fake:add_one(f32[1]) -> (f32[1])")
        .await
        .unwrap();
    let start = (server.fake.live_buffers(), server.fake.live_bytes());
    for (round, moment) in MOMENTS.into_iter().cycle().take(VICTIMS).enumerate() {
        let mut victim = server.client().await;
        let (gate, rest) = reach(&server, &mut victim, moment).await;
        drop(rest);
        drop(victim);
        // What the runtime is busy with ends at some time.
        if let Some(gate) = gate {
            gate.open();
        }
        let results = [500 + 2 * u64::try_from(round).unwrap()];
        bystander
            .call(execute(executable, &[array], &results))
            .await
            .unwrap();
        assert_eq!(
            bystander.fetch(results[0]).await.unwrap(),
            [2.0],
            "{moment:?}"
        );
        bystander
            .call(crate::support::destruct(&results))
            .await
            .unwrap();
    }
    until("the memory of the victims is free", || {
        (server.fake.live_buffers(), server.fake.live_bytes()) == start
    })
    .await;
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_at_once() {
    let server =
        std::sync::Arc::new(TestServer::with(FakeOptions::default(), Default::default()).await);
    let start = (server.fake.live_buffers(), server.fake.live_bytes());
    let clients: Vec<_> = (0..50_u8)
        .map(|number| {
            let server = std::sync::Arc::clone(&server);
            tokio::spawn(async move {
                let value = f32::from(number);
                let mut client = server.client().await;
                let executable = client
                    .compile("fake:add_one(f32[1]) -> (f32[1])")
                    .await
                    .unwrap();
                for _ in 0..10 {
                    let array = client.put(&*server.fake, 0, &[value]).await;
                    let run = client.execute_first(executable, &[array]).await.unwrap();
                    let result = client.fetch(run.outputs[0].array_handle).await.unwrap();
                    assert_eq!(result, [value + 1.0]);
                }
                // Every other one leaves without a word, with a request under way.
                if number % 2 == 0 {
                    let handle = client.new_handle();
                    client.send(make_array(&*server.fake, handle, &[0], 1));
                }
            })
        })
        .collect();
    for client in clients {
        within(client).await.unwrap();
    }
    until("the memory of all is free", || {
        (server.fake.live_buffers(), server.fake.live_bytes()) == start
    })
    .await;
    let server = std::sync::Arc::into_inner(server).unwrap();
    server.stop().await.unwrap();
}
