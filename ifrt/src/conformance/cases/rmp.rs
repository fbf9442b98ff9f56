//! RMP: remapping shards between arrays.

use std::sync::Arc;

use super::{Case, case};
use crate::array::{ArrayCopySemantics, ArrayRef};
use crate::array_spec::ArraySpec;
use crate::conformance::check::{Check, equal, refused_saying};
use crate::conformance::data::{Host, f32s, i32s, shape};
use crate::conformance::fixture::Fixture;
use crate::device_list::DeviceList;
use crate::dtype::DType;
use crate::memory::MemoryKind;
use crate::remap_plan::{Interval, Mapping, RemapPlan};
use crate::status::Code;

pub(super) const CASES: &[Case] = &[
    case("RMP-01", "extract_a_shard", rmp_01),
    case("RMP-02", "interleave", rmp_02),
    case("RMP-03", "interleave_without_donation_refused", rmp_03),
    case("RMP-04", "deinterleave", rmp_04),
    case("RMP-05", "batch_unchanged", rmp_05),
    case("RMP-06", "batch_of_mixed_types", rmp_06),
    case("RMP-07", "wrong_inputs_refused", rmp_07),
];

const REUSE: ArrayCopySemantics = ArrayCopySemantics::ReuseInput;
const DONATE: ArrayCopySemantics = ArrayCopySemantics::DonateInput;

/// An array in shards that count up from their bases.
#[derive(Clone, Copy)]
struct Rows<'a> {
    dtype: DType,
    shard: [i64; 2],
    devices: &'a [usize],
    bases: &'a [i16],
}

/// Shards of six 32-bit integers.
const fn rows<'a>(devices: &'a [usize], bases: &'a [i16]) -> Rows<'a> {
    Rows {
        dtype: DType::S32,
        shard: [2, 3],
        devices,
        bases,
    }
}

impl Rows<'_> {
    fn spec(self, fx: &Fixture) -> Check<ArraySpec> {
        let count = i64::try_from(self.devices.len()).unwrap_or(i64::MAX);
        let dims = [self.shard[0] * count, self.shard[1]];
        let devices = fx.devices_at(self.devices)?;
        Ok(ArraySpec {
            dtype: self.dtype,
            shape: shape(&dims)?,
            sharding: fx.even(&dims, &self.shard, &devices, &MemoryKind::default())?,
            layout: None,
        })
    }

    fn shard(self, base: i16) -> Check<Host> {
        let count = i16::try_from(self.shard[0] * self.shard[1]).unwrap_or(i16::MAX);
        let numbers = base..base + count;
        let bytes = match self.dtype {
            DType::F32 => f32s(&numbers.map(f32::from).collect::<Vec<_>>()),
            _ => i32s(&numbers.map(i32::from).collect::<Vec<_>>()),
        };
        Host::new(self.dtype, &self.shard, bytes)
    }

    fn make(self, fx: &Fixture) -> Check<ArrayRef> {
        let shards: Check<Vec<Host>> = self.bases.iter().map(|base| self.shard(*base)).collect();
        fx.put_shards(self.spec(fx)?, &shards?)
    }

    /// Checks that `array` is what [`Rows::make`] would make.
    fn is(self, fx: &Fixture, array: &ArrayRef, what: &str) -> Check {
        let spec = self.spec(fx)?;
        equal(array.dtype(), spec.dtype, what)?;
        equal(array.shape(), &spec.shape, what)?;
        equal(array.sharding(), &spec.sharding, what)?;
        let shards = fx.shards(array)?;
        equal(shards.len(), self.bases.len(), what)?;
        for ((shard, base), device) in shards.iter().zip(self.bases).zip(spec.sharding.devices()) {
            let device = DeviceList::new([Arc::clone(device)]);
            equal(shard.sharding().devices(), &device, what)?;
            equal(fx.read(shard)?, self.shard(*base)?.bytes, what)?;
        }
        Ok(())
    }
}

/// One interval of each side: input, its shards, output, its shards.
type Move = (usize, [i64; 3], usize, [i64; 3]);

fn mapping((in_array, from, out_array, to): Move) -> Mapping {
    let interval = |[start, end, step]: [i64; 3]| vec![Interval { start, end, step }];
    Mapping {
        in_array,
        out_array,
        from: interval(from),
        to: interval(to),
    }
}

