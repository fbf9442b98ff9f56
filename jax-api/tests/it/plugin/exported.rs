//! Functions that several versions of JAX have exported.

use std::path::PathBuf;

use half::bf16;
use jax_api::prelude::*;
use jax_api::{DType, Error, HostArray, Tree, npz};

use super::client;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/exports")
}

fn load(name: &str) -> Exported {
    Exported::load(folder().join(format!("{name}.jaxexport"))).unwrap()
}

/// Arrays of a case; types that NumPy does not have are stored as bits.
fn arrays(name: &str, which: &str, avals: &[jax_api::ExportedAval]) -> Vec<HostArray> {
    let file = npz::load(folder().join(format!("{name}.0.npz"))).unwrap();
    let read = |(n, aval): (usize, &jax_api::ExportedAval)| {
        let aval = aval.to_runtime().unwrap();
        let array = file[&format!("{which}{n}")].with_dtype(aval.dtype).unwrap();
        assert_eq!(array.aval(), &aval, "{name} {which}{n}");
        array
    };
    avals.iter().enumerate().map(read).collect()
}

fn floats(array: &HostArray) -> Option<Vec<f32>> {
    let bytes = array.bytes().unwrap();
    match array.dtype() {
        DType::F32 | DType::C64 => Some(
            bytes
                .as_chunks::<4>()
                .0
                .iter()
                .map(|chunk| f32::from_le_bytes(*chunk))
                .collect(),
        ),
        DType::BF16 => Some(
            bytes
                .as_chunks::<2>()
                .0
                .iter()
                .map(|chunk| bf16::from_le_bytes(*chunk).to_f32())
                .collect(),
        ),
        _ => None,
    }
}

/// Equal, floats up to rounding.
fn assert_close(name: &str, found: &HostArray, expected: &HostArray) {
    assert_eq!(found.aval(), expected.aval(), "{name}");
    let (Some(found_floats), Some(expected_floats)) = (floats(found), floats(expected)) else {
        assert_eq!(found, expected, "{name}");
        return;
    };
    let tolerance = if found.dtype() == DType::BF16 {
        1e-2
    } else {
        1e-5
    };
    for (found, expected) in found_floats.iter().zip(&expected_floats) {
        let allowed = tolerance * expected.abs().max(1.0);
        assert!(
            (found - expected).abs() <= allowed,
            "{name}: {found} {expected}"
        );
    }
}

fn run(client: &Client, name: &str) {
    let exported = load(name);
    let f = exported.compile(client).unwrap();
    let inputs: Vec<Array> = arrays(name, "in", exported.in_avals())
        .iter()
        .map(|input| device_put(input, client).unwrap())
        .collect();
    let args: Vec<jit::Arg<'_>> = inputs.iter().map(jit::Arg::from).collect();
    let expected = arrays(name, "out", exported.out_avals());
    for _ in 0..2 {
        let outputs = f.call(&args).unwrap();
        assert_eq!(outputs.len(), expected.len(), "{name}");
        for (found, expected) in outputs.iter().zip(&expected) {
            assert_close(name, &found.to_host().unwrap(), expected);
        }
    }
    assert!(inputs.iter().all(|input| !input.is_deleted()), "{name}");
}

#[test]
fn functions_on_one_device() {
    run_on_one_device(&client(1));
}

pub(crate) fn run_on_one_device(client: &Client) {
    for name in [
        "add",
        "add-jax0.4.30",
        "add-jax0.6.2",
        "add-jax0.8.2",
        "bfloat16",
        "constants",
        "donated",
        "dtypes",
        "loop",
        "mlp",
        "mlp-jax0.4.30",
        "mlp-jax0.8.2",
        "mlp-jax0.9.1",
        "multi_platform",
        "multi_platform_uniform",
        "nested_kwargs",
        "prng_key",
        "unused_arg",
    ] {
        run(client, name);
    }
}

#[cfg(feature = "lapack")]
#[test]
fn a_function_with_linear_algebra() {
    run(&client(1), "custom_call_lapack");
}

#[test]
fn functions_over_eight_devices() {
    run_on_eight_devices(&client(8));
}

