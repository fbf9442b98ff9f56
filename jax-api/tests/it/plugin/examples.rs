//! The examples as a person runs them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::plugin;

/// An example; cargo builds them together with the tests.
fn example(name: &str) -> Command {
    let own = std::env::current_exe().unwrap();
    let path = own
        .ancestors()
        .nth(2)
        .unwrap()
        .join("examples")
        .join(name)
        .with_extension(std::env::consts::EXE_EXTENSION);
    assert!(
        path.exists(),
        "{} is missing; build it with: cargo build -p jax-api --all-features --examples",
        path.display()
    );
    let mut command = Command::new(path);
    command.env("PJRT_PLUGIN_LIBRARY_PATH", plugin());
    command
}

fn text(output: &Output) -> String {
    let both = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8(both).unwrap()
}

/// Runs it; gives its output if it exits like this.
#[track_caller]
fn exits(command: &mut Command, code: i32) -> String {
    let output = command.output().unwrap();
    let text = text(&output);
    assert_eq!(output.status.code(), Some(code), "{command:?}\n{text}");
    text
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/exports")
}

#[test]
fn stories() {
    for name in ["delete", "sharding", "training"] {
        let text = exits(&mut example(name), 0);
        assert!(text.lines().any(|line| line.starts_with("ok: ")), "{text}");
        assert!(!text.contains("FAILED"), "{text}");
        let lost = exits(example(name).env_remove("PJRT_PLUGIN_LIBRARY_PATH"), 2);
        assert!(lost.contains("which plugin?"), "{lost}");
    }
}

/// The files that jax.export has written, with the arguments and results that JAX had for them.
fn cases() -> Vec<(String, PathBuf, Vec<PathBuf>)> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_none_or(|extension| extension != "jaxexport")
        {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let archives = (0..)
            .map(|n| folder().join(format!("{name}.{n}.npz")))
            .take_while(|archive| archive.exists())
            .collect();
        cases.push((name, path, archives));
    }
    cases.sort();
    cases
}

#[cfg(feature = "proxy")]
#[test]
fn a_far_device() {
    let server = super::far::serve(8);
    let address = server.address().to_string();
    let text = exits(example("far_device").arg(address), 0);
    assert!(text.lines().any(|line| line.starts_with("ok: ")), "{text}");
    assert!(!text.contains("FAILED"), "{text}");
    let lost = exits(example("far_device").env_remove("JAX_BACKEND_TARGET"), 2);
    assert!(lost.contains("which server?"), "{lost}");
    let scratch = tempfile::tempdir().unwrap();
    let nobody = format!("grpc://unix:{}", scratch.path().join("none").display());
    let text = exits(example("far_device").arg(&nobody), 1);
    assert!(text.contains("check the address"), "{text}");
}

#[cfg(feature = "proxy")]
#[test]
fn every_exported_function_far_away() {
    let server = super::far::serve(8);
    let one_device = super::far::serve(1);
    for (name, model, archives) in cases() {
        if name.starts_with("symbolic") || name == "custom_call_lapack" {
            continue;
        }
        let server = if name.starts_with("sharded") {
            &server
        } else {
            &one_device
        };
        for archive in &archives {
            let mut command = example("exported");
            command
                .arg(&model)
                .arg(archive)
                .arg("--expect")
                .arg(archive);
            command.arg("--client").arg(server.address().to_string());
            let text = exits(command.env_remove("PJRT_PLUGIN_LIBRARY_PATH"), 0);
            assert!(text.contains("results are as expected"), "{name}: {text}");
        }
    }
}

#[test]
fn every_exported_function() {
    let cases = cases();
    assert!(cases.len() >= 26, "{cases:?}");
    for (name, model, archives) in cases {
        let described = exits(example("exported").arg(&model), 0);
        assert!(described.contains("in0: "), "{described}");
        if name == "custom_call_lapack" && !cfg!(feature = "lapack") {
            continue;
        }
        for archive in &archives {
            let mut command = example("exported");
            command
                .arg(&model)
                .arg(archive)
                .arg("--expect")
                .arg(archive);
            if name.starts_with("symbolic") {
                let text = exits(&mut command, 1);
                assert!(text.contains("Export it once for each shape"), "{text}");
                continue;
            }
            let text = exits(&mut command, 0);
            assert!(text.contains("results are as expected"), "{name}: {text}");
            assert!(text.contains("first run"), "{name}: {text}");
        }
    }
}

#[test]
fn results_that_are_not_as_expected() {
    let add = folder().join("add.jaxexport");
    let archive = folder().join("add.0.npz");
    let mut arrays = jax_api::npz::load(&archive).unwrap();
    let right = arrays["out0"].bytes().unwrap();
    let mut wrong = right.to_vec();
    wrong[..4].copy_from_slice(&1000.0_f32.to_ne_bytes());
    let shape = arrays["out0"].shape().clone();
    let wrong = jax_api::HostArray::new(jax_api::DType::F32, shape, wrong).unwrap();
    arrays.insert("out0".to_owned(), wrong);
    let scratch = tempfile::tempdir().unwrap();
    let expected = scratch.path().join("expected.npz");
    fs::write(&expected, jax_api::npz::write(arrays).unwrap()).unwrap();
    let mut command = example("exported");
    command
        .arg(&add)
        .arg(&archive)
        .arg("--expect")
        .arg(&expected);
    let text = exits(&mut command, 1);
    assert!(text.contains("FAILED: out0"), "{text}");
    assert!(text.contains("1 of 1 results are not"), "{text}");
    exits(command.args(["--tolerance", "10000"]), 0);
}

#[test]
fn results_in_a_file() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out.npz");
    let (model, archive) = (folder().join("mlp.jaxexport"), folder().join("mlp.0.npz"));
    let mut command = example("exported");
    command.arg(&model).arg(&archive).arg("--out").arg(&out);
    let text = exits(command.args(["--runs", "3"]), 0);
    assert!(text.contains("2 more runs"), "{text}");
    // What was written is what is expected the next time.
    let mut command = example("exported");
    command.arg(&model).arg(&archive).arg("--expect").arg(&out);
    let text = exits(&mut command, 0);
    assert!(text.contains("largest error 0"), "{text}");
}

#[test]
fn what_a_person_gets_wrong() {
    let file = |name: &str| folder().join(name);
    let add = file("add.jaxexport");
    for (args, code, words) in [
        (vec![], 2, "MODEL.jaxexport"),
        (vec![PathBuf::from("no/such/file")], 1, "no/such/file"),
        (vec![file("add.0.npz")], 1, "add.0.npz"),
        (vec![add.clone(), add.clone()], 1, "not an npz archive"),
        (
            vec![add.clone(), file("mlp.0.npz")],
            1,
            "argument 0 must be float32[4], but the array 'in0' is float32[16]",
        ),
        (
            vec![file("mlp.jaxexport"), file("add.0.npz")],
            1,
            "argument 0 must be float32[16]",
        ),
        (
            vec![
                add.clone(),
                file("add.0.npz"),
                "--client".into(),
                "http://x".into(),
            ],
            2,
            "grpc://127.0.0.1:8470",
        ),
        (
            vec![
                add,
                file("add.0.npz"),
                "--plugin".into(),
                "no/such/plugin.so".into(),
            ],
            1,
            "no/such/plugin.so",
        ),
    ] {
        let text = exits(example("exported").args(&args), code);
        assert!(text.contains(words), "{args:?}: {text}");
    }
    let help = exits(example("exported").arg("--help"), 0);
    for words in ["IN.npz", "--expect", "--client", "--tolerance"] {
        assert!(help.contains(words), "{help}");
    }
}
