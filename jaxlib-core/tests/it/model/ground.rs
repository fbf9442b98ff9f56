//! What the model runs on: a runtime, and the programs that it understands.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use ifrt_pjrt::{CreateOptions, PLUGIN_PATH_VARIABLE, PjrtClient};
use jaxlib_core::{Array, LoadedExecutable, Sharding};

use crate::support::{DEADLINE, Stage};

/// Where an array is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    Single(usize),
    Copies(usize),
    Split(usize),
}

impl Place {
    pub(crate) fn sharding(self, stage: &Stage) -> Sharding {
        match self {
            Self::Single(device) => stage.device(device),
            Self::Copies(count) => stage.copies(count).into(),
            Self::Split(count) => stage.split(count).into(),
        }
    }

    pub(crate) fn buffers(self) -> usize {
        match self {
            Self::Single(_) => 1,
            Self::Copies(count) | Self::Split(count) => count,
        }
    }

    fn fake_module(self, len: usize) -> String {
        let spread = match self {
            Self::Single(_) | Self::Copies(_) => "replicated".to_owned(),
            Self::Split(count) => format!("tiled[{count}]"),
        };
        format!(
            "fake:add(f32[{len}] {spread} donated, f32[{len}] {spread}) -> (f32[{len}] {spread})"
        )
    }

    fn stablehlo_module(self, len: usize) -> String {
        let (count, axis) = match self {
            Self::Single(_) => (1, ""),
            Self::Copies(count) => (count, ""),
            Self::Split(count) => (count, "\"x\""),
        };
        let spread = format!("sdy.sharding = #sdy.sharding<@mesh, [{{{axis}}}]>");
        format!(
            "module @add attributes {{mhlo.num_partitions = {count} : i32, mhlo.num_replicas = 1 : \
             i32}} {{
               sdy.mesh @mesh = <[\"x\"={count}]>
               func.func public @main(
                   %a: tensor<{len}xf32> {{{spread}, tf.aliasing_output = 0 : i32}},
                   %b: tensor<{len}xf32> {{{spread}}}) -> (tensor<{len}xf32> {{{spread}}}) {{
                 %c = stablehlo.add %a, %b : tensor<{len}xf32>
                 return %c : tensor<{len}xf32>
               }}
             }}"
        )
    }
}

/// How programs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Fake,
    StableHlo,
}

/// A runtime, and the programs that it understands.
pub(crate) struct Ground<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) dialect: Dialect,
    pub(crate) programs: RefCell<HashMap<(Place, usize), Rc<LoadedExecutable>>>,
}

impl<'a> Ground<'a> {
    pub(crate) fn new(stage: &'a Stage, dialect: Dialect) -> Self {
        Self {
            stage,
            dialect,
            programs: RefCell::default(),
        }
    }

    /// Adds two arrays of `len` elements; the first one may be donated.
    pub(crate) fn add(&self, place: Place, len: usize, example: &Array) -> Rc<LoadedExecutable> {
        let mut programs = self.programs.borrow_mut();
        let program = programs.entry((place, len)).or_insert_with(|| {
            let module = match self.dialect {
                Dialect::Fake => place.fake_module(len),
                Dialect::StableHlo => place.stablehlo_module(len),
            };
            Rc::new(self.stage.compile_for(&module, example))
        });
        Rc::clone(program)
    }
}

/// A stage over the CPU plugin, which all cases of a test use one after the other.
pub(crate) struct CpuWorld {
    pub(crate) stage: Stage,
    runtime: Arc<PjrtClient>,
}

impl CpuWorld {
    pub(crate) fn new() -> Self {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let plugin = std::env::var(PLUGIN_PATH_VARIABLE)
            .unwrap_or_else(|_| format!("{root}/target/xtask/plugins/pjrt_cpu.so"));
        assert!(
            std::path::Path::new(&plugin).exists(),
            "this test needs the CPU plugin at {plugin}; run: cargo xtask setup (or set \
             {PLUGIN_PATH_VARIABLE})"
        );
        let options = CreateOptions::parse(["cpu_device_count=8"]).unwrap();
        let runtime = PjrtClient::create(plugin.as_ref(), &options).unwrap();
        Self {
            stage: Stage::new(Arc::clone(&runtime) as _),
            runtime,
        }
    }

    /// Waits until the plugin has freed everything.
    pub(crate) fn wait_until_empty(&self) {
        let began = Instant::now();
        while self.runtime.buffer_counts().live() > 0 {
            assert!(
                began.elapsed() < DEADLINE,
                "{:?} after everything was dropped",
                self.runtime.buffer_counts()
            );
            std::thread::yield_now();
        }
    }
}
