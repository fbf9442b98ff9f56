//! What the client costs its caller when the server is far away: the fake runtime behind a relay that
//! delays every byte.
//!
//! ```text
//! cargo run --release -p ifrt-proxy --features client,server --example latency [ROUND_TRIP_MS]
//! ```
//!
//! Prints medians and 99th percentiles of what a caller waits for, without and with the delay; the
//! time of 1,000 chained executions; and the speed of bulk transfers beside that of a bare socket.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example talks to its user"
)]

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ifrt::conformance::ProgramKind;
use ifrt::conformance::program::{fake_module, register_fake_programs};
use ifrt::fake::{FakeClient, FakeOptions};
use ifrt::{
    ArrayRef, Client, DType, DeviceList, ExecuteOptions, HostBuffer, HostData, LoadedExecutableRef,
    MemoryKind, Shape, Sharding,
};
use ifrt_proxy::client::{ClientOptions, ProxyClient};
use ifrt_proxy::server::Server;

type Outcome<T> = Result<T, Box<dyn Error>>;

const SAMPLES: usize = 300;
const CHAIN: usize = 1000;
const BULK_BYTES: usize = 64 << 20;

fn main() -> Outcome<()> {
    let milliseconds = std::env::args()
        .nth(1)
        .map_or(Ok(20), |text| text.parse())?;
    let round_trip = Duration::from_millis(milliseconds);
    let fake = FakeClient::new(FakeOptions::default());
    register_fake_programs(&fake)?;
    let address = "grpc://127.0.0.1:0".parse()?;
    let server = Server::builder(fake).build().in_background(&address)?;
    let direct = server.address().to_string();
    let target = direct.trim_start_matches("grpc://").to_owned();

    println!("without delay:");
    let near = measure(&direct)?;
    println!("with a round trip of {round_trip:?}:");
    let far = measure(&relay(target, round_trip / 2)?)?;
    let excess = far.saturating_sub(round_trip).as_secs_f64() / near.as_secs_f64();
    println!("1,000 chained executions, less one round trip, take {excess:.2} times as long");
    bulk(&direct)?;
    Ok(())
}

/// Measures a client at this address; returns the time of the chain.
fn measure(address: &str) -> Outcome<Duration> {
    let client = ProxyClient::connect(address, ClientOptions::new())?;
    let devices: DeviceList = client.devices().iter().take(1).cloned().collect();
    let (program, options) = fake_module(ProgramKind::AddOne, &devices).ok_or("no program")?;
    let executable = client
        .default_compiler()
        .compile_and_load(program, options)
        .wait()?;
    let first = put(&client, DType::S32, &[2, 3], Bytes::from_static(&[0; 24]))?;
    drop(run(&executable, &first)?);

    let (mut puts, mut runs, mut asks, mut deletions) = (vec![], vec![], vec![], vec![]);
    for _ in 0..SAMPLES {
        // As a program with some work of its own: the threads of the client sleep in between.
        thread::sleep(Duration::from_millis(2));
        let array = timed(&mut puts, || {
            put(&client, DType::S32, &[2, 3], Bytes::from_static(&[0; 24]))
        })?;
        let output = timed(&mut runs, || run(&executable, &array))?;
        timed(&mut asks, || output.is_deleted());
        timed(&mut deletions, || array.delete().detach());
    }
    for (what, times) in [
        ("device_put", &mut puts),
        ("execute", &mut runs),
        ("is_deleted", &mut asks),
        ("delete", &mut deletions),
    ] {
        times.sort_unstable();
        let (median, last) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        println!("  {what:<12} median {median:>9.1?}   p99 {last:>9.1?}");
    }
    let began = Instant::now();
    let mut array = first;
    for _ in 0..CHAIN {
        array = run(&executable, &array)?;
    }
    let sent = began.elapsed();
    array.ready().wait()?;
    let took = began.elapsed();
    println!("  {CHAIN} chained executions: sent after {sent:.1?}, ready after {took:.1?}");
    Ok(took)
}

