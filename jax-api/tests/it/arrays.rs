//! Lists, guards, views, files: what arrays can do besides living and dying.

use std::sync::Arc;

use ifrt::fake::fault::Op;
use ifrt::fake::{FakeClient, FakeOptions};
use jax_api::prelude::*;
use jax_api::transfer_guard::{self, Direction, Level};
use jax_api::{DType, Error};

pub(crate) fn client() -> (Client, Arc<FakeClient>) {
    let fake = FakeClient::new(FakeOptions {
        num_devices: 8,
        ..FakeOptions::default()
    });
    (Client::from_ifrt(Arc::clone(&fake) as _), fake)
}

#[test]
fn the_list_of_live_arrays() {
    let (client, _) = client();
    assert!(client.live_arrays().is_empty());
    let mesh = Mesh::new(client.devices(), [("x", 8)]).unwrap();
    let split = NamedSharding::new(&mesh, P!["x"]).unwrap();
    let x = device_put(&[1.0_f32; 8], &split).unwrap();
    let clone = x.clone();
    assert_eq!(client.live_arrays().len(), 1, "a clone is the same array");
    let shards = x.addressable_shards().unwrap();
    assert_eq!(client.live_arrays().len(), 9, "as in JAX");
    let other = device_put(&[1_u8], &client).unwrap();
    assert_eq!(client.live_arrays().len(), 10);
    shards[3].data.delete();
    // The other shards still live; the whole does not.
    assert_eq!(client.live_arrays().len(), 8);
    drop((x, clone, shards));
    let live = client.live_arrays();
    assert_eq!(live.len(), 1);
    assert_eq!(live[0].dtype(), DType::U8);
    for array in live {
        array.delete();
    }
    assert!(other.is_deleted());
    assert!(client.live_arrays().is_empty());
}

