//! NEW-17: whatever the bytes, a reader gives a value or an error; whatever the value, it survives.

use ifrt::fuzzing::TARGETS;
use ifrt::program::{CompileOptions, CustomCallCompileOptions, XlaCompileOptions};
use ifrt::remap_plan::{InputDevices, Interval, Mapping, RemapPlan};
use ifrt::serdes::*;
use ifrt::shape::{BoundedDynamicShapeTag, DynamicShape};
use ifrt::sharding::{ShardingKind, ShardingParam};
use ifrt::xla::{DeviceOrder, HloSharding, SubgroupType, TileAssignment};
use ifrt::{
    AbstractArraySpec, ArraySpec, AttributeMap, AttributeValue, Client, DType, DeviceList,
    ExecuteOptions, Index, IndexDomain, Layout, MemoryKind, Shape, Sharding, ShardingSpec,
};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use proptest::sample::{Index as Position, select};

use super::client;
use super::golden::table;

const NUM_DEVICES: usize = 12;

fn version() -> impl Strategy<Value = SerDesVersion> {
    select(SerDesVersion::all().collect::<Vec<_>>())
}

fn shape() -> impl Strategy<Value = Shape> {
    let dims = vec(prop_oneof![0..20_i64, 0..1_000_000_i64], 0..4);
    dims.prop_map(|dims| Shape::new(dims).unwrap())
}

fn dynamic_shape() -> impl Strategy<Value = DynamicShape> {
    (vec((0..50_i64, any::<bool>()), 1..4), any::<Position>()).prop_map(|(dims, dynamic)| {
        let (dims, mut tag): (Vec<i64>, Vec<bool>) = dims.into_iter().unzip();
        *dynamic.get_mut(&mut tag) = true;
        let tag = BoundedDynamicShapeTag::new(tag).unwrap();
        DynamicShape::new(Shape::new(dims).unwrap(), tag).unwrap()
    })
}

fn index_domain() -> impl Strategy<Value = IndexDomain> {
    vec((0..i64::MAX / 2, 0..1_000_i64), 0..4).prop_map(|dims| {
        let (origin, dims): (Vec<i64>, Vec<i64>) = dims.into_iter().unzip();
        IndexDomain::try_new(Index::new(origin).unwrap(), Shape::new(dims).unwrap()).unwrap()
    })
}

