//! Reading what `numpy.savez` has written: a zip archive without compression, one array per member.

use std::collections::BTreeMap;

/// An array: the name of its element type in NumPy's notation, its shape and its bytes.
#[derive(Debug)]
pub(crate) struct Npy {
    pub(crate) descr: String,
    pub(crate) shape: Vec<i64>,
    pub(crate) data: Vec<u8>,
}

fn number(bytes: &[u8], position: usize, len: usize) -> usize {
    let little_endian = bytes[position..position + len].iter().rev();
    little_endian.fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// The arrays of an archive by name.
pub(crate) fn read(bytes: &[u8]) -> BTreeMap<String, Npy> {
    let end = bytes
        .windows(4)
        .rposition(|window| window == b"PK\x05\x06")
        .unwrap();
    let count = number(bytes, end + 10, 2);
    let mut entry = number(bytes, end + 16, 4);
    let mut arrays = BTreeMap::new();
    for _ in 0..count {
        assert_eq!(&bytes[entry..entry + 4], b"PK\x01\x02");
        assert_eq!(number(bytes, entry + 10, 2), 0, "a member is compressed");
        let size = number(bytes, entry + 24, 4);
        let name_len = number(bytes, entry + 28, 2);
        let local = number(bytes, entry + 42, 4);
        let name = std::str::from_utf8(&bytes[entry + 46..entry + 46 + name_len]).unwrap();
        let start = local + 30 + number(bytes, local + 26, 2) + number(bytes, local + 28, 2);
        let name = name.strip_suffix(".npy").unwrap().to_owned();
        arrays.insert(name, npy(&bytes[start..start + size]));
        entry += 46 + name_len + number(bytes, entry + 30, 2) + number(bytes, entry + 32, 2);
    }
    arrays
}

fn npy(bytes: &[u8]) -> Npy {
    assert_eq!(&bytes[..6], b"\x93NUMPY");
    assert_eq!(bytes[6], 1, "version of the format");
    let header_len = number(bytes, 8, 2);
    let header = std::str::from_utf8(&bytes[10..10 + header_len]).unwrap();
    let after = |key: &str| header.split_once(key).unwrap().1;
    assert!(after("'fortran_order': ").starts_with("False"));
    let descr = after("'descr': '").split_once('\'').unwrap().0;
    let shape = after("'shape': (").split_once(')').unwrap().0;
    let dims = shape
        .split(',')
        .map(str::trim)
        .filter(|dim| !dim.is_empty());
    Npy {
        descr: descr.to_owned(),
        shape: dims.map(|dim| dim.parse().unwrap()).collect(),
        data: bytes[10 + header_len..].to_vec(),
    }
}
