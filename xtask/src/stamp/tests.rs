use super::*;

#[test]
fn inputs_do_not_run_into_each_other() {
    assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
    assert_ne!(hash(&["a"]), hash(&["a", ""]));
    assert_eq!(hash(&["a", "b"]), hash(&["a", "b"]));
}
