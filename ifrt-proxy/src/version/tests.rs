use super::*;

const fn version(protocol: i32, serdes: i32) -> Version {
    Version { protocol, serdes }
}

#[track_caller]
fn agreed(min: (i32, i32), max: (i32, i32), expected: (i32, i32)) {
    let agreed = negotiate(version(min.0, min.1), version(max.0, max.1)).unwrap();
    assert_eq!((agreed.protocol, agreed.serdes), expected);
}

/// The offers of released clients.
#[test]
fn released_clients_find_a_common_version() {
    for (max, expected) in [
        ((16, 0), (16, 0)),
        ((19, 0), (19, 0)),
        ((22, 0), (22, 0)),
        ((23, 0), (23, 0)),
        ((25, 1), (25, 1)),
        ((25, 3), (25, 3)),
        ((25, 5), (25, 5)),
        ((25, 6), (25, 5)),
        ((99, 99), (25, 5)),
    ] {
        agreed((16, 0), max, expected);
    }
    // A newer client refuses the oldest serdes versions.
    agreed((16, 2), (25, 6), (25, 5));
    agreed((25, 5), (25, 5), (25, 5));
}

#[test]
fn the_answer_always_lies_in_both_ranges() {
    for min_protocol in -1..30 {
        for max_protocol in -1..30 {
            for serdes in [(0, 3), (2, 6), (6, 9), (-3, -1), (4, 2), (5, 5)] {
                let (min, max) = (
                    version(min_protocol, serdes.0),
                    version(max_protocol, serdes.1),
                );
                if let Ok(agreed) = negotiate(min, max) {
                    assert!((min.protocol..=max.protocol).contains(&agreed.protocol));
                    assert!((min.serdes..=max.serdes).contains(&agreed.serdes));
                    assert!(check(agreed).is_ok());
                }
            }
        }
    }
}

#[test]
fn no_common_version_names_both_ranges() {
    for (min, max, what, ranges) in [
        (
            (10, 0),
            (15, 3),
            "protocol",
            "16 to 25, the client 10 to 15",
        ),
        (
            (26, 0),
            (30, 3),
            "protocol",
            "16 to 25, the client 26 to 30",
        ),
        ((16, 6), (25, 9), "serdes", "0 to 5, the client 6 to 9"),
        ((16, -4), (25, -1), "serdes", "0 to 5, the client -4 to -1"),
        (
            (20, 0),
            (18, 3),
            "protocol",
            "16 to 25, the client 20 to 18",
        ),
    ] {
        let error = negotiate(version(min.0, min.1), version(max.0, max.1)).unwrap_err();
        assert_eq!(error.code(), ifrt::Code::InvalidArgument);
        assert!(error.message().contains(what), "{error}");
        assert!(error.message().contains(ranges), "{error}");
    }
}

#[test]
fn a_session_needs_a_known_version() {
    assert!(check(version(16, 0)).is_ok());
    assert!(check(version(25, 5)).is_ok());
    for unknown in [(15, 0), (26, 0), (16, -1), (16, 6), (0, 0)] {
        assert!(check(version(unknown.0, unknown.1)).is_err(), "{unknown:?}");
    }
}
