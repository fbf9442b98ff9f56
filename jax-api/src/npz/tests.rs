use ifrt::{DType, Shape};
use jaxlib_core::HostArray;

use super::*;

const NUMPY: &[u8] = include_bytes!("../testdata/numpy.npz");
const COMPRESSED: &[u8] = include_bytes!("../testdata/numpy_compressed.npz");

fn array(dtype: DType, dims: &[i64], data: Vec<u8>) -> HostArray {
    HostArray::new(dtype, Shape::new(dims.to_vec()).unwrap(), data).unwrap()
}

fn le<const N: usize>(numbers: impl IntoIterator<Item = [u8; N]>) -> Vec<u8> {
    numbers.into_iter().flatten().collect()
}

fn error(bytes: &[u8]) -> String {
    read(bytes.to_vec()).unwrap_err().to_string()
}

#[test]
fn what_numpy_has_written() {
    let arrays = read(NUMPY).unwrap();
    let names: Vec<&str> = arrays.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "bf16", "big", "complex", "empty", "f8", "flags", "fortran", "scalar"
        ]
    );
    let numbers = le((0..24_u8).map(|n| f32::from(n).to_ne_bytes()));
    assert_eq!(arrays["fortran"], array(DType::F32, &[2, 3, 4], numbers));
    assert_eq!(
        arrays["big"],
        array(DType::S32, &[3], le([0_i32, 1, 2].map(i32::to_ne_bytes)))
    );
    let parts = [1.0_f32, 2.0, 3.0, -4.0].map(f32::to_ne_bytes);
    assert_eq!(arrays["complex"], array(DType::C64, &[2], le(parts)));
    assert_eq!(
        arrays["scalar"],
        array(DType::F64, &[], 2.5_f64.to_ne_bytes().to_vec())
    );
    assert_eq!(arrays["empty"], array(DType::S16, &[0, 3], Vec::new()));
    assert_eq!(arrays["flags"], array(DType::Pred, &[2, 1], vec![1, 0]));
    // 0.5, -2 and 3, of which the file knows only the bits.
    let bits = le([0x3f00_u16, 0xc000, 0x4040].map(u16::to_ne_bytes));
    assert_eq!(arrays["bf16"], array(DType::U16, &[3], bits.clone()));
    assert_eq!(
        arrays["bf16"].with_dtype(DType::BF16).unwrap(),
        array(DType::BF16, &[3], bits)
    );
    assert_eq!(arrays["f8"].dtype(), DType::U8);
    let wrong = arrays["bf16"].with_dtype(DType::F32).unwrap_err();
    assert!(wrong.message().contains("uint16[3]"), "{wrong}");
}

#[test]
fn compressed_archives() {
    let arrays = read(COMPRESSED).unwrap();
    assert_eq!(arrays["zeros"], array(DType::S32, &[40, 50], vec![0; 8000]));
    assert_eq!(arrays["count"], array(DType::U8, &[5], vec![0, 1, 2, 3, 4]));
}

#[test]
fn what_is_written_can_be_read() {
    let written: Vec<(&str, HostArray)> = vec![
        (
            "a",
            array(DType::F32, &[2, 1], vec![1, 2, 3, 4, 5, 6, 7, 8]),
        ),
        ("scalar", array(DType::S64, &[], vec![9; 8])),
        ("empty", array(DType::U8, &[0], Vec::new())),
        ("flags", array(DType::Pred, &[3], vec![1, 0, 1])),
        ("ümlaut", array(DType::C128, &[1], vec![7; 16])),
    ];
    let bytes = write(written.clone()).unwrap();
    let arrays = read(bytes.clone()).unwrap();
    assert_eq!(arrays.len(), written.len());
    for (name, array) in &written {
        assert_eq!(&arrays[*name], array);
    }
    // NumPy maps the elements into memory, so they must be aligned within their member.
    for (position, _) in bytes
        .windows(6)
        .enumerate()
        .filter(|(_, window)| window == b"\x93NUMPY")
    {
        let len = usize::from(u16::from_le_bytes([
            bytes[position + 8],
            bytes[position + 9],
        ]));
        assert_eq!((10 + len) % 64, 0);
    }
    let small = array(DType::S4, &[3], vec![1, 2, 0xff]);
    let read_back = read(write([("x", small.clone())]).unwrap()).unwrap();
    assert_eq!(read_back["x"].with_dtype(DType::S4).unwrap(), small);
    assert_eq!(read(write::<&str>([]).unwrap()).unwrap().len(), 0);
}

