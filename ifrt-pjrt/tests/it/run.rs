//! Compiling and running programs.

use crate::support::*;

#[test]
fn a_program_runs_on_one_device() {
    let client = client(1);
    let f = compile(&client, &add_one("4"));
    let x = put(&client, &[4], &[1.0, 2.0, 3.0, 4.0]);
    let y = run(&f, &[&x]).unwrap();
    assert_eq!(fetch(&y[0]), [2.0, 3.0, 4.0, 5.0]);
}