pub(crate) fn run_on_eight_devices(client: &Client) {
    for name in [
        "sharded8",
        "sharded8-jax0.4.30",
        "sharded8-jax0.6.2",
        "sharded8-jax0.8.2",
        "sharded8-jax0.9.1",
    ] {
        run(client, name);
    }
    let f = load("sharded8").compile(client).unwrap();
    let mesh = Mesh::new(client.devices(), [("data", 4), ("model", 2)]).unwrap();
    let rows = NamedSharding::new(&mesh, P!["data", None]).unwrap();
    let columns = NamedSharding::new(&mesh, P![None, "model"]).unwrap();
    let x = device_put((&[1.0_f32; 48], [8, 6]), &rows).unwrap();
    let w = device_put((&[1.0_f32; 24], [6, 4]), &columns).unwrap();
    let y = f.call(args![&x, &w]).unwrap().remove(0);
    assert_eq!(y.shape(), [8, 4]);
    assert!(
        format!("{}", y.sharding()).contains("spec=P('data', 'model')"),
        "{}",
        y.sharding()
    );
}

#[test]
fn what_a_file_says() {
    let mlp = load("mlp");
    assert_eq!(mlp.function_name(), "mlp");
    assert_eq!(mlp.platforms(), ["cpu"]);
    assert_eq!(mlp.nr_devices(), 1);
    let avals: Vec<String> = mlp.in_avals().iter().map(ToString::to_string).collect();
    assert_eq!(
        avals,
        [
            "float32[16]",
            "float32[8,16]",
            "float32[4]",
            "float32[16,4]",
            "float32[3,8]"
        ]
    );
    assert_eq!(mlp.out_avals()[0].to_string(), "float32[3,4]");
    assert_eq!(
        mlp.in_tree().to_string(),
        "(([{'b': *, 'w': *}, {'b': *, 'w': *}], *), {})"
    );
    assert_eq!(mlp.out_tree().to_string(), "*");
    assert!(mlp.vjp().is_none());
    assert!(format!("{mlp:?}").contains("mlp"));
    let symbolic = load("symbolic_batch");
    assert!(
        symbolic
            .in_avals()
            .iter()
            .any(|aval| aval.to_string().contains('b'))
    );
}

#[test]
fn a_donated_argument() {
    donates(&client(1));
}

pub(crate) fn donates(client: &Client) {
    let exported = load("donated");
    let f = exported.compile(client).unwrap();
    let inputs = arrays("donated", "in", exported.in_avals());
    let state = device_put(&inputs[0], client).unwrap();
    let gradient = device_put(&inputs[1], client).unwrap();
    let outputs = f.call(args![donate(&state), &gradient]).unwrap();
    assert!(state.is_deleted() && !gradient.is_deleted());
    let expected = arrays("donated", "out", exported.out_avals());
    assert_close("donated", &outputs[0].to_host().unwrap(), &expected[0]);
}

#[test]
fn functions_that_cannot_run_here() {
    let client = client(2);
    let error = load("symbolic_batch").compile(&client).unwrap_err();
    assert!(matches!(error, Error::NeedsShapeRefinement(_)), "{error}");
    let error = load("sharded8").compile(&client).unwrap_err();
    assert_eq!(
        error,
        Error::DeviceCountMismatch(
            "Function shmm was exported for 8 devices and is called in a context with 2 devices, \
             which is not allowed."
                .to_owned()
        )
    );
    let add = load("add");
    assert!(matches!(
        add.compile_on(client.devices()),
        Err(Error::DeviceCountMismatch(_))
    ));
    assert!(add.compile_on(&[]).is_err());
    let f = add.compile_on(&client.devices()[1..]).unwrap();
    let x = device_put(&[1.0_f32; 4], &client.devices()[1]).unwrap();
    let short = device_put(&[1.0_f32; 3], &client.devices()[1]).unwrap();
    let dead = device_put(&[1.0_f32; 4], &client.devices()[1]).unwrap();
    dead.delete();
    assert!(matches!(f.call(args![&x]), Err(Error::ArgumentMismatch(_))));
    let types = f.call(args![&x, &short]).unwrap_err();
    assert!(
        types
            .to_string()
            .ends_with("Argument 1 compiled with float32[4] and called with float32[3]"),
        "{types}"
    );
    assert!(matches!(
        f.call(args![&x, &dead]),
        Err(Error::ArrayDeleted { .. })
    ));
    assert!(matches!(
        Exported::load("no/such/file"),
        Err(Error::File { path, .. }) if path == "no/such/file"
    ));
}