#[test]
fn a_copy_on_the_host_in_advance() {
    let (client, fake) = client();
    let x = device_put(&[1.0_f32, 2.0], &client).unwrap();
    let copies = || fake.faults().calls(Op::CopyToHost);
    x.copy_to_host_async().unwrap();
    assert_eq!(copies(), 1);
    x.copy_to_host_async().unwrap();
    for _ in 0..3 {
        assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    }
    assert_eq!(copies(), 1, "what is there is not copied again");
    let alias = device_put(&x, &client.devices()[0]).unwrap();
    assert_eq!(alias.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    assert_eq!(copies(), 1);
    x.delete();
    assert!(matches!(
        x.copy_to_host_async(),
        Err(Error::ArrayDeleted { .. })
    ));
    assert!(matches!(
        alias.to_vec::<f32>(),
        Err(Error::ArrayDeleted { .. })
    ));
    assert_eq!(copies(), 1);
}

#[test]
fn views() {
    let (client, _) = client();
    let x = device_put((&[1.0_f32, 2.0, 3.0, 4.0], [2, 2]), &client).unwrap();
    let view = x.host_view().unwrap();
    x.delete();
    assert_eq!(view.shape(), [2, 2]);
    assert_eq!(view.dtype(), DType::F32);
    assert_eq!(view.bytes().unwrap().len(), 16);
    assert_eq!(*view.elements::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    let error = view.elements::<u32>().unwrap_err();
    assert!(matches!(error, Error::DtypeMismatch { .. }));
    let flags = device_put(&[true, false], &client).unwrap();
    let flags = flags.host_view().unwrap();
    assert_eq!(*flags.elements::<bool>().unwrap(), [true, false]);
    assert!(matches!(x.host_view(), Err(Error::ArrayDeleted { .. })));
}

#[test]
fn guards_against_transfers() {
    let (client, _) = client();
    let x = device_put(&[1.0_f32; 4], &client).unwrap();
    let f = jit::from_stablehlo("fake:identity(f32[4]) -> (f32[4])")
        .devices(&client.devices()[1..2])
        .compile(&client)
        .unwrap();
    let refused = |error: Error, words: &str| {
        assert!(matches!(error, Error::TransferGuard(_)), "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.to_string().contains("float32[4]"), "{error}");
    };
    // The argument has to move: nobody has asked for that.
    drop(f.call(args![&x]).unwrap());
    {
        let _guard = transfer_guard::scope(&Direction::ALL, Level::Disallow);
        refused(
            f.call(args![&x]).unwrap_err(),
            "Disallowed device-to-device transfer",
        );
        // These say what they do.
        let moved = device_put(&x, &client.devices()[1]).unwrap();
        drop(f.call(args![&moved]).unwrap());
        assert_eq!(x.to_vec::<f32>().unwrap(), [1.0; 4]);
        drop(device_put(&[1.0_f32; 4], &client).unwrap());
        {
            let _stricter = transfer_guard::scope(&Direction::ALL, Level::DisallowExplicit);
            refused(
                device_put(&[1.0_f32; 4], &client).unwrap_err(),
                "Disallowed host-to-device transfer",
            );
            refused(
                device_put(&x, &client.devices()[1]).unwrap_err(),
                "Disallowed device-to-device transfer",
            );
            refused(
                x.to_vec::<f32>().unwrap_err(),
                "Disallowed device-to-host transfer",
            );
            // Nothing moves.
            drop(device_put(&x, &client.devices()[0]).unwrap());
            drop(f.call(args![&moved]).unwrap());
            let elsewhere = std::thread::scope(|scope| {
                let read = scope.spawn(|| x.to_vec::<f32>());
                read.join().unwrap()
            });
            assert_eq!(elsewhere.unwrap(), [1.0; 4], "a scope is one thread's");
        }
        assert_eq!(
            transfer_guard::level(Direction::HostToDevice),
            Level::Disallow
        );
    }
    assert_eq!(transfer_guard::level(Direction::HostToDevice), Level::Allow);
    drop(f.call(args![&x]).unwrap());
}

#[cfg(all(feature = "npz", feature = "safetensors"))]
#[test]
fn dead_arrays_are_not_written() {
    use jax_api::{npz, safetensors};
    let (client, _) = client();
    let scratch = tempfile::tempdir().unwrap();
    let step = jit::from_stablehlo("fake:identity(f32[4] donated) -> (f32[4])")
        .compile(&client)
        .unwrap();
    let good = device_put(&[1.0_f32; 4], &client).unwrap();
    let deleted = device_put(&[2.0_f32; 4], &client).unwrap();
    let donated = device_put(&[3.0_f32; 4], &client).unwrap();
    let (npz_file, safe_file) = (scratch.path().join("x.npz"), scratch.path().join("x.st"));
    let all = [
        ("good", &good),
        ("deleted", &deleted),
        ("donated", &donated),
    ];
    npz::save(&npz_file, all).unwrap();
    safetensors::save(&safe_file, all).unwrap();
    for arrays in [
        npz::load(&npz_file).unwrap(),
        safetensors::load(&safe_file).unwrap(),
    ] {
        assert_eq!(arrays.len(), 3);
        let back = device_put(&arrays["deleted"], &client).unwrap();
        assert_eq!(back.to_vec::<f32>().unwrap(), [2.0; 4]);
    }
    deleted.delete();
    drop(step.call(args![donate(&donated)]).unwrap());
    for dead in [("deleted", &deleted), ("donated", &donated)] {
        let arrays = [("good", &good), dead];
        for result in [
            npz::save(scratch.path().join("y"), arrays),
            safetensors::save(scratch.path().join("y"), arrays),
        ] {
            assert!(matches!(result, Err(Error::ArrayDeleted { .. })));
        }
    }
    assert!(!scratch.path().join("y").exists(), "nothing was begun");
    let nowhere = npz::save(scratch.path().join("no/such/folder/x"), [("good", &good)]);
    assert!(matches!(nowhere, Err(Error::File { .. })));
    for error in [
        npz::load(scratch.path().join("missing")).unwrap_err(),
        safetensors::load(scratch.path().join("missing")).unwrap_err(),
    ] {
        assert!(matches!(error, Error::File { .. }), "{error}");
    }
    let swapped = npz::load(&safe_file).unwrap_err().to_string();
    assert!(swapped.contains("x.st"), "{swapped}");
}
