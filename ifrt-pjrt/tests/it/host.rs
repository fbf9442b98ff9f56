//! Data to devices and back.

use crate::support::*;

#[test]
fn floats() {
    let client = client(1);
    let x = put(&client, &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    assert_eq!(fetch(&x), [1.0, 2.0, 3.0, 4.0]);
}