/// The plan as it is written, and with what a runtime may want to have worked out.
fn plans(
    fx: &Fixture,
    inputs: &[Rows<'_>],
    outputs: &[Rows<'_>],
    moves: &[Move],
) -> Check<[RemapPlan; 2]> {
    fx.needs(fx.caps.remap, "remapping")?;
    let specs = |rows: &[Rows<'_>]| {
        rows.iter()
            .map(|one| one.spec(fx))
            .collect::<Check<Vec<_>>>()
    };
    let (inputs, outputs) = (specs(inputs)?, specs(outputs)?);
    let mappings: Vec<Mapping> = moves.iter().copied().map(mapping).collect();
    let plain = RemapPlan::new(inputs.clone(), outputs.clone(), mappings.clone());
    plain.validate()?;
    let optimized = RemapPlan::create_optimized(inputs, outputs, mappings)?;
    Ok([plain, optimized])
}

fn remaps(
    fx: &Fixture,
    inputs: &[Rows<'_>],
    outputs: &[Rows<'_>],
    moves: &[Move],
    semantics: &[ArrayCopySemantics],
) -> Check {
    for plan in plans(fx, inputs, outputs, moves)? {
        let arrays: Vec<ArrayRef> = inputs
            .iter()
            .map(|one| one.make(fx))
            .collect::<Check<_>>()?;
        for copy in semantics {
            let made = fx.client.remap_arrays(&plan, &arrays, *copy)?;
            equal(made.len(), outputs.len(), "the number of outputs")?;
            for (position, (array, expected)) in made.iter().zip(outputs).enumerate() {
                expected.is(fx, array, &format!("output {position} with {copy:?}"))?;
            }
            for array in &arrays {
                let what = format!("whether {copy:?} consumes an input");
                equal(array.is_deleted(), *copy == DONATE, &what)?;
            }
        }
    }
    Ok(())
}

fn rmp_01(fx: &Fixture) -> Check {
    let inputs = [rows(&[0, 1], &[0, 6])];
    let outputs = [rows(&[1], &[6])];
    let moves = [(0, [1, 2, 1], 0, [0, 1, 1])];
    remaps(fx, &inputs, &outputs, &moves, &[REUSE, DONATE])
}

const INTERLEAVED: [Move; 2] = [(0, [0, 2, 1], 0, [0, 4, 2]), (1, [0, 2, 1], 0, [1, 4, 2])];

fn halves() -> [Rows<'static>; 2] {
    [rows(&[0, 1], &[0, 6]), rows(&[2, 3], &[100, 106])]
}

fn whole() -> Rows<'static> {
    rows(&[0, 2, 1, 3], &[0, 100, 6, 106])
}

fn rmp_02(fx: &Fixture) -> Check {
    remaps(fx, &halves(), &[whole()], &INTERLEAVED, &[DONATE])
}

fn rmp_03(fx: &Fixture) -> Check {
    for plan in plans(fx, &halves(), &[whole()], &INTERLEAVED)? {
        let arrays: Vec<ArrayRef> = halves()
            .iter()
            .map(|one| one.make(fx))
            .collect::<Check<_>>()?;
        refused_saying(
            fx.client.remap_arrays(&plan, &arrays, REUSE),
            Code::InvalidArgument,
            "kDonateInput is required if multiple inputs are mapped to one output",
            "remapping two inputs without donation",
        )?;
    }
    Ok(())
}

fn rmp_04(fx: &Fixture) -> Check {
    let moves = INTERLEAVED.map(|(half, from, _, to)| (0, to, half, from));
    remaps(fx, &[whole()], &halves(), &moves, &[REUSE, DONATE])
}

fn wide<'a>(devices: &'a [usize], bases: &'a [i16]) -> Rows<'a> {
    Rows {
        shard: [3, 5],
        ..rows(devices, bases)
    }
}

fn rmp_05(fx: &Fixture) -> Check {
    let arrays = [
        rows(&[0, 1, 2, 3], &[10, 20, 30, 40]),
        wide(&[0, 1], &[50, 60]),
    ];
    let moves = [(0, [0, 4, 1], 0, [0, 4, 1]), (1, [0, 2, 1], 1, [0, 2, 1])];
    remaps(fx, &arrays, &arrays, &moves, &[REUSE, DONATE])
}

fn rmp_06(fx: &Fixture) -> Check {
    fn floats<'a>(devices: &'a [usize], bases: &'a [i16]) -> Rows<'a> {
        Rows {
            dtype: DType::F32,
            ..rows(devices, bases)
        }
    }
    let inputs = [
        floats(&[0, 1, 2, 3], &[10, 20, 30, 40]),
        wide(&[0, 1], &[50, 60]),
    ];
    let outputs = [
        floats(&[0, 1], &[10, 20]),
        floats(&[2, 3], &[30, 40]),
        wide(&[0], &[50]),
        wide(&[1], &[60]),
    ];
    let moves = [
        (0, [0, 2, 1], 0, [0, 2, 1]),
        (0, [2, 4, 1], 1, [0, 2, 1]),
        (1, [0, 1, 1], 2, [0, 1, 1]),
        (1, [1, 2, 1], 3, [0, 1, 1]),
    ];
    remaps(fx, &inputs, &outputs, &moves, &[REUSE, DONATE])
}

fn rmp_07(fx: &Fixture) -> Check {
    let good = rows(&[0], &[0]);
    let of_floats = Rows {
        dtype: DType::F32,
        ..good
    };
    let larger = Rows {
        shard: [20, 30],
        ..good
    };
    for plan in plans(fx, &[good], &[good], &[(0, [0, 1, 1], 0, [0, 1, 1])])? {
        let rejects = |arrays: &[ArrayRef], text: &str| {
            let made = fx.client.remap_arrays(&plan, arrays, REUSE);
            refused_saying(made, Code::InvalidArgument, text, "remapping other inputs")
        };
        let two = [good.make(fx)?, good.make(fx)?];
        rejects(&two, "RemapArrays expects 1 input arrays, but got 2")?;
        let text = "RemapArrays expects input #0 to have dtype";
        rejects(&[of_floats.make(fx)?], text)?;
        let text = "RemapArrays expects input #0 to have shape";
        rejects(&[larger.make(fx)?], text)?;
        let text = "RemapArrays expects input #0 to be on";
        rejects(&[rows(&[1], &[0]).make(fx)?], text)?;
    }
    Ok(())
}
