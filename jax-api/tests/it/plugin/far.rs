//! The same through a server: nothing else is different.

use std::time::{Duration, Instant};

use ifrt_pjrt::{CreateOptions, PjrtClient};
use ifrt_proxy::server::{Background, Server};
use jax_api::prelude::*;
use jax_api::{Error, ProxyOptions};

use super::{exported, plugin};

/// A server of so many devices.
pub(super) fn serve(devices: usize) -> Background {
    let options = CreateOptions::parse([format!("cpu_device_count={devices}")]).unwrap();
    let runtime = PjrtClient::create(&plugin(), &options).unwrap();
    let address = "grpc://127.0.0.1:0".parse().unwrap();
    Server::builder(runtime)
        .build()
        .in_background(&address)
        .unwrap()
}

fn connect(server: &Background) -> Client {
    Client::proxy(&server.address().to_string()).unwrap()
}

#[test]
fn exported_functions() {
    let server = serve(1);
    let client = connect(&server);
    exported::run_on_one_device(&client);
    exported::donates(&client);
    exported::threads_effects(&client);
}

#[test]
fn exported_functions_over_eight_devices() {
    let server = serve(8);
    exported::run_on_eight_devices(&connect(&server));
}

#[test]
fn elements_there_and_back() {
    let server = serve(2);
    let client = connect(&server);
    let device = &client.devices()[1];
    let numbers: Vec<f64> = (0..1000).map(f64::from).collect();
    let x = device_put(&numbers, device).unwrap();
    assert_eq!(x.to_vec::<f64>().unwrap(), numbers);
    let large = vec![7_u8; 5 << 20];
    let x = device_put(&large, device).unwrap();
    assert_eq!(x.to_vec::<u8>().unwrap(), large);
    let nothing = device_put(&[0_i32; 0], device).unwrap();
    assert!(nothing.to_vec::<i32>().unwrap().is_empty());
}

/// Whatever is asked after the end fails soon, and deletion does not fail at all.
#[test]
fn a_server_that_goes() {
    let server = serve(1);
    let client = connect(&server);
    let x = device_put(&[1.0_f32; 4], &client).unwrap();
    x.block_until_ready().unwrap();
    server.stop().unwrap();
    let began = Instant::now();
    let error = x.to_vec::<f32>().unwrap_err();
    assert!(matches!(error, Error::Runtime(_)), "{error}");
    assert!(matches!(error, Error::Runtime(_)), "{error}");
    assert!(error.to_string().contains("UNAVAILABLE"), "{error}");
    x.delete();
    assert!(x.is_deleted());
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn what_cannot_be_reached() {
    let malformed = Client::proxy("127.0.0.1:1").unwrap_err();
    assert!(
        malformed.to_string().contains("grpc://host:port"),
        "{malformed}"
    );
    let scratch = tempfile::tempdir().unwrap();
    let address = format!("grpc://unix:{}", scratch.path().join("none").display());
    let options = ProxyOptions::new().connect_timeout(Duration::from_secs(10));
    let nobody = Client::proxy_with(&address, options).unwrap_err();
    assert!(nobody.to_string().contains(&address), "{nobody}");
    assert!(nobody.to_string().contains("UNAVAILABLE"), "{nobody}");
}
