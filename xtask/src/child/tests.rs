use super::*;

const DEADLINE: Duration = Duration::from_secs(20);

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

fn spawn(script: &str, piped_stdin: bool) -> Child {
    Child::spawn("child", &mut shell(script), piped_stdin, [Output::Keep; 2]).unwrap()
}

/// Whether a process is there and no zombie.
fn is_running(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap()
            .trim_start()
            .starts_with('Z')
    })
}

/// A child that starts a grandchild which would outlive it by far.
fn with_grandchild(then: &str) -> (Child, String) {
    let child = spawn(
        &format!("tail -f /dev/null & echo grandchild $!; {then}"),
        false,
    );
    let pid = child
        .wait_for_line("grandchild", 0, DEADLINE, |line| {
            line.text.strip_prefix("grandchild ").map(str::to_owned)
        })
        .unwrap();
    (child, pid)
}

fn wait_until_gone(pid: &str) {
    let started = Instant::now();
    while is_running(pid) {
        assert!(started.elapsed() < DEADLINE, "{pid} is still running");
        std::thread::yield_now();
    }
}

#[test]
fn keeps_both_streams_and_the_status() {
    let child = spawn("echo one; echo two >&2; exit 3", false);
    assert_eq!(child.wait(DEADLINE).unwrap().code(), Some(3));
    let lines = child.lines();
    let of = |stream| -> Vec<String> {
        lines
            .iter()
            .filter(|l| l.stream == stream)
            .map(|l| l.text.clone())
            .collect()
    };
    assert_eq!(of(Stream::Out), ["one"]);
    assert_eq!(of(Stream::Err), ["two"]);
}

#[test]
fn an_expired_deadline_shows_the_last_lines() {
    let child = spawn("echo before; tail -f /dev/null", false);
    child
        .wait_for_line("start", 0, DEADLINE, |l| (l.text == "before").then_some(()))
        .unwrap();
    let error = child.wait(Duration::ZERO).unwrap_err().to_string();
    assert!(
        error.contains("did not end") && error.contains("| before"),
        "{error}"
    );
    let never = |_: &Line| None::<()>;
    let error = child
        .wait_for_line("miracle", 0, Duration::ZERO, never)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("no miracle") && error.contains("| before"),
        "{error}"
    );
}

#[test]
fn waiting_for_a_line_of_a_child_that_ended_is_an_error() {
    let child = spawn("echo only; exit 5", false);
    let error = child
        .wait_for_line("other line", 0, DEADLINE, |l| {
            (l.text == "other").then_some(())
        })
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("before other line") && error.contains('5'),
        "{error}"
    );
}

#[test]
fn dropping_kills_the_whole_group() {
    let (child, pid) = with_grandchild("wait");
    assert!(is_running(&pid));
    drop(child);
    wait_until_gone(&pid);
}

#[test]
fn the_end_of_the_leader_ends_its_group() {
    let (child, pid) = with_grandchild("exit 0");
    assert!(child.wait(DEADLINE).unwrap().success());
    wait_until_gone(&pid);
}

#[test]
fn talks_over_standard_input() {
    let mut child = spawn("read word; echo got $word; cat; echo end", true);
    child.write_line("hello").unwrap();
    child
        .wait_for_line("answer", 0, DEADLINE, |l| {
            (l.text == "got hello").then_some(())
        })
        .unwrap();
    let mark = child.mark();
    child.close_stdin();
    child
        .wait_for_line("end", mark, DEADLINE, |l| (l.text == "end").then_some(()))
        .unwrap();
    assert!(child.wait(DEADLINE).unwrap().success());
}

#[test]
fn a_failing_command_is_an_error_with_its_output() {
    let error = output("tool", &mut shell("echo reason >&2; exit 1"), DEADLINE)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("tool failed") && error.contains("| reason"),
        "{error}"
    );
    assert_eq!(
        output("tool", &mut shell("echo fine"), DEADLINE).unwrap(),
        "fine"
    );
}