fn devices(count: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = DeviceList> {
    vec(0..NUM_DEVICES, count).prop_map(|positions| {
        let client = client(NUM_DEVICES);
        positions
            .into_iter()
            .map(|position| client.devices()[position].clone())
            .collect()
    })
}

fn memory_kind() -> impl Strategy<Value = MemoryKind> {
    "[a-z_]{1,12}|device".prop_map(|name| MemoryKind::new(&name))
}

fn attributes() -> impl Strategy<Value = AttributeMap> {
    let value = prop_oneof![
        vec(any::<u8>(), 0..20).prop_map(|bytes| AttributeValue::String(bytes.into())),
        any::<bool>().prop_map(AttributeValue::from),
        any::<i64>().prop_map(AttributeValue::from),
        vec(any::<i64>(), 0..5).prop_map(AttributeValue::from),
        (-1e9..1e9_f32).prop_map(AttributeValue::from),
    ];
    btree_map(".{0,8}", value, 0..5).prop_map(|values| values.into_iter().collect())
}

/// Tiles whose product is the number of devices that is given with them.
fn tiles() -> impl Strategy<Value = (Vec<i64>, i64)> {
    vec(1..=3_i64, 1..4).prop_map(|dims| {
        let count = dims.iter().product();
        (dims, count)
    })
}

fn hlo() -> impl Strategy<Value = (HloSharding, usize)> {
    let tiled = (tiles(), 0..4_usize, any::<bool>(), any::<u64>()).prop_map(
        |((dims, count), trailing, is_listed, seed)| {
            let kinds = [
                SubgroupType::Replicated,
                SubgroupType::Maximal,
                SubgroupType::Manual,
                SubgroupType::Unreduced,
            ];
            let mut subgroups = vec![kinds[trailing % 4]; trailing.min(dims.len())];
            let replicate = !subgroups.is_empty() && seed.is_multiple_of(2);
            if replicate {
                subgroups.clear();
            }
            let order = if is_listed {
                let mut order: Vec<i64> = (0..count).collect();
                let shift = usize::try_from(seed % order.len() as u64).unwrap();
                order.rotate_left(shift);
                DeviceOrder::Explicit(order)
            } else {
                let rank = i32::try_from(dims.len()).unwrap();
                DeviceOrder::Iota {
                    reshape_dims: dims.iter().rev().copied().collect(),
                    transpose_perm: (0..rank).rev().collect(),
                }
            };
            let assignment = TileAssignment::new(dims, order, subgroups, replicate).unwrap();
            // Tiles on one device are read as copies.
            match count {
                1 => (HloSharding::Replicated, 1),
                _ => (
                    HloSharding::Tiled(assignment),
                    usize::try_from(count).unwrap(),
                ),
            }
        },
    );
    let simple = select(vec![
        HloSharding::Replicated,
        HloSharding::Maximal(1),
        HloSharding::Manual,
        HloSharding::Unknown,
        HloSharding::Unreduced,
        HloSharding::Tuple(vec![HloSharding::Replicated, HloSharding::Manual]),
    ]);
    prop_oneof![tiled, (simple, 1..9_usize)]
}

fn param() -> impl Strategy<Value = ShardingParam> {
    (tiles(), 1..=3_i64, any::<bool>()).prop_map(|((dims, count), copies, is_unreduced)| {
        let axes = vec![
            i32::try_from(count).unwrap(),
            i32::try_from(copies).unwrap(),
        ];
        let unreduced = if is_unreduced { vec![1] } else { vec![] };
        ShardingParam::new(dims, vec![1, 0], axes, unreduced).unwrap()
    })
}

/// A partitioning and the number of its shards.
fn kind() -> impl Strategy<Value = (ShardingKind, usize)> {
    prop_oneof![
        Just((ShardingKind::SingleDevice, 1)),
        (shape(), vec(shape(), 1..5)).prop_map(|(shape, shards)| {
            let count = shards.len();
            (ShardingKind::concrete(shape, shards), count)
        }),
        (dynamic_shape(), vec(dynamic_shape(), 1..5)).prop_map(|(shape, shard_shapes)| {
            let count = shard_shapes.len();
            (
                ShardingKind::ConcreteDynamic {
                    shape,
                    shard_shapes,
                },
                count,
            )
        }),
        (shape(), shape(), any::<bool>(), 1..5_usize).prop_map(
            |(shape, shard_shape, is_fully_replicated, count)| {
                let kind = ShardingKind::ConcreteEven {
                    shape,
                    shard_shape,
                    is_fully_replicated,
                };
                (kind, count)
            }
        ),
        param().prop_map(|param| {
            let count = usize::try_from(param.num_devices()).unwrap();
            (ShardingKind::Param(param), count)
        }),
        hlo().prop_map(|(hlo, count)| (ShardingKind::Hlo(hlo), count)),
    ]
}

fn sharding() -> impl Strategy<Value = Sharding> {
    (kind(), memory_kind())
        .prop_flat_map(|((kind, count), memory)| (Just((kind, memory)), devices(count)))
        .prop_map(|((kind, memory), devices)| Sharding::new(kind, devices, memory).unwrap())
}

fn layout() -> impl Strategy<Value = Layout> {
    let order = (0..4_i64).prop_flat_map(|rank| Just((0..rank).collect::<Vec<_>>()).prop_shuffle());
    (
        order,
        "(T\\(([*]|[0-9]{1,3})(,[0-9]{1,3}){0,2}\\)){0,1}(L\\([2-9]\\))?(E\\([1-9]\\))?",
    )
        .prop_map(|(order, properties)| {
            let order: Vec<String> = order.iter().map(ToString::to_string).collect();
            let colon = if properties.is_empty() { "" } else { ":" };
            Layout::parse(&format!("{{{}{colon}{properties}}}", order.join(","))).unwrap()
        })
}

fn array_spec() -> impl Strategy<Value = ArraySpec> {
    (
        select(DType::ALL),
        shape(),
        sharding(),
        proptest::option::of(layout()),
    )
        .prop_map(|(dtype, shape, sharding, layout)| ArraySpec {
            dtype,
            shape,
            sharding: sharding.into(),
            layout,
        })
}

fn mapping() -> impl Strategy<Value = Mapping> {
    let interval = (any::<i64>(), any::<i64>(), any::<i64>())
        .prop_map(|(start, end, step)| Interval { start, end, step });
    (
        0..9_usize,
        0..9_usize,
        vec((interval.clone(), interval), 0..4),
    )
        .prop_map(|(in_array, out_array, pairs)| {
            let (from, to) = pairs.into_iter().unzip();
            Mapping {
                in_array,
                out_array,
                from,
                to,
            }
        })
}

fn remap_plan() -> impl Strategy<Value = RemapPlan> {
    let of_input = (0..9_usize, devices(0..4_usize))
        .prop_map(|(in_array, devices)| InputDevices { in_array, devices });
    let map = btree_map(0..9_usize, vec(of_input, 1..3), 0..3);
    (
        vec(array_spec(), 0..3),
        vec(array_spec(), 0..3),
        vec(mapping(), 0..4),
        map,
    )
        .prop_map(
            |(input_specs, output_specs, mappings, input_devices_for_output_map)| RemapPlan {
                input_specs,
                output_specs,
                mappings,
                input_devices_for_output_map,
            },
        )
}

proptest! {
    #[test]
    fn small_values(
        shape in shape(),
        dynamic in dynamic_shape(),
        domain in index_domain(),
        attributes in attributes(),
        layout in layout(),
        devices in devices(0..9_usize),
    ) {
        prop_assert_eq!(shape_from_proto(&shape_to_proto(&shape)), Ok(shape));
        prop_assert_eq!(dynamic_shape_from_proto(&dynamic_shape_to_proto(&dynamic)), Ok(dynamic));
        prop_assert_eq!(index_domain_from_proto(&index_domain_to_proto(&domain)), Ok(domain));
        let proto = attribute_map_to_proto(&attributes);
        prop_assert_eq!(attribute_map_from_proto(&proto), Ok(attributes));
        let proto = layout_to_proto(&layout).unwrap();
        prop_assert_eq!(layout_from_proto(&proto), Ok(layout.clone()));
        prop_assert_eq!(Layout::parse(&layout.to_string()), Ok(layout));
        let proto = device_list_to_proto(&devices);
        prop_assert_eq!(device_list_from_proto(&proto, &*client(NUM_DEVICES)), Ok(devices));
    }

    #[test]
    fn options(
        launch_id: i32,
        indices in btree_set(0..1000_usize, 0..5),
        fill_status: bool,
        execution_stream_id: i64,
        custom in proptest::option::of(attributes()),
        bytes in vec(any::<u8>(), 0..20),
        sizes in proptest::option::of(vec(0..1000_usize, 1..5)),
        version in version(),
    ) {
        let options = ExecuteOptions {
            launch_id,
            non_donatable_input_indices: indices,
            fill_status,
            execution_stream_id,
            custom_options: custom,
        };
        let proto = execute_options_to_proto(&options).unwrap();
        prop_assert_eq!(execute_options_from_proto(&proto), Ok(options));
        let xla = CompileOptions::Xla(XlaCompileOptions {
            compile_options: bytes.into(),
            devices: None,
            outputs_bundle_slice_sizes: sizes.clone(),
        });
        let custom_call = CompileOptions::CustomCall(CustomCallCompileOptions {
            outputs_bundle_slice_sizes: sizes.clone(),
        });
        for options in [xla, custom_call] {
            let written = compile_options_to_proto(&options, version);
            if sizes.is_some() && version < SerDesVersion::BUNDLE_SLICE_SIZES {
                prop_assert!(written.is_err());
                continue;
            }
            let written = written.unwrap();
            let read = compile_options_from_proto(&written).unwrap();
            prop_assert_eq!(read.outputs_bundle_slice_sizes(), sizes.as_deref());
            prop_assert_eq!(compile_options_to_proto(&read, version).unwrap(), written);
        }
    }

    #[test]
    fn shardings_and_specs(sharding in sharding(), version in version()) {
        let spec = sharding.sharding_spec();
        let needs_1 = matches!(
            sharding.kind(),
            ShardingKind::Param(param) if !param.unreduced_axes().is_empty()
        );
        if needs_1 && version < SerDesVersion::UNREDUCED_AXES {
            prop_assert!(sharding_to_proto(&sharding, version).is_err());
            prop_assert!(sharding_spec_to_proto(spec, version).is_err());
            return Ok(());
        }
        let proto = sharding_to_proto(&sharding, version).unwrap();
        let read = sharding_from_proto(&proto, &*client(NUM_DEVICES)).unwrap();
        prop_assert_eq!(&*read, &sharding);
        let proto = sharding_spec_to_proto(spec, version).unwrap();
        prop_assert_eq!(&sharding_spec_from_proto(&proto).unwrap(), spec);
        let again = ShardingSpec::new(spec.kind().clone(), spec.num_shards()).unwrap();
        let devices = sharding.devices().clone();
        let whole = again.to_sharding(devices, sharding.memory_kind().clone()).unwrap();
        prop_assert_eq!(&*whole, &sharding);
    }

    #[test]
    fn array_specs_and_plans(spec in array_spec(), plan in remap_plan()) {
        let version = SerDesVersion::CURRENT;
        let client = client(NUM_DEVICES);
        let proto = array_spec_to_proto(&spec, version).unwrap();
        prop_assert_eq!(&array_spec_from_proto(&proto, &*client).unwrap(), &spec);
        let without: AbstractArraySpec = spec.to_abstract();
        let proto = abstract_array_spec_to_proto(&without, version).unwrap();
        prop_assert_eq!(&abstract_array_spec_from_proto(&proto).unwrap(), &without);
        let devices = spec.sharding.devices().clone();
        prop_assert_eq!(without.to_array_spec(devices).unwrap(), spec);
        let proto = remap_plan_to_proto(&plan, version).unwrap();
        prop_assert_eq!(remap_plan_from_proto(&proto, &*client).unwrap(), plan);
    }

    #[test]
    fn any_bytes(data in vec(any::<u8>(), 0..200)) {
        for (_, target) in TARGETS {
            target(&data);
        }
    }

    /// Bytes of real messages with a few of them changed, cut and repeated.
    #[test]
    fn almost_real_bytes(
        row: Position,
        kind in 0..10_u8,
        changes in vec((any::<Position>(), any::<u8>()), 0..4),
        cut: Position,
    ) {
        let rows: Vec<_> = table().into_values().collect();
        let mut data = vec![kind];
        data.extend_from_slice(&rows[row.index(rows.len())]);
        for (position, byte) in changes {
            *position.get_mut(&mut data) = byte;
        }
        for data in [&data[..], &data[1..], &data[..cut.index(data.len())], &data.repeat(2)] {
            for (_, target) in TARGETS {
                target(data);
            }
        }
    }
}
