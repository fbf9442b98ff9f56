//! Requests at random: whatever a client sends, each request is answered once, nothing panics, and
//! nobody else notices.

use ifrt::fake::FakeOptions;
use ifrt::proto::tensorflow::StatusProto;
use ifrt::proto::xla::ifrt::{
    DTypeProto, ExecuteOptionsProto, LayoutProto, RemapPlanProto, Serialized, ShapeProto,
    ShardingProto, remap_plan_proto::MappingProto,
};
use ifrt_proxy::proto::xla::ifrt::proto::ByteStrides;
use ifrt_proxy::proto::xla::ifrt::proxy::ifrt_request::Request;
use ifrt_proxy::proto::xla::ifrt::proxy::*;
use ifrt_proxy::server::Limits;

use crate::support::{TestClient, TestServer, array_spec, compile, make_array, replicated, tiled};

/// A repeatable source of choices.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn small(&mut self) -> i64 {
        const EXTREMES: [i64; 6] = [i64::MIN, -1, 0, 1, 1 << 40, i64::MAX];
        match self.roll(4) {
            0 => EXTREMES[usize::try_from(self.roll(6)).unwrap()],
            _ => i64::try_from(self.roll(5)).unwrap(),
        }
    }

    fn number(&mut self) -> i32 {
        i32::try_from(self.small()).unwrap_or(i32::MIN)
    }

    /// Mostly a handle that may mean something.
    fn handle(&mut self) -> u64 {
        match self.roll(12) {
            0 => 0,
            1 => u64::MAX,
            2 => (1 << 48) + self.roll(8),
            _ => 1 + self.roll(40),
        }
    }

    fn semantics(&mut self) -> i32 {
        i32::try_from(self.roll(4)).unwrap()
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.roll(4)).map(|_| item(self)).collect()
    }

    fn maybe<T>(&mut self, item: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.roll(5) > 0).then(|| item(self))
    }

    fn bytes(&mut self) -> bytes::Bytes {
        let bytes: Vec<u8> = self.list(|dice| dice.roll(256).to_le_bytes()[0]);
        bytes.into()
    }

    fn dtype(&mut self) -> Option<DTypeProto> {
        self.maybe(|dice| DTypeProto {
            kind: i32::try_from(dice.roll(100)).unwrap(),
            version_number: i32::from(dice.roll(20) == 0),
        })
    }

    fn shape(&mut self) -> Option<ShapeProto> {
        self.maybe(|dice| ShapeProto {
            dims: dice.list(Self::small),
            version_number: 0,
        })
    }

    fn strides(&mut self) -> Option<ByteStrides> {
        self.maybe(|dice| ByteStrides {
            strides: dice.list(Self::small),
        })
    }

    fn sharding(&mut self, server: &TestServer) -> Option<ShardingProto> {
        self.maybe(|dice| match dice.roll(3) {
            0 => replicated(&*server.fake, &[0]),
            1 => replicated(&*server.fake, &[0, 1]),
            _ => ShardingProto {
                serialized_sharding: dice.maybe(|dice| Serialized {
                    type_name: "xla::ifrt::HloSharding".to_owned(),
                    data: dice.bytes(),
                }),
            },
        })
    }

    fn specs(&mut self, server: &TestServer) -> Vec<ifrt::proto::xla::ifrt::ArraySpecProto> {
        self.list(|dice| {
            let mut spec = array_spec(&[1], &tiled(&*server.fake, &[0]));
            if dice.roll(2) == 0 {
                spec.shape = dice.shape();
                spec.sharding = dice.sharding(server);
            }
            spec
        })
    }

    /// A request of any kind but those that wait for an upload.
    fn request(&mut self, server: &TestServer) -> Request {
        match self.roll(30) {
            0 => Request::CheckFutureRequest(CheckFutureRequest {
                future_handle: self.handle(),
            }),
            1 => Request::AssembleArrayFromSingleDeviceArraysRequest(
                AssembleArrayFromSingleDeviceArraysRequest {
                    shape: self.shape(),
                    sharding: self.sharding(server),
                    single_device_array_handles: self.list(Self::handle),
                    copy_semantics: self.semantics(),
                    single_device_shard_semantics: self.maybe(Self::semantics),
                    result_handle: self.handle(),
                    dtype: self.dtype(),
                },
            ),
            2 => Request::CopyToHostBufferRequest(CopyToHostBufferRequest {
                host_buffer_handle: self.handle(),
                array_handle: self.handle(),
                byte_strides: self.strides(),
            }),
            3 => Request::DisassembleIntoSingleDeviceArraysRequest(
                DisassembleIntoSingleDeviceArraysRequest {
                    array_handle: self.handle(),
                    copy_semantics: self.semantics(),
                    single_device_shard_semantics: self.maybe(Self::semantics),
                    result_handles: self.list(Self::handle),
                },
            ),
            4 => crate::support::check_value_ready(&self.list(Self::handle)),
            5 => crate::support::delete(&self.list(Self::handle)),
            6 => crate::support::destruct(&self.list(Self::handle)),
            7 => Request::IsArrayDeletedRequest(IsArrayDeletedRequest {
                array_handle: self.handle(),
            }),
            8 => Request::CompileRequest(CompileRequest {
                program: self.maybe(|dice| Serialized {
                    type_name: "xla::ifrt::XlaProgram".to_owned(),
                    data: dice.bytes(),
                }),
                compile_options: self.maybe(|dice| Serialized {
                    type_name: "xla::ifrt::XlaCompileOptions".to_owned(),
                    data: dice.bytes(),
                }),
                host_callbacks: Vec::new(),
            }),
            9 => compile("fake:add_one(f32[1]) -> (f32[1])"),
            10 | 11 => Request::LoadedExecutableExecuteRequest(LoadedExecutableExecuteRequest {
                loaded_executable_handle: self.handle(),
                args_handles: self.list(Self::handle),
                execute_options: self.maybe(|dice| ExecuteOptionsProto {
                    launch_id: dice.number(),
                    non_donatable_input_indices: dice.list(Self::number),
                    fill_status: dice.roll(2) == 0,
                    ..ExecuteOptionsProto::default()
                }),
                device_ids: if self.roll(4) == 0 {
                    self.list(Self::number)
                } else {
                    Vec::new()
                },
                result_array_handle: self.list(Self::handle),
                result_status_handle: if self.roll(2) == 0 { self.handle() } else { 0 },
            }),
            12 => crate::support::destruct_executable(self.handle()),
            13 => Request::GetDefaultDeviceAssignmentRequest(GetDefaultDeviceAssignmentRequest {
                num_replicas: self.handle(),
                num_partitions: self.handle(),
            }),
            14 => Request::FullyReplicatedShardRequest(FullyReplicatedShardRequest {
                array_handle: self.handle(),
                copy_semantics: self.semantics(),
                result_handle: self.handle(),
            }),
            15 => Request::LoadedHostCallbackPollRequest(LoadedHostCallbackPollRequest {
                loaded_host_callback_handle: self.handle(),
                operand_host_buffer_handle: self.handle(),
            }),
            16 => Request::RemapArraysRequest(RemapArraysRequest {
                plan: self.maybe(|dice| RemapPlanProto {
                    input_specs: dice.specs(server),
                    output_specs: dice.specs(server),
                    mappings: dice.list(|dice| MappingProto {
                        in_array: dice.number(),
                        out_array: dice.number(),
                        from_start: dice.list(Self::small),
                        from_end: dice.list(Self::small),
                        from_step: dice.list(Self::small),
                        to_start: dice.list(Self::small),
                        to_end: dice.list(Self::small),
                        to_step: dice.list(Self::small),
                    }),
                    version_number: 0,
                    input_devices_for_output: Vec::new(),
                }),
                array_handles: self.list(Self::handle),
                copy_semantics: self.semantics(),
                result_handles: self.list(Self::handle),
            }),
            17 | 18 => Request::CopyArraysRequest(CopyArraysRequest {
                array_handles: self.list(Self::handle),
                device_ids: self.list(Self::number),
                memory_kind: self.maybe(|dice| {
                    ["", "device", "pinned_host", "attic"][usize::try_from(dice.roll(4)).unwrap()]
                        .to_owned()
                }),
                copy_semantics: self.semantics(),
                result_handles: self.list(Self::handle),
            }),
            19 => Request::MakeErrorArraysRequest(MakeErrorArraysRequest {
                error: self.maybe(|dice| StatusProto {
                    code: dice.number(),
                    message: "noise".to_owned(),
                    payload: Default::default(),
                }),
                array_specs: self.specs(server),
                array_handles: self.list(Self::handle),
            }),
            20 => Request::GetDefaultLayoutRequest(GetDefaultLayoutRequest {
                dtype: self.dtype(),
                dims: self.list(Self::small),
                device_id: self.number(),
                memory_kind: String::new(),
            }),
            21 => Request::ReshardArraysRequest(ReshardArraysRequest {
                array_handles: self.list(Self::handle),
                array_specs: self.specs(server),
                copy_semantics: self.semantics(),
                result_handles: self.list(Self::handle),
            }),
            22 => Request::BitcastArraysRequest(BitcastArraysRequest {
                array_handles: self.list(Self::handle),
                array_specs: self.specs(server),
                copy_semantics: self.semantics(),
                result_handles: self.list(Self::handle),
            }),
            kind => self.executable_question(kind),
        }
    }

    fn executable_question(&mut self, kind: u64) -> Request {
        let loaded_executable_handle = self.handle();
        match kind {
            23 => Request::LoadedExecutableMetadataRequest(LoadedExecutableMetadataRequest {
                loaded_executable_handle,
            }),
            24 => {
                Request::LoadedExecutableCostAnalysisRequest(LoadedExecutableCostAnalysisRequest {
                    loaded_executable_handle,
                })
            }
            25 => Request::LoadedExecutableHumanReadableProgramTextRequest(
                LoadedExecutableHumanReadableProgramTextRequest {
                    loaded_executable_handle,
                },
            ),
            26 => Request::LoadedExecutableFetchExecuteResultRequest(
                LoadedExecutableFetchExecuteResultRequest {
                    result_status_handle: loaded_executable_handle,
                },
            ),
            27 => Request::LoadedExecutableDeleteRequest(LoadedExecutableDeleteRequest {
                loaded_executable_handle,
            }),
            28 => Request::LoadedExecutableMpmdCostAnalysisRequest(
                LoadedExecutableMpmdCostAnalysisRequest {
                    loaded_executable_handle,
                },
            ),
            _ => Request::LoadedHostCallbackReturnRequest(LoadedHostCallbackReturnRequest {
                host_callback_execution_handle: loaded_executable_handle,
                result: None,
            }),
        }
    }
}