#[test]
fn what_cannot_be_written() {
    let x = array(DType::U8, &[1], vec![1]);
    let twice = write([("x", x.clone()), ("x", x)]).unwrap_err();
    assert!(twice.to_string().contains("two members"), "{twice}");
}

#[test]
fn what_cannot_be_read() {
    for (file, words) in [
        (&include_bytes!("../testdata/texts.npz")[..], "'t.npy'"),
        (include_bytes!("../testdata/texts.npz"), "texts ('<U2')"),
        (include_bytes!("../testdata/objects.npz"), "Python objects"),
        (include_bytes!("../testdata/records.npz"), "several fields"),
        (b"", "too short"),
        (&[0; 100], "no directory"),
    ] {
        let message = error(file);
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn damage_of_every_byte_is_an_error_or_harmless() {
    for file in [NUMPY, COMPRESSED] {
        let whole = read(file).unwrap();
        for position in 0..file.len() {
            for value in [0, 0xff, file[position] ^ 1] {
                let mut damaged = file.to_vec();
                damaged[position] = value;
                if let Ok(arrays) = read(damaged) {
                    // Elements are protected by the checksum; names and dates are not.
                    for (name, array) in &arrays {
                        if let Some(before) = whole.get(name) {
                            assert_eq!(array, before, "byte {position}");
                        }
                    }
                }
            }
            assert!(read(file[..position].to_vec()).is_err());
        }
    }
}

#[test]
fn headers_in_unusual_forms() {
    let with_header = |version: u8, text: &str, data: &[u8]| {
        let mut bytes = b"\x93NUMPY".to_vec();
        bytes.extend([version, 0]);
        let len = text.len();
        if version == 1 {
            bytes.extend(u16::try_from(len).unwrap().to_le_bytes());
        } else {
            bytes.extend(u32::try_from(len).unwrap().to_le_bytes());
        }
        bytes.extend(text.as_bytes());
        bytes.extend(data);
        npy::read(&bytes.into())
    };
    let good = array(DType::U8, &[2], vec![1, 2]);
    for text in [
        "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }\n",
        "{\"shape\":(2),\"fortran_order\":False,\"descr\":\"u1\"}",
        "{ 'descr' : '=u1' , 'fortran_order' : True , 'shape' : ( 2L , ) }",
    ] {
        for version in 1..=3 {
            assert_eq!(with_header(version, text, &[1, 2]).unwrap(), good);
        }
    }
    for (text, words) in [
        ("", "where '{' belongs"),
        (
            "{'descr': '|u1', 'shape': (3,)}",
            "has 3 bytes, but 2 follow",
        ),
        ("{'descr': '|u1', 'shape': (-2,)}", "where a size belongs"),
        (
            "{'descr': '|u1', 'shape': (2, 99999999999999999999)}",
            "where a size belongs",
        ),
        ("{'descr': '|u1', 'shape': (9223372036854775807, 9)}", ""),
        ("{'descr': '|u1', 'shape': (2", "where ')' belongs"),
        (
            "{'descr': '|u1', 'fortran_order': 1, 'shape': (2,)}",
            "where 'False' belongs",
        ),
        ("{'shape': (2,)}", "no 'descr'"),
        ("{'descr': '|u1'}", "no 'shape'"),
        ("{'descr': '<m8', 'shape': (2,)}", "no counterpart"),
        ("{'color': 'red'}", "unknown key 'color'"),
    ] {
        let message = with_header(1, text, &[1, 2]).unwrap_err();
        assert!(message.contains(words), "{text}: {message}");
    }
    assert!(with_header(9, "{}", &[]).unwrap_err().contains("version 9"));
}
