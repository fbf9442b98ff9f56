//! RSH: spreading arrays differently. Each case runs on arrays and on bundles of them.

use std::sync::Arc;

use super::{Case, case};
use crate::array::{ArrayCopySemantics, ArrayRef};
use crate::array_spec::ArraySpec;
use crate::conformance::check::{Check, check, equal};
use crate::conformance::data::Host;
use crate::conformance::fixture::{Fixture, spec_of};
use crate::dtype::DType;
use crate::layout::Layout;
use crate::memory::MemoryKind;
use crate::sharding::{ShardingKind, ShardingRef};
use crate::status::Status;
use crate::value::{to_arrays, to_values};
use crate::xla::{DeviceOrder, HloSharding, TileAssignment};

const ALL: &[usize] = &[0, 1, 2, 3, 4, 5, 6, 7];
const LOW: &[usize] = &[0, 1, 2, 3];
const HIGH: &[usize] = &[4, 5, 6, 7];
const PAIR: &[usize] = &[0, 1];

pub(super) const CASES: &[Case] = &[
    case("RSH-01", "two_arrays_in_one_call", rsh_01),
    case("RSH-02", "two_device_lists_in_one_call", rsh_02),
    case("RSH-03", "one_of_two_fails", rsh_03),
    case("RSH-04", "into_a_layout", rsh_04),
    case("RSH-05", "out_of_a_layout", rsh_05),
    case("RSH-06", "four_bit_integers", rsh_06),
    case("RSH-07", "replicated_scalar", |fx| {
        there_and_back(fx, &[], (Replicated, ALL), (Replicated, ALL))
    }),
    case("RSH-08", "replicated", |fx| {
        there_and_back(fx, &[4, 8], (Replicated, ALL), (Replicated, ALL))
    }),
    case("RSH-09", "replicated_again", |fx| {
        there_and_back(fx, &[4, 8], (Replicated, ALL), (Replicated, ALL))
    }),
    case("RSH-10", "replicated_and_tiled", |fx| {
        there_and_back(fx, &[4, 8], (Replicated, ALL), (Tiled(&[4, 2]), ALL))
    }),
    case("RSH-11", "tiled_and_tiled", |fx| {
        there_and_back(fx, &[4, 8], (Tiled(&[2, 4]), ALL), (Tiled(&[4, 2]), ALL))
    }),
    case("RSH-12", "tiled_and_partly_tiled", |fx| {
        there_and_back(
            fx,
            &[4, 8],
            (Tiled(&[4, 2]), ALL),
            (Partly(&[1, 4, 2]), ALL),
        )
    }),
    case("RSH-13", "empty", |fx| {
        there_and_back(fx, &[0, 4], (Tiled(&[4, 2]), ALL), (Tiled(&[2, 4]), ALL))
    }),
    case("RSH-14", "replicated_scalar_to_more_devices", |fx| {
        there_and_back(fx, &[], (Replicated, PAIR), (Replicated, ALL))
    }),
    case("RSH-15", "replicated_to_more_devices", |fx| {
        there_and_back(fx, &[4, 8], (Replicated, PAIR), (Replicated, ALL))
    }),
    case("RSH-16", "replicated_to_more_devices_again", |fx| {
        there_and_back(fx, &[4, 8], (Replicated, PAIR), (Replicated, ALL))
    }),
    case("RSH-17", "replicated_to_tiled_on_more_devices", |fx| {
        there_and_back(fx, &[4, 8], (Replicated, PAIR), (Tiled(&[4, 2]), ALL))
    }),
    case("RSH-18", "tiled_to_fewer_devices", |fx| {
        let to = (Tiled(&[1, 2, 1]), &[4, 0][..]);
        there_and_back(fx, &[4, 4, 4], (Tiled(&[2, 2, 2]), ALL), to)
    }),
    case("RSH-19", "tiled_to_partly_tiled_on_more_devices", |fx| {
        let from = (Tiled(&[2, 1]), &[1, 0][..]);
        there_and_back(fx, &[4, 8], from, (Partly(&[1, 4, 2]), ALL))
    }),
    case("RSH-20", "empty_to_more_devices", |fx| {
        there_and_back(fx, &[0, 4], (Tiled(&[2, 1]), PAIR), (Tiled(&[2, 4]), ALL))
    }),
];

