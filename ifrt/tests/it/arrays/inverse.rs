//! Taking apart and assembling are inverses, whatever the tiles, copies and devices.

use ifrt::ArrayCopySemantics::{AlwaysCopy, ReuseInput};
use ifrt::ShardSemantics::Addressable;
use ifrt::fake::{FakeClient, FakeOptions};
use ifrt::xla::{DeviceOrder, HloSharding, TileAssignment};
use ifrt::{ArrayRef, Client, DType};
use proptest::prelude::*;

use crate::support::*;

/// The array's dimensions, the tiles of each, how often each tile is copied, and the devices.
#[derive(Clone, Debug)]
struct Split {
    dims: Vec<i64>,
    tiles: Vec<i64>,
    copies: i64,
    positions: Vec<usize>,
}

fn split() -> impl Strategy<Value = Split> {
    let dimension = (1..4_i64, 0..4_i64);
    (prop::collection::vec(dimension, 0..3), 1..3_i64)
        .prop_flat_map(|(dimensions, copies)| {
            let tiles: Vec<i64> = dimensions.iter().map(|(tiles, _)| *tiles).collect();
            let count = tiles.iter().product::<i64>() * copies;
            let devices: Vec<usize> = (0..usize::try_from(count).unwrap()).collect();
            (
                Just(dimensions),
                Just(tiles),
                Just(copies),
                Just(devices).prop_shuffle(),
            )
        })
        .prop_map(|(dimensions, tiles, copies, positions)| Split {
            dims: dimensions
                .iter()
                .map(|(tiles, size)| tiles * size)
                .collect(),
            tiles,
            copies,
            positions,
        })
}

impl Split {
    fn client(&self) -> std::sync::Arc<FakeClient> {
        FakeClient::new(FakeOptions {
            num_devices: self.positions.len(),
            num_addressable: self.positions.len(),
            ..FakeOptions::default()
        })
    }

    fn sharding(&self, client: &FakeClient) -> ifrt::ShardingRef {
        let count = i64::try_from(self.positions.len()).unwrap();
        let mut dims = self.tiles.clone();
        dims.push(self.copies);
        let order = DeviceOrder::Explicit((0..count).collect());
        let tiles = TileAssignment::new(dims, order, vec![], true).unwrap();
        hlo(HloSharding::Tiled(tiles), devices(client, &self.positions))
    }
}

/// What can be seen of a piece: its shape, its device and its elements.
fn seen(pieces: &[ArrayRef]) -> Vec<(Vec<i64>, i32, Vec<f32>)> {
    pieces
        .iter()
        .map(|piece| {
            let id = piece.sharding().devices().ids().next().unwrap();
            (piece.shape().dims().to_vec(), id.0, read(piece).unwrap())
        })
        .collect()
}

proptest! {
    #[test]
    fn assembling_what_was_taken_apart(split in split()) {
        let client = split.client();
        let sharding = split.sharding(&client);
        let whole = array(&client, &split.dims, &sharding);
        let pieces = whole.disassemble(ReuseInput, Addressable).unwrap();
        prop_assert_eq!(pieces.len(), split.positions.len());
        let again = client
            .assemble_array(DType::F32, shape(&split.dims), sharding, &pieces, AlwaysCopy, Addressable)
            .unwrap();
        prop_assert_eq!(again.shape(), whole.shape());
        prop_assert_eq!(again.sharding(), whole.sharding());
        prop_assert_eq!(
            seen(&again.disassemble(ReuseInput, Addressable).unwrap()),
            seen(&pieces)
        );
    }

    #[test]
    fn taking_apart_what_was_assembled(split in split(), first: u8) {
        let client = split.client();
        let sharding = split.sharding(&client);
        let shard = sharding.shard_shape(&shape(&split.dims)).unwrap();
        let count = usize::try_from(shard.num_elements()).unwrap();
        // Tiles and copies hold different elements: assembling looks at none of them.
        let pieces: Vec<ArrayRef> = split
            .positions
            .iter()
            .enumerate()
            .map(|(number, position)| {
                let start = usize::from(first) + number * count;
                let values: Vec<f32> = (start..start + count).map(|value| value as f32).collect();
                array_of(&client, &values, shard.dims(), &single(&client, *position))
            })
            .collect();
        let whole = client
            .assemble_array(DType::F32, shape(&split.dims), sharding, &pieces, AlwaysCopy, Addressable)
            .unwrap();
        let again = whole.disassemble(ReuseInput, Addressable).unwrap();
        prop_assert_eq!(seen(&again), seen(&pieces));
        for (one, other) in again.iter().zip(&pieces) {
            prop_assert_eq!(one.sharding(), other.sharding());
        }
    }
}
