use super::*;

fn avals(text: &str) -> Option<Vec<String>> {
    let signature = Signature::parse(text)?;
    let name = |parameter: &Parameter| match &parameter.aval {
        Some(aval) => aval.to_string(),
        None => "?".into(),
    };
    Some(signature.parameters.iter().map(name).collect())
}

#[test]
fn types_of_parameters() {
    for (parameters, expected) in [
        ("", &[][..]),
        ("%arg0: tensor<4x8xf32>", &["float32[4,8]"]),
        (
            "%a: tensor<f32>, %b: tensor<2xi1>, %c: tensor<3xui8>, %d: tensor<1xi4>",
            &["float32[]", "bool[2]", "uint8[3]", "int4[1]"],
        ),
        (
            "%a: tensor<2xcomplex<f32>>, %b: tensor<2x3xf8E4M3FN>, %c: tensor<0xbf16>",
            &["complex64[2]", "float8_e4m3fn[2,3]", "bfloat16[0]"],
        ),
        (
            "%a: tensor<16xf32> {tf.aliasing_output = 0 : i32} loc(\"state\"), %b: tensor<6xi32> loc(\"x, y\")",
            &["float32[16]", "int32[6]"],
        ),
        (
            "%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"data\"}, {}]>} loc(\"x\"), %b: !stablehlo.token",
            &["float32[8,6]", "token[]"],
        ),
        (
            "%a: tensor<4xf32> {mhlo.sharding = \"{devices=[8]<=[8]}\"}, %b: tensor<?x2xf32>, %c: tensor<2xf32, #stablehlo.bounds<2>>",
            &["float32[4]", "?", "float32[2]"],
        ),
    ] {
        let text = format!(
            "module @m {{\n  func.func public @main({parameters}) -> (tensor<f32> {{a = \"(\"}}) {{\n  }}\n}}"
        );
        let found = avals(&text).unwrap_or_else(|| panic!("{parameters}"));
        assert_eq!(found, expected, "{parameters}");
    }
}

#[test]
fn what_is_not_understood_is_no_signature() {
    for module in [
        "",
        "@main",
        "@main(",
        "@main(%a: tensor<",
        "@main(%a)",
        "@main(%a: tensor<2xf32> {",
        "@main(\"",
        "@main(%a: tensor<2xf32>]",
    ] {
        assert_eq!(Signature::parse(module), None, "{module}");
    }
    assert_eq!(text(b"ML\xefR\x00"), None);
    assert_eq!(text(b"\xff\xfe"), None);
}

#[test]
fn partitions() {
    let text =
        "module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}";
    assert_eq!(num_partitions(text), Some(8));
    assert_eq!(num_partitions("module @jit_f"), None);
    assert_eq!(num_partitions("mhlo.num_partitions = x"), None);
}

#[test]
fn donation_is_marked_where_it_is_missing() {
    let text = "@main(%a: tensor<2xf32>, %b: tensor<2xf32> {x = 1}, %c: tensor<2xf32> \
                {tf.aliasing_output = 0 : i32}, %d: tensor<2xf32> {})";
    let signature = Signature::parse(text).unwrap();
    let donated: Vec<bool> = signature.parameters.iter().map(|p| p.is_donated).collect();
    assert_eq!(donated, [false, false, true, false]);
    let marked = signature.mark_donated(text, &[0, 1, 2, 3]);
    assert_eq!(
        marked,
        "@main(%a: tensor<2xf32> {jax.buffer_donor = true}, %b: tensor<2xf32> \
         {jax.buffer_donor = true, x = 1}, %c: tensor<2xf32> {tf.aliasing_output = 0 : i32}, %d: \
         tensor<2xf32> {jax.buffer_donor = true})"
    );
    let again = Signature::parse(&marked).unwrap();
    assert!(
        again
            .parameters
            .iter()
            .all(|parameter| parameter.is_donated)
    );
    assert_eq!(signature.mark_donated(text, &[]), text);
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[@main(%a:b tensor<2xf32>{}\\[\\]\",\\\\>=-]{0,60}") {
        let text = format!("@main({text}");
        if let Some(signature) = Signature::parse(&text) {
            let all: Vec<usize> = (0..signature.parameters.len()).collect();
            signature.mark_donated(&text, &all);
        }
    }
}