/// How an array is spread.
#[derive(Clone, Copy)]
enum Spread {
    Replicated,
    Tiled(&'static [i64]),
    /// The last number counts copies.
    Partly(&'static [i64]),
}

use Spread::{Partly, Replicated, Tiled};

/// How, and over which devices.
type Place = (Spread, &'static [usize]);

fn sharding(fx: &Fixture, (spread, devices): Place, kind: &MemoryKind) -> Check<ShardingRef> {
    let hlo = match spread {
        Replicated => HloSharding::Replicated,
        Tiled(tiles) => HloSharding::tile(tiles)?,
        Partly(tiles) => {
            let order = DeviceOrder::Iota {
                reshape_dims: vec![tiles.iter().product()],
                transpose_perm: vec![0],
            };
            HloSharding::Tiled(TileAssignment::new(tiles.to_vec(), order, vec![], true)?)
        }
    };
    fx.sharding(ShardingKind::Hlo(hlo), &fx.devices_at(devices)?, kind)
}

#[derive(Clone, Copy, Debug)]
enum Via {
    Arrays,
    Bundle,
}

const WAYS: [Via; 2] = [Via::Arrays, Via::Bundle];

/// Reshards with donation.
fn reshard(
    fx: &Fixture,
    arrays: &[ArrayRef],
    specs: &[ArraySpec],
    via: Via,
) -> Check<Vec<ArrayRef>> {
    fx.needs(fx.caps.reshard, "resharding")?;
    let donate = ArrayCopySemantics::DonateInput;
    let made = match via {
        Via::Arrays => fx.client.reshard_arrays(arrays, specs, donate)?,
        Via::Bundle => {
            let reuse = ArrayCopySemantics::ReuseInput;
            let bundle = fx.client.bundle(&to_values(arrays), reuse)?;
            let made = bundle.reshard_arrays(specs, donate)?;
            check(bundle.is_deleted(), "the bundle is consumed")?;
            to_arrays(&made.values(reuse)?)?
        }
    };
    equal(made.len(), specs.len(), "the number of arrays")?;
    for array in arrays {
        check(array.is_deleted(), "the source is consumed")?;
    }
    Ok(made)
}

#[track_caller]
fn is_spread(fx: &Fixture, array: &ArrayRef, host: &Host, spec: &ArraySpec) -> Check {
    equal(array.sharding(), &spec.sharding, "the sharding")?;
    fx.holds(array, host)
}

fn there_and_back(fx: &Fixture, dims: &[i64], from: Place, to: Place) -> Check {
    let host = Host::iota(DType::S32, dims)?;
    for (from_kind, to_kind) in fx.memory_pairs()? {
        let there = spec_of(&host, &sharding(fx, to, &to_kind)?);
        let back = spec_of(&host, &sharding(fx, from, &from_kind)?);
        for via in WAYS {
            let source = fx.put_cut(&host, &back.sharding)?;
            let moved = reshard(fx, &[source], std::slice::from_ref(&there), via)?;
            is_spread(fx, &moved[0], &host, &there)?;
            let returned = reshard(fx, &moved, std::slice::from_ref(&back), via)?;
            is_spread(fx, &returned[0], &host, &back)?;
        }
    }
    Ok(())
}

/// Reshards several arrays in one call.
fn together(fx: &Fixture, moves: &[(Place, Place)]) -> Check {
    let host = Host::iota(DType::S32, &[4, 8])?;
    let kind = MemoryKind::default();
    for via in WAYS {
        let (mut arrays, mut specs) = (Vec::new(), Vec::new());
        for (from, to) in moves {
            arrays.push(fx.put_cut(&host, &sharding(fx, *from, &kind)?)?);
            specs.push(spec_of(&host, &sharding(fx, *to, &kind)?));
        }
        let made = reshard(fx, &arrays, &specs, via)?;
        for (array, spec) in made.iter().zip(&specs) {
            is_spread(fx, array, &host, spec)?;
        }
    }
    Ok(())
}

fn rsh_01(fx: &Fixture) -> Check {
    let from = (Tiled(&[4, 2]), ALL);
    together(
        fx,
        &[(from, (Replicated, ALL)), (from, (Tiled(&[2, 4]), ALL))],
    )
}

fn rsh_02(fx: &Fixture) -> Check {
    let tiled = Tiled(&[2, 2]);
    let first = ((tiled, LOW), (Replicated, LOW));
    together(fx, &[first, ((tiled, HIGH), (tiled, HIGH))])
}

fn rsh_03(fx: &Fixture) -> Check {
    let host = Host::iota(DType::S32, &[4, 8])?;
    let kind = MemoryKind::default();
    let tiled = Tiled(&[2, 2]);
    let (low, high) = (
        sharding(fx, (tiled, LOW), &kind)?,
        sharding(fx, (tiled, HIGH), &kind)?,
    );
    let specs = [
        spec_of(&host, &sharding(fx, (Replicated, LOW), &kind)?),
        spec_of(&host, &high),
    ];
    let error = Status::internal("injected error");
    for via in WAYS {
        let good = fx.put_cut(&host, &low)?;
        let bad = fx.error_array(&error, &spec_of(&host, &high))?;
        let made = reshard(fx, &[good, bad], &specs, via)?;
        is_spread(fx, &made[0], &host, &specs[0])?;
        let result = fx.result(&made[1].ready())?;
        equal(
            result,
            Err(error.clone()),
            "the result of the one that fails",
        )?;
    }
    Ok(())
}

fn ascending() -> Check<Layout> {
    Ok(Layout::from_minor_to_major([0, 1])?)
}

fn rsh_04(fx: &Fixture) -> Check {
    fx.needs(fx.caps.physical_layouts, "layouts of the caller's choice")?;
    let host = Host::iota(DType::S32, &[4, 8])?;
    let kind = MemoryKind::default();
    let from = sharding(fx, (Tiled(&[4, 2]), ALL), &kind)?;
    let mut spec = spec_of(&host, &sharding(fx, (Tiled(&[2, 4]), ALL), &kind)?);
    spec.layout = Some(ascending()?);
    for via in WAYS {
        let source = fx.put_cut(&host, &from)?;
        let made = reshard(fx, &[source], std::slice::from_ref(&spec), via)?;
        is_spread(fx, &made[0], &host, &spec)?;
        equal(made[0].layout()?, spec.layout.clone(), "the layout")?;
    }
    Ok(())
}

fn rsh_05(fx: &Fixture) -> Check {
    fx.needs(fx.caps.physical_layouts, "layouts of the caller's choice")?;
    let host = Host::iota(DType::S32, &[4, 8])?;
    let kind = MemoryKind::default();
    let from = sharding(fx, (Replicated, ALL), &kind)?;
    let spec = spec_of(&host, &sharding(fx, (Tiled(&[2, 4]), ALL), &kind)?);
    let client = &fx.client;
    let default = client.default_layout_of(host.dtype, &host.shape, &spec.sharding)?;
    for via in WAYS {
        let (sharding, layout) = (Arc::clone(&from), Some(ascending()?));
        let source = client.make_array_from_host_buffer(host.buffer(), sharding, layout)?;
        let made = reshard(fx, &[source], std::slice::from_ref(&spec), via)?;
        is_spread(fx, &made[0], &host, &spec)?;
        let layout = made[0].layout()?.unwrap_or_else(|| default.clone());
        equal(layout, default.clone(), "the layout")?;
    }
    Ok(())
}

fn rsh_06(fx: &Fixture) -> Check {
    fx.needs(fx.caps.four_bit_integers, "integers of four bits")?;
    let host = Host::iota(DType::S4, &[4, 8])?;
    for kind in fx.memory_kinds()? {
        let from = sharding(fx, (Tiled(&[4, 2]), ALL), &kind)?;
        let spec = spec_of(&host, &sharding(fx, (Tiled(&[2, 4]), ALL), &kind)?);
        for via in WAYS {
            let source = fx.put_cut(&host, &from)?;
            let made = reshard(fx, &[source], std::slice::from_ref(&spec), via)?;
            is_spread(fx, &made[0], &host, &spec)?;
        }
    }
    Ok(())
}
