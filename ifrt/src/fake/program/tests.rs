use super::*;

fn load(text: &str) -> Result<FakeProgram> {
    Programs::with_standard_kernels().load(text.as_bytes())
}

#[test]
fn types_are_read() {
    let program = load(
        "fake:add(f32[4,2] tiled[2,1] donated, f32[4,2]) -> (f32[4,2] tiled[2,1] in pinned_host)\n",
    )
    .unwrap();
    assert_eq!(program.name, "add");
    assert_eq!(program.num_devices(), 2);
    let [first, second] = &program.parameters[..] else {
        panic!("{program:?}")
    };
    assert!(first.donated && !second.donated);
    assert_eq!(first.sharding, HloSharding::tile([2, 1]).unwrap());
    assert_eq!(second.sharding, HloSharding::Replicated);
    let [output] = &program.outputs[..] else {
        panic!("{program:?}")
    };
    assert_eq!(output.dtype, DType::F32);
    assert_eq!(output.shape, Shape::new([4, 2]).unwrap());
    assert_eq!(output.memory_kind, MemoryKind::new("pinned_host"));
}

#[test]
fn no_parameters_and_no_results() {
    let program = load("fake:identity() -> ()").unwrap();
    assert!(program.parameters.is_empty() && program.outputs.is_empty());
    assert_eq!(program.num_devices(), 1);
    assert_eq!(load("fake:zeros() -> (s32[])").unwrap().outputs.len(), 1);
}

#[test]
fn other_modules_are_refused_with_the_words_of_the_reference() {
    for text in [
        "",
        "module {}",
        "fake:",
        "fake:nobody",
        "fake:nobody() -> ()",
        "fake:add",
        "fake:add(",
        "fake:add() -> ",
        "fake:add(f32) -> ()",
        "fake:add(f99[1]) -> ()",
        "fake:add(f32[-1]) -> ()",
        "fake:add(f32[1) -> ()",
        "fake:add(f32[9223372036854775807,2]) -> ()",
        "fake:add(f32[1] tiled[0]) -> ()",
        "fake:add(f32[1] tiled[99999999999]) -> ()",
        "fake:add(f32[1] sideways) -> ()",
        "fake:add(f32[1] in pinned_host) -> ()",
        "fake:add() -> (f32[1] donated)",
        "fake:add() -> (f32[1] in)",
    ] {
        let status = load(text).unwrap_err();
        assert_eq!(status.code(), crate::Code::InvalidArgument, "{text}");
        assert!(
            status
                .message()
                .starts_with("Failed to deserialize StableHLO module; "),
            "{text}: {status}"
        );
    }
    let bytecode = Programs::with_standard_kernels().load(b"ML\xefR\x0dStableHLO_v1.13.7");
    assert!(bytecode.is_err());
}

#[test]
fn kernels_do_arithmetic_in_the_dtype() {
    let run = |name: &str, dtype, inputs: &[&[u8]]| {
        let shape = Shape::new([1]).unwrap();
        let tensors: Vec<Tensor> = inputs
            .iter()
            .map(|data| Tensor {
                dtype,
                shape: shape.clone(),
                value: HostValue::Bytes(data.to_vec().into()),
            })
            .collect();
        let call = KernelCall {
            inputs: &tensors,
            outputs: &[(dtype, shape)],
        };
        let mut results = kernels::standard()[name](&call)?;
        results.remove(0).into_bytes().map(|bytes| bytes.to_vec())
    };
    let (two, half) = (2_f32.to_ne_bytes(), 0.5_f32.to_ne_bytes());
    assert_eq!(
        run("add", DType::F32, &[&two, &half, &half]),
        Ok(3_f32.to_ne_bytes().to_vec())
    );
    assert_eq!(run("add", DType::S8, &[&[127], &[1]]), Ok(vec![0x80]));
    assert_eq!(run("add_one", DType::U16, &[&[0xff, 0xff]]), Ok(vec![0, 0]));
    assert_eq!(run("zeros", DType::S64, &[]), Ok(vec![0; 8]));
    assert_eq!(run("identity", DType::S8, &[&[9]]), Ok(vec![9]));
    assert!(run("add", DType::S8, &[&[1], &[1, 2]]).is_err());
    assert!(run("add", DType::BF16, &[&[0, 0], &[0, 0]]).is_err());
    assert!(run("fail", DType::S8, &[]).is_err());
}
