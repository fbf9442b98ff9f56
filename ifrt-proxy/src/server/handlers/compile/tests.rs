use super::*;

fn serialized(type_name: &str, data: &[u8]) -> Serialized {
    Serialized {
        type_name: type_name.to_owned(),
        data: data.to_vec().into(),
    }
}

#[test]
fn programs_by_type() {
    assert!(matches!(
        program(serialized(XLA_PROGRAM, b"ML")).unwrap(),
        Program::Hlo(hlo) if hlo.module == "ML"
    ));
    assert!(matches!(
        program(serialized("xla::ifrt::PluginProgram", b"x")).unwrap(),
        Program::Other { .. }
    ));
    let error = program(serialized("xla::ifrt::Unheard", b"")).unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented);
    assert!(error.message().contains("xla::ifrt::Unheard"));
}

#[test]
fn options_stay_bytes() {
    // Field 1 with three bytes that are no message.
    let CompileOptions::Xla(xla) =
        options(serialized(XLA_OPTIONS, b"\x0a\x03\xff\xff\xff")).unwrap()
    else {
        panic!("other options");
    };
    assert_eq!(&xla.compile_options[..], b"\xff\xff\xff");
    for (data, code) in [
        (&b"\x0a\x03"[..], Code::InvalidArgument),
        (b"\x18\x05", Code::FailedPrecondition),
        (b"\x12\x01\x02", Code::Unimplemented),
    ] {
        let error = options(serialized(XLA_OPTIONS, data)).unwrap_err();
        assert_eq!(error.code(), code);
    }
}

#[test]
fn other_programs_make_jax_fall_back() {
    let unimplemented = Status::unimplemented("not here");
    let kind = Some("xla::ifrt::CustomCallProgram".to_owned());
    let error = compile_error(&unimplemented, kind.clone());
    assert!(
        error
            .message()
            .contains("PjRtCompiler requires an HloProgram")
    );
    assert_eq!(compile_error(&unimplemented, None), unimplemented);
    let other = Status::internal("x");
    assert_eq!(compile_error(&other, kind), other);
}
