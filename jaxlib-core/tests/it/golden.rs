//! Shardings against vectors that JAX 0.10.2 has written.

use std::sync::Arc;

use ifrt::fake::{FakeClient, FakeOptions};
use ifrt::{Client, DeviceId, DeviceList, Shape};
use jaxlib_core::sharding::replica_ids;
use jaxlib_core::{
    GspmdSharding, Index, Kind, Mesh, NamedSharding, PartitionDim, PartitionSpec, Sharding,
};
use prost::Message;
use serde_json::Value;

fn vectors() -> Vec<Value> {
    serde_json::from_str(include_str!("../fixtures/named_sharding.json")).unwrap()
}

fn ints(value: &Value) -> Vec<i64> {
    let values = value.as_array().unwrap();
    values.iter().map(|one| one.as_i64().unwrap()).collect()
}

fn strings(value: &Value) -> Vec<&str> {
    let values = value.as_array().unwrap();
    values.iter().map(|one| one.as_str().unwrap()).collect()
}

fn sharding(client: &FakeClient, vector: &Value) -> NamedSharding {
    let device = |id: &i64| {
        client
            .lookup_device(DeviceId(i32::try_from(*id).unwrap()))
            .unwrap()
    };
    let devices: DeviceList = ints(&vector["device_ids"]).iter().map(device).collect();
    let sizes = ints(&vector["mesh_sizes"]);
    let names = strings(&vector["mesh_names"]);
    let axes = names
        .into_iter()
        .zip(sizes.iter().map(|n| usize::try_from(*n).unwrap()));
    let mesh = Mesh::new(devices, axes).unwrap();
    let dims = vector["spec"].as_array().unwrap();
    let spec: PartitionSpec = dims
        .iter()
        .map(|dim| match dim {
            Value::Null => PartitionDim::Whole,
            axes => PartitionDim::axes(strings(axes)),
        })
        .collect();
    NamedSharding::new(&mesh, spec).unwrap()
}

fn client() -> Arc<FakeClient> {
    FakeClient::new(FakeOptions {
        num_devices: 8,
        ..FakeOptions::default()
    })
}

/// The index map in the form of the file: a range or `null` per dimension, for each device.
fn index(value: &Value) -> Index {
    let dims = value.as_array().unwrap();
    dims.iter()
        .map(|dim| match dim[0] {
            Value::Null => None,
            _ => Some(dim[0].as_i64().unwrap()..dim[1].as_i64().unwrap()),
        })
        .collect()
}

#[test]
fn every_vector() {
    let client = client();
    let (mut good, mut bad) = (0, 0);
    for vector in vectors() {
        let sharding = sharding(&client, &vector);
        let shape = Shape::new(ints(&vector["shape"])).unwrap();
        if let Some(error) = vector["error"].as_str() {
            bad += 1;
            for status in [
                sharding.shard_shape(&shape).unwrap_err(),
                sharding.index_map(&shape).unwrap_err(),
            ] {
                assert!(status.message().starts_with(error), "{status}\n{error}");
                assert_eq!(Kind::of(&status), Some(Kind::Indivisible));
            }
            continue;
        }
        good += 1;
        let hlo = sharding.to_hlo(shape.rank()).unwrap();
        let bytes = hlo.to_proto().encode_to_vec();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, vector["op_sharding_hex"].as_str().unwrap(), "{vector}");
        assert_eq!(
            sharding.shard_shape(&shape).unwrap().dims(),
            ints(&vector["shard_shape"])
        );
        assert_eq!(
            sharding.is_fully_replicated(),
            vector["fully_replicated"].as_bool().unwrap()
        );

        // The file lists devices by id, we have them in the order of the mesh.
        let found = sharding.index_map(&shape).unwrap();
        let replicas = replica_ids(&found);
        let ids: Vec<i64> = sharding
            .mesh()
            .devices()
            .ids()
            .map(|id| i64::from(id.0))
            .collect();
        for (entry, replica) in vector["index_map"]
            .as_array()
            .unwrap()
            .iter()
            .zip(vector["replica_ids"].as_array().unwrap())
        {
            let place = |id: &Value| {
                ids.iter()
                    .position(|own| Some(*own) == id.as_i64())
                    .unwrap()
            };
            assert_eq!(found[place(&entry[0])], index(&entry[1]), "{vector}");
            assert_eq!(
                Some(replicas[place(&replica[0])]),
                replica[1].as_u64().map(|n| usize::try_from(n).unwrap()),
                "{vector}"
            );
        }

        // XLA's form says the same as the names.
        let devices = sharding.mesh().devices().clone();
        let kind = sharding.memory_kind().clone();
        let gspmd = Sharding::Gspmd(GspmdSharding::new(devices, hlo, kind).unwrap());
        assert_eq!(gspmd.index_map(&shape).unwrap(), found, "{vector}");
        assert_eq!(
            gspmd.shard_shape(&shape).unwrap(),
            sharding.shard_shape(&shape).unwrap()
        );
        assert!(Sharding::from(&sharding).is_equivalent_to(&gspmd, shape.rank()));
    }
    assert_eq!((good, bad), (156, 13));
}

