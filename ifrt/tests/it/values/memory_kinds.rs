use ifrt::MemoryKind;

use super::assert_hash_is_consistent;

#[test]
fn mk_01_mk_07_and_mk_08_the_default_is_device() {
    let kinds = [
        MemoryKind::default(),
        MemoryKind::new("device"),
        MemoryKind::from(None),
        MemoryKind::from(Some("device")),
    ];
    for kind in &kinds {
        assert!(kind.is_default());
        assert_eq!(
            (kind.name(), kind.to_string().as_str()),
            ("device", "device")
        );
        assert_eq!(*kind, kinds[0]);
        assert_hash_is_consistent(std::slice::from_ref(kind), &kinds[..1]);
    }
}

#[test]
fn mk_02_to_mk_06_mk_09_and_mk_10_kinds_compare_by_their_text() {
    let text = String::from("abc");
    let owned = MemoryKind::new(&text);
    drop(text);
    assert_eq!(owned, MemoryKind::new("abc"));
    assert_eq!(owned.name(), "abc");
    assert!(!MemoryKind::new("").is_default());
    let make = || ["", "abc", "abd", "device"].map(MemoryKind::new);
    assert_hash_is_consistent(&make(), &make());
}