fn timed<T>(times: &mut Vec<Duration>, f: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let value = f();
    times.push(began.elapsed());
    value
}

fn put(
    client: &Arc<ProxyClient>,
    dtype: DType,
    dims: &[i64],
    data: Bytes,
) -> ifrt::Result<ArrayRef> {
    let buffer = HostBuffer::dense(HostData::Shared(data), dtype, Shape::new(dims)?);
    let device = client.devices().first().cloned();
    let device = device.ok_or_else(|| ifrt::Status::internal("the fake has no device"))?;
    let sharding = Sharding::single_device(device, MemoryKind::default());
    client.make_array_from_host_buffer(buffer, sharding, None)
}

fn run(executable: &LoadedExecutableRef, argument: &ArrayRef) -> ifrt::Result<ArrayRef> {
    let args = [Arc::clone(argument)];
    let mut run = executable.execute(&args, &ExecuteOptions::default(), None)?;
    let output = run.outputs.pop();
    output.ok_or_else(|| ifrt::Status::internal("the program has no output"))
}

/// Large arrays there and back, in turn with the same over a bare socket.
fn bulk(address: &str) -> Outcome<()> {
    let client = ProxyClient::connect(address, ClientOptions::new())?;
    let data = Bytes::from(vec![7_u8; BULK_BYTES]);
    let length = i64::try_from(BULK_BYTES)?;
    let (mut bare, mut puts, mut gets) = (vec![], vec![], vec![]);
    for _ in 0..5 {
        timed(&mut bare, || bare_socket(&data))?;
        let array = timed(&mut puts, || {
            let array = put(&client, DType::U8, &[length], data.clone())?;
            array.ready().wait().map(|()| array)
        })?;
        let read = timed(&mut gets, || array.copy_to_host(None).wait())?;
        if read.into_bytes()? != data {
            return Err("the data came back changed".into());
        }
    }
    for (what, times) in [("bare socket", bare), ("put", puts), ("get", gets)] {
        let fastest = times.into_iter().min().unwrap_or_default();
        let speed = f64::from(u32::try_from(BULK_BYTES >> 20)?) / 1024.0 / fastest.as_secs_f64();
        println!("  {what:<12} {speed:.2} GiB/s");
    }
    Ok(())
}

/// Sends the data over a socket into one buffer.
fn bare_socket(data: &Bytes) -> Outcome<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let data = data.clone();
    let length = data.len();
    let sending = thread::spawn(move || TcpStream::connect(address)?.write_all(&data));
    let (mut stream, _) = listener.accept()?;
    let mut received = Vec::with_capacity(length);
    stream.read_to_end(&mut received)?;
    sending.join().map_err(|_| "the sender has panicked")??;
    if received.len() == length {
        Ok(())
    } else {
        Err("bytes were lost".into())
    }
}

/// A relay that delivers every byte `delay` late, in both directions; returns its address.
fn relay(target: String, delay: Duration) -> Outcome<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = format!("grpc://{}", listener.local_addr()?);
    thread::spawn(move || {
        for near in listener.incoming() {
            let joined = near.and_then(|near| join(near, &target, delay));
            if let Err(error) = joined {
                eprintln!("the relay: {error}");
            }
        }
    });
    Ok(address)
}

fn join(near: TcpStream, target: &str, delay: Duration) -> std::io::Result<()> {
    let far = TcpStream::connect(target)?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    forward(near.try_clone()?, far.try_clone()?, delay);
    forward(far, near, delay);
    Ok(())
}

/// Two threads: one reads as fast as it can, one writes when it is time.
fn forward(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let (sender, receiver) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let due = Instant::now() + delay;
            if sender.send((due, buffer[..count].to_vec())).is_err() {
                break;
            }
        }
    });
    thread::spawn(move || {
        for (due, bytes) in receiver {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        // Whoever was there is gone if this fails.
        to.shutdown(Shutdown::Both).unwrap_or_default();
    });
}