/// An array with anything in its request; its buffer is uploaded.
async fn make_anything(dice: &mut Dice, server: &TestServer, client: &mut TestClient, buffer: u64) {
    let Request::MakeArrayFromHostBufferRequest(mut request) =
        make_array(&*server.fake, buffer, &[0], 1)
    else {
        unreachable!("a request to make an array");
    };
    request.array_handle = Some(dice.handle());
    if dice.roll(2) == 0 {
        request.dtype = dice.dtype();
        request.shape = dice.shape();
        request.sharding = dice.sharding(server);
        request.byte_strides = dice.strides();
        request.layout = dice.maybe(|dice| LayoutProto {
            serialized_layout: dice.maybe(|dice| Serialized {
                type_name: "xla::ifrt::PjRtLayout".to_owned(),
                data: dice.bytes(),
            }),
        });
    }
    client.upload(buffer, &1.0_f32.to_le_bytes()).await.unwrap();
    client.send(Request::MakeArrayFromHostBufferRequest(request));
}

async fn make_noise(seed: u64, requests: u64) {
    // Not so much memory that a random shape could take all of the machine's.
    let options = FakeOptions {
        memory_bytes: 1 << 20,
        ..FakeOptions::default()
    };
    let server = TestServer::with(options, Limits::default()).await;
    let mut bystander = server.client().await;
    let array = bystander.put(&*server.fake, 0, &[1.0]).await;
    let mut client = server.client().await;
    let mut dice = Dice(seed);
    // The first request was init.
    let first = 2;
    for number in 0..requests {
        client.user_context_id = dice.roll(4);
        if dice.roll(6) == 0 {
            make_anything(&mut dice, &server, &mut client, 1000 + number).await;
        } else {
            let request = dice.request(&server);
            client.send(request);
        }
    }
    let mut succeeded = 0;
    for op_id in first..first + requests {
        let response = client.response(op_id).await;
        let metadata = response.response_metadata.unwrap();
        let text = format!("seed {seed}, request {op_id}: {metadata:?}");
        assert!(!text.contains("panicked"), "{text}");
        assert!(!text.contains("without an answer"), "{text}");
        let failed = metadata.status.is_some_and(|status| status.code != 0);
        assert_ne!(failed, response.response.is_some(), "{text}");
        succeeded += u64::from(!failed);
    }
    // Noise that is all refused would say nothing.
    assert!(
        succeeded > requests / 8,
        "seed {seed}: {succeeded} succeeded"
    );
    assert!(
        succeeded < requests * 4 / 5,
        "seed {seed}: {succeeded} succeeded"
    );
    assert_eq!(bystander.fetch(array).await.unwrap(), [1.0]);
    drop(client);
    drop(bystander);
    let fake = server.fake.clone();
    server.stop().await.unwrap();
    assert_eq!(fake.live_bytes(), 0, "seed {seed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_at_random() {
    for seed in 1..=8 {
        make_noise(seed * 0x9e37_79b9, 1500).await;
    }
}