#[test]
fn ordered_effects_are_threaded_from_call_to_call() {
    threads_effects(&client(1));
}

pub(crate) fn threads_effects(client: &Client) {
    let exported = load("ordered_effects");
    let f = exported.compile(client).unwrap();
    let inputs: Vec<Array> = exported
        .in_avals()
        .iter()
        .map(|aval| {
            let aval = aval.to_runtime().unwrap();
            let len = usize::try_from(aval.shape.num_elements()).unwrap();
            let bytes = vec![0; len * aval.dtype.byte_size().unwrap()];
            let host = HostArray::new(aval.dtype, aval.shape, bytes).unwrap();
            device_put(&host, client).unwrap()
        })
        .collect();
    let args: Vec<jit::Arg<'_>> = inputs.iter().map(jit::Arg::from).collect();
    for _ in 0..3 {
        let outputs = f.call(&args).unwrap();
        assert_eq!(outputs.len(), exported.out_avals().len());
        for output in &outputs {
            output.block_until_ready().unwrap();
        }
    }
}

#[test]
fn arguments_as_trees() {
    let client = client(1);
    let exported = load("mlp");
    let f = exported.compile(&client).unwrap();
    let inputs: Vec<Array> = arrays("mlp", "in", exported.in_avals())
        .iter()
        .map(|input| device_put(input, &client).unwrap())
        .collect();
    let leaf = |n: usize| Tree::Leaf(jit::Arg::from(&inputs[n]));
    let layer = |b, w| Tree::dict([("w", leaf(w)), ("b", leaf(b))]);
    let params = Tree::List(vec![layer(0, 1), layer(2, 3)]);
    let results = f.call_tree(vec![params.clone(), leaf(4)], []).unwrap();
    let Tree::Leaf(result) = results else {
        panic!("{results:?}");
    };
    let expected = arrays("mlp", "out", exported.out_avals());
    assert_close("mlp", &result.to_host().unwrap(), &expected[0]);

    let without_bias = Tree::List(vec![layer(0, 1), Tree::dict([("w", leaf(3))])]);
    for (args, named, words) in [
        (
            vec![params.clone()],
            vec![],
            "args must be a tuple of 2, but is a tuple of 1",
        ),
        (
            vec![without_bias, leaf(4)],
            vec![],
            "args[0][1] must have the keys ['b', 'w'], but has ['w']",
        ),
        (
            vec![params.clone(), Tree::None],
            vec![],
            "args[1] must be an array, but is None",
        ),
        (
            vec![params, leaf(4)],
            vec![("training", leaf(4))],
            "kwargs must have the keys [], but has ['training']",
        ),
    ] {
        let error = f.call_tree(args, named).unwrap_err();
        assert!(matches!(error, Error::ArgumentMismatch(_)), "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.to_string().contains("mlp"), "{error}");
    }
}

#[test]
fn results_as_trees() {
    let client = client(1);
    let exported = load("nested_kwargs");
    let f = exported.compile(&client).unwrap();
    let inputs: Vec<Array> = arrays("nested_kwargs", "in", exported.in_avals())
        .iter()
        .map(|input| device_put(input, &client).unwrap())
        .collect();
    let leaves = inputs.iter().map(jit::Arg::from);
    let given = Tree::from_leaves(exported.in_tree(), leaves).unwrap();
    let Tree::Tuple(mut parts) = given else {
        panic!("{given:?}");
    };
    let (Some(Tree::Dict(named)), Some(Tree::Tuple(args))) = (parts.pop(), parts.pop()) else {
        panic!("{parts:?}");
    };
    let named: Vec<_> = named
        .iter()
        .map(|(key, value)| (key.as_str(), value.clone()))
        .collect();
    let results = f.call_tree(args, named).unwrap();
    assert_eq!(&results.structure(), exported.out_tree());
    let expected = arrays("nested_kwargs", "out", exported.out_avals());
    for (found, expected) in results.leaves().iter().zip(&expected) {
        assert_close("nested_kwargs", &found.to_host().unwrap(), expected);
    }
}
