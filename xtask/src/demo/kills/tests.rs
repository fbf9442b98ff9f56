use super::*;

#[test]
fn reads_the_line_of_the_server() {
    let line = "2026-01-01T00:00:00Z  INFO ifrt_proxy::server: session 12 ended: freed 3 arrays, \
                2 executables, 1 host buffers";
    assert_eq!(
        freed(line),
        Some(Freed {
            arrays: 3,
            executables: 2
        })
    );
    for other in [
        "",
        "session 12 opened",
        "session x ended: freed 3 arrays, 2 executables",
        "session 12 ended: freed some arrays, 2 executables",
        "session 12 ended: freed 3 arrays",
    ] {
        assert_eq!(freed(other), None, "{other}");
    }
}
