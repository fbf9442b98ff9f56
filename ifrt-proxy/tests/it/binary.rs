//! The command line of `ifrt-proxy-server`, as far as it needs no plugin.

use std::process::{Command, Output};

use ifrt_proxy::server::Listener;

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ifrt-proxy-server"))
        .args(args)
        .env_remove("PJRT_PLUGIN_LIBRARY_PATH")
        .env_remove("RUST_LOG")
        .output()
        .unwrap()
}

/// Runs the server and returns what it says when it does not start.
#[track_caller]
fn refused(args: &[&str]) -> String {
    let output = run(args);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{args:?}: {text}");
    assert!(output.stdout.is_empty(), "{args:?}");
    let (_, error) = text.rsplit_once("error: ").unwrap();
    assert!(!error.contains("panicked"), "{args:?}: {text}");
    error.to_owned()
}

#[test]
fn without_a_plugin() {
    let error = refused(&[]);
    assert!(error.contains("--plugin PATH"), "{error}");
    assert!(error.contains("PJRT_PLUGIN_LIBRARY_PATH"), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing.so");
    let error = refused(&["--plugin", missing.to_str().unwrap()]);
    assert!(error.contains("missing.so"), "{error}");
    let text = dir.path().join("text.so");
    std::fs::write(&text, "no library").unwrap();
    let error = refused(&["--plugin", text.to_str().unwrap()]);
    assert!(error.contains("text.so"), "{error}");
}

#[test]
fn addresses_that_others_reach() {
    let error = refused(&["--listen", "grpc://0.0.0.0:0"]);
    assert!(error.contains("other machines"), "{error}");
    // With the flag only the plugin is missing.
    let args = [
        "--listen",
        "grpc://0.0.0.0:0",
        "--insecure-listen-on-any-address",
    ];
    assert!(refused(&args).contains("--plugin PATH"));
}

#[tokio::test]
async fn addresses_in_use() {
    let listener = Listener::bind(&"grpc://127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    let address = listener.address().to_string();
    let error = refused(&["--listen", &address]);
    assert!(error.contains("in use"), "{error}");
    assert!(error.contains("port 0"), "{error}");

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.sock");
    let address = format!("grpc://unix:{}", path.display());
    let listener = Listener::bind(&address.parse().unwrap()).await.unwrap();
    let error = refused(&["--listen", &address]);
    assert!(error.contains("another server listens"), "{error}");
    drop(listener);
    // A server that does not start leaves no socket behind.
    refused(&["--listen", &address]);
    assert!(!path.exists());
}

#[test]
fn mistakes_on_the_command_line() {
    let output = run(&["--listen", "127.0.0.1:8000"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    for form in [
        "grpc://127.0.0.1:PORT",
        "grpcs://HOST:PORT",
        "grpc://unix:PATH",
    ] {
        assert!(text.contains(form), "{text}");
    }
    let error = refused(&["--token-file", "/missing/token"]);
    assert!(
        error.contains("/missing/token") && error.contains("openssl"),
        "{error}"
    );
    let error = refused(&["--listen", "grpcs://127.0.0.1:0"]);
    assert!(error.contains("--tls-certificate"), "{error}");
    let error = refused(&["--log", "[["]);
    assert!(error.contains("--log info"), "{error}");
    let error = refused(&["--plugin", "x.so", "--option", "novalue"]);
    assert!(error.contains("novalue"), "{error}");
}

#[test]
fn help_shows_how_to_use_it_from_jax() {
    let output = run(&["--help"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "JAX_PLATFORMS=proxy",
        "JAX_BACKEND_TARGET=",
        "cpu_device_count=8",
        "unix:",
    ] {
        assert!(text.contains(part), "{part}");
    }
}
