//! This crate beside a C program that calls the plugin directly: who pays how much for the same work.
//!
//! `cargo bench -p ifrt-pjrt --bench side_by_side`
//!
//! Both run as they are used: the C program (`baseline.c`, compiled here with `cc`) in a process of
//! its own, this crate in this one, in turns, so that whatever else the machine does meets both. The
//! ratios are those of the medians over the rounds. Ends with 1 if one is above its target.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark stops where something is missing, and prints its table"
)]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ifrt::proto::xla::{CompileOptionsProto, ExecutableBuildOptionsProto};
use ifrt::{
    ArrayRef, Client as _, CompileOptions, DType, ExecuteOptions, HloProgram, HostBuffer, HostData,
    LoadedExecutableRef, MemoryKind, Program, Shape, Sharding, ShardingRef, XlaCompileOptions,
};
use ifrt_pjrt::{CreateOptions, PLUGIN_PATH_VARIABLE, PjrtClient};
use prost::Message as _;

const ROUNDS: usize = 7;

/// What is compared, how often in a round, on so many bytes, and the ratio of CPU time or, where the
/// system's part is too noisy, of the clock that must not be exceeded.
const ROWS: [Row; 7] = [
    row("execute", 40_000, 4, 1.15),
    row("put", 100_000, 4, 1.1),
    row("put", 50_000, 64 << 10, 1.1),
    row("put", 12, 64 << 20, 1.1),
    row("fetch", 10_000, 4, 1.1),
    row("fetch", 10_000, 64 << 10, 1.1),
    row("fetch", 12, 64 << 20, 1.1),
];

/// A deletion takes the caller no longer than this, while a run uses the array.
const DELETION: Duration = Duration::from_micros(5);

struct Row {
    operation: &'static str,
    times: u32,
    bytes: usize,
    target: f64,
}

const fn row(operation: &'static str, times: u32, bytes: usize, target: f64) -> Row {
    Row {
        operation,
        times,
        bytes,
        target,
    }
}

/// Nanoseconds per operation.
#[derive(Clone, Copy)]
struct Cost {
    cpu: f64,
    wall: f64,
}

fn main() -> ExitCode {
    let plugin = plugin();
    let work = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let mut c = Baseline::start(&work, &plugin);
    let rust = Ours::new(&plugin);
    let mut missed = 0;
    println!("                       C ns/op              ours ns/op           ours / C");
    println!(
        "                       cpu        wall      cpu        wall      cpu    wall   target"
    );
    for row in &ROWS {
        let (mut base, mut own) = (Vec::new(), Vec::new());
        // The first round warms both up.
        for round in 0..=ROUNDS {
            let (a, b) = (c.measure(row), rust.measure(row));
            if round > 0 {
                base.push(a);
                own.push(b);
            }
        }
        let (base, own) = (median(&base), median(&own));
        let (cpu, wall) = (own.cpu / base.cpu, own.wall / base.wall);
        let verdict = if cpu <= row.target { "ok" } else { "MISSED" };
        missed += u32::from(cpu > row.target);
        println!(
            "{:8} {:9} B  {:10.0} {:10.0}  {:10.0} {:10.0}  {cpu:5.2}x {wall:5.2}x  {:.2}x {verdict}",
            row.operation, row.bytes, base.cpu, base.wall, own.cpu, own.wall, row.target
        );
    }
    for (bytes, samples) in [(4, 400), (64 << 20, 40)] {
        let median = rust.deletion(bytes, samples);
        let verdict = if median < DELETION { "ok" } else { "MISSED" };
        missed += u32::from(median >= DELETION);
        println!("delete of {bytes} B while a run uses it: {median:?} at the caller {verdict}");
    }
    println!("{missed} targets missed");
    ExitCode::from(u8::from(missed > 0))
}

fn plugin() -> PathBuf {
    let installed =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/xtask/plugins/pjrt_cpu.so");
    let path = std::env::var_os(PLUGIN_PATH_VARIABLE).map_or(installed, PathBuf::from);
    assert!(
        path.exists(),
        "there is no CPU plugin at {}; run: cargo xtask setup (or set {PLUGIN_PATH_VARIABLE})",
        path.display()
    );
    path
}

fn median(costs: &[Cost]) -> Cost {
    let middle = |of: fn(&Cost) -> f64| {
        let mut all: Vec<f64> = costs.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    Cost {
        cpu: middle(|cost| cost.cpu),
        wall: middle(|cost| cost.wall),
    }
}

/// `x + 1` on one float.
const MODULE: &str = "module @add_one {
  func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
    %one = stablehlo.constant dense<1.0> : tensor<1xf32>
    %y = stablehlo.add %x, %one : tensor<1xf32>
    return %y : tensor<1xf32>
  }
}";

fn options() -> Vec<u8> {
    CompileOptionsProto {
        executable_build_options: Some(ExecutableBuildOptionsProto {
            device_ordinal: -1,
            num_replicas: 1,
            num_partitions: 1,
            ..ExecutableBuildOptionsProto::default()
        }),
        ..CompileOptionsProto::default()
    }
    .encode_to_vec()
}

