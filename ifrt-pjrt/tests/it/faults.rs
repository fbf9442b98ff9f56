//! The crate on a plugin that misbehaves below the C API: every fault is a status, and the process
//! lives. Each run is a process of its own, since a plugin is loaded once and a crash would end it.
//!
//! `examples/faulty_plugin.rs` has the switches, `examples/scenario.rs` does one of everything.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::*;

/// Longer than a scenario takes that waits for several things in vain.
const DEADLINE: Duration = Duration::from_secs(240);

fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let build = test.ancestors().find(|path| path.join("examples").is_dir());
    let path = build.map(|build| build.join("examples").join(name));
    match path {
        Some(path) if path.exists() => path,
        _ => panic!("{name} is not built; run: cargo build -p ifrt-pjrt --examples"),
    }
}

/// What the scenario says under these faults.
fn run(faults: &str) -> Result<String, String> {
    let mut child = Command::new(example("scenario"))
        .arg(example("libfaulty_plugin.so"))
        .env("FAULTY_PLUGIN_REAL", plugin())
        .env("FAULTY_PLUGIN_FAULTS", faults)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    let reader = thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).map(|_| text).unwrap()
    });
    let (sender, receiver) = std::sync::mpsc::channel();
    let id = child.id();
    let waiter = thread::spawn(move || sender.send(child.wait().unwrap()));
    let status = receiver.recv_timeout(DEADLINE);
    if status.is_err() {
        Command::new("kill")
            .args(["-KILL", &id.to_string()])
            .status()
            .unwrap();
    }
    waiter.join().unwrap().ok();
    let text = reader.join().unwrap();
    match status {
        Ok(status) if status.success() && !text.contains("WRONG") => Ok(text),
        Ok(status) => Err(format!(
            "with {faults:?} the process ended with {status}:\n{text}"
        )),
        Err(_) => Err(format!("with {faults:?} the process hangs:\n{text}")),
    }
}

/// The offsets of the functions that the scenario calls.
fn called() -> BTreeSet<usize> {
    let path = std::env::temp_dir().join(format!("ifrt-pjrt-trace-{}", std::process::id()));
    std::fs::remove_file(&path).ok();
    let text = run(&format!("trace:{}", path.display())).unwrap();
    let failed: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("faulty"))
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert!(text.contains("programs: ok"), "{text}");
    assert!(text.contains("rearranging: ok"), "{text}");
    assert!(text.contains("the client is gone"), "{text}");
    let slots = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let slots: BTreeSet<usize> = slots.lines().map(|line| line.parse().unwrap()).collect();
    assert!(slots.len() > 40, "{slots:?}");
    slots
}

#[test]
fn every_function_may_be_missing_or_fail() {
    let faults: Vec<String> = called()
        .iter()
        .flat_map(|slot| [format!("error:{slot}"), format!("null:{slot}")])
        .collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(fault) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(text) = run(fault) {
                        wrong.lock().unwrap().push(text);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn tables_of_older_plugins() {
    for (faults, text) in [
        ("minor:40", "0.40"),
        // The newest functions are not there; everything else goes on.
        ("size:984", "programs: ok"),
        ("size:984,minor:81", "transfer: ok"),
        ("size:100", "client: "),
        ("size:16", "client: "),
    ] {
        let said = run(faults).unwrap();
        assert!(said.contains(text), "with {faults:?}:\n{said}");
    }
}

#[test]
fn events_that_are_never_ready_hold_nobody() {
    let start = Instant::now();
    let said = run("never").unwrap();
    assert!(said.contains("nothing came in time"), "{said}");
    assert!(said.contains("deletion: ok"), "{said}");
    assert!(start.elapsed() < DEADLINE);
}

#[test]
fn freeing_that_blocks_does_not_hold_a_deletion() {
    let said = run("block").unwrap();
    assert!(said.contains("deletion: ok"), "{said}");
    assert!(!said.contains("SLOW"), "{said}");
}

#[test]
fn buffers_are_freed_once() {
    let said = run("once").unwrap();
    assert!(said.contains("deletion: ok"), "{said}");
}

#[test]
fn b9_a_hundred_thousand_cycles_leave_nothing_behind() {
    let output = Command::new(example("scenario"))
        .arg(plugin())
        .arg("100000")
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (_, rest) = text.split_once("cycles: ").expect("the cycles were run");
    let gained: i64 = rest.split_whitespace().next().unwrap().parse().unwrap();
    assert!(gained < 1024, "{text}");
    assert!(text.contains(" 0 buffers live"), "{text}");
    assert!(text.contains("cycles: ok"), "{text}");
}