#[test]
fn shardings_that_differ_are_not_equivalent() {
    let client = client();
    let all: Vec<(NamedSharding, usize)> = vectors()
        .iter()
        .filter(|vector| vector["error"].is_null())
        .map(|vector| {
            let rank = ints(&vector["shape"]).len();
            (sharding(&client, vector), rank)
        })
        .collect();
    for (a, rank) in &all {
        for (b, other) in &all {
            if rank != other {
                continue;
            }
            let dims = vec![64; *rank];
            let shape = Shape::new(dims).unwrap();
            let same = a.mesh().devices() == b.mesh().devices()
                && a.index_map(&shape).unwrap() == b.index_map(&shape).unwrap();
            assert_eq!(
                Sharding::from(a).is_equivalent_to(&Sharding::from(b), *rank),
                same,
                "{a} {b}"
            );
        }
    }
}

#[test]
fn specs_that_cannot_be() {
    let client = client();
    let devices: DeviceList = client.devices().iter().cloned().collect();
    let mesh = Mesh::new(devices.clone(), [("x", 4), ("y", 2)]).unwrap();
    let spec = |dims: &[&str]| dims.iter().map(|name| PartitionDim::from(*name)).collect();
    let new = |dims: &[&str]| {
        let spec: PartitionSpec = spec(dims);
        NamedSharding::new(&mesh, spec)
    };
    assert_eq!(
        new(&["z"]).unwrap_err().message(),
        "Resource axis: z of P('z',) is not found in mesh: ('x', 'y')."
    );
    let twice = new(&["x", "x"]).unwrap_err();
    assert!(
        twice.message().contains("duplicate entries for `x`"),
        "{twice}"
    );
    let deep = new(&["x", "y"]).unwrap();
    let scalar = deep.to_hlo(0).unwrap_err();
    assert_eq!(
        scalar.message(),
        "Sharding NamedSharding(mesh=Mesh('x': 4, 'y': 2, axis_types=(Auto, Auto)), spec=P('x', \
         'y'), memory_kind=device) is only valid for values of rank at least 2, but was applied to \
         a value of rank 0. For scalars the PartitionSpec should be P()"
    );
    let open = NamedSharding::new(&mesh, PartitionSpec::new([PartitionDim::Unconstrained]));
    let open = open
        .unwrap()
        .shard_shape(&Shape::new([8]).unwrap())
        .unwrap_err();
    assert!(
        open.message()
            .contains("leaves a dimension to the compiler"),
        "{open}"
    );

    for (axes, words) in [
        (vec![("x", 3)], "does not fit 8 devices"),
        (vec![("x", 2), ("x", 4)], "stands twice"),
        (vec![("x", usize::MAX), ("y", 2)], "does not fit"),
        (vec![("x", 0)], "does not fit"),
    ] {
        let error = Mesh::new(devices.clone(), axes).unwrap_err();
        assert!(error.message().contains(words), "{error}");
    }
    let one = &client.devices()[0];
    let error = Mesh::new(DeviceList::new([one.clone(), one.clone()]), [("x", 2)]).unwrap_err();
    assert!(error.message().contains("device 0 stands twice"), "{error}");
}