/// The C program.
struct Baseline {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Baseline {
    fn start(work: &Path, plugin: &Path) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/baseline.c");
        let [program, module, compile_options] =
            ["baseline", "module.mlir", "options.pb"].map(|name| work.join(name));
        let compiled = Command::new("cc")
            .args(["-O2", "-o"])
            .args([&program, &source])
            .arg("-ldl")
            .status()
            .expect("the baseline needs a C compiler, `cc`");
        assert!(compiled.success(), "the baseline does not compile");
        fs::write(&module, MODULE).unwrap();
        fs::write(&compile_options, options()).unwrap();
        let mut child = Command::new(&program)
            .args([plugin, &module, &compile_options])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            requests: child.stdin.take().unwrap(),
            answers: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    fn measure(&mut self, row: &Row) -> Cost {
        let Row {
            operation,
            times,
            bytes,
            ..
        } = row;
        writeln!(self.requests, "{operation} {times} {bytes}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let mut numbers = line
            .split_whitespace()
            .map(|number| number.parse().unwrap());
        Cost {
            cpu: numbers.next().expect("the baseline has ended"),
            wall: numbers.next().expect("the baseline has ended"),
        }
    }
}

impl Drop for Baseline {
    fn drop(&mut self) {
        let _ended = self.child.kill().and_then(|()| self.child.wait());
    }
}

/// This crate.
struct Ours {
    client: Arc<PjrtClient>,
    sharding: ShardingRef,
    add_one: LoadedExecutableRef,
}

impl Ours {
    fn new(plugin: &Path) -> Self {
        let options = CreateOptions::parse(["cpu_device_count=1"]).unwrap();
        let client = PjrtClient::create(plugin, &options).unwrap();
        let device = Arc::clone(&client.devices()[0]);
        Self {
            sharding: Sharding::single_device(device, MemoryKind::default()),
            add_one: compile(&client, MODULE.to_owned()),
            client,
        }
    }

    fn put(&self, data: &[u8], shape: &Shape) -> ArrayRef {
        let host = HostBuffer::dense(HostData::Borrowed(data), DType::F32, shape.clone());
        let sharding = Arc::clone(&self.sharding);
        self.client
            .make_array_from_host_buffer(host, sharding, None)
            .unwrap()
    }

    fn measure(&self, row: &Row) -> Cost {
        let data = vec![0; row.bytes];
        let shape = floats(row.bytes);
        let options = ExecuteOptions::default();
        let x = self.put(&data, &shape);
        x.ready().wait().unwrap();
        let (cpu, wall) = (cpu_time(), Instant::now());
        match row.operation {
            "execute" => {
                let mut args = [x];
                for _ in 0..row.times {
                    let run = self.add_one.execute(&args, &options, None).unwrap();
                    args = run.outputs.try_into().unwrap();
                }
                args[0].ready().wait().unwrap();
            }
            "put" => {
                for _ in 0..row.times {
                    drop(self.put(&data, &shape));
                }
            }
            _ => {
                for _ in 0..row.times {
                    drop(x.copy_to_host(None).wait().unwrap());
                }
            }
        }
        let per = |time: Duration| time.as_secs_f64() * 1e9 / f64::from(row.times);
        Cost {
            cpu: per(cpu_time() - cpu),
            wall: per(wall.elapsed()),
        }
    }

    /// The median of what a deletion takes its caller while a run holds the array.
    fn deletion(&self, bytes: usize, samples: usize) -> Duration {
        let run = compile(&self.client, busy(bytes / 4));
        let (data, shape) = (vec![0; bytes], floats(bytes));
        let mut times: Vec<Duration> = (0..samples)
            .map(|_| {
                let x = self.put(&data, &shape);
                x.ready().wait().unwrap();
                let result = run.execute(&[Arc::clone(&x)], &ExecuteOptions::default(), None);
                let output = result.unwrap().outputs.remove(0);
                let start = Instant::now();
                x.delete().detach();
                let took = start.elapsed();
                assert!(x.is_deleted());
                output.ready().wait().unwrap();
                took
            })
            .collect();
        times.sort();
        times[times.len() / 2]
    }
}

fn floats(bytes: usize) -> Shape {
    Shape::new([i64::try_from(bytes / 4).unwrap()]).unwrap()
}

/// A program that holds its argument for a while, whatever its size.
fn busy(elements: usize) -> String {
    format!(
        "module @busy {{
          func.func @main(%x: tensor<{elements}xf32>) -> tensor<1xf32> {{
            %zero = stablehlo.constant dense<0> : tensor<i32>
            %a = stablehlo.slice %x [0:1] : (tensor<{elements}xf32>) -> tensor<1xf32>
            %r:2 = stablehlo.while(%i = %zero, %b = %a) : tensor<i32>, tensor<1xf32>
            cond {{
              %n = stablehlo.constant dense<20000> : tensor<i32>
              %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
              stablehlo.return %c : tensor<i1>
            }} do {{
              %one = stablehlo.constant dense<1> : tensor<i32>
              %j = stablehlo.add %i, %one : tensor<i32>
              %d = stablehlo.tanh %b : tensor<1xf32>
              stablehlo.return %j, %d : tensor<i32>, tensor<1xf32>
            }}
            return %r#1 : tensor<1xf32>
          }}
        }}"
    )
}

fn compile(client: &PjrtClient, module: String) -> LoadedExecutableRef {
    let program = Program::Hlo(HloProgram {
        module: module.into(),
    });
    let options = CompileOptions::Xla(XlaCompileOptions {
        compile_options: options().into(),
        devices: None,
        outputs_bundle_slice_sizes: None,
    });
    let compiled = client.default_compiler().compile_and_load(program, options);
    compiled.wait().unwrap()
}

/// What all threads of this process have computed so far.
fn cpu_time() -> Duration {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let times = tasks.filter_map(|task| {
        // A thread may end meanwhile.
        let text = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(times.sum())
}
