use super::*;

const PYTHON: &[u8] = include_bytes!("../testdata/python.safetensors");

fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = u64::try_from(header.len()).unwrap().to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

fn array(dtype: DType, dims: &[i64], data: Vec<u8>) -> HostArray {
    HostArray::new(dtype, Shape::new(dims.to_vec()).unwrap(), data).unwrap()
}

#[test]
fn what_python_has_written() {
    let arrays = read(PYTHON).unwrap();
    assert_eq!(arrays.len(), 3);
    let numbers = (0..6_u8).flat_map(|n| f32::from(n).to_le_bytes()).collect();
    assert_eq!(arrays["w"], array(DType::F32, &[2, 3], numbers));
    assert_eq!(arrays["half"], array(DType::F16, &[1], vec![0, 0x3e]));
    let seven = 7_i64.to_le_bytes().to_vec();
    assert_eq!(arrays["n"], array(DType::S64, &[], seven));
}

#[test]
fn what_is_written_can_be_read() {
    let mut written = Vec::new();
    for (n, (name, dtype)) in NAMES.iter().enumerate() {
        let item = dtype.host_byte_size().unwrap();
        let data = (0..3 * item).map(|n| u8::try_from(n).unwrap()).collect();
        written.push((format!("{n} {name}"), array(*dtype, &[3, 1], data)));
    }
    written.push(("empty".into(), array(DType::F32, &[0, 7], Vec::new())));
    let bytes = write(written.clone()).unwrap();
    let arrays = read(bytes).unwrap();
    assert_eq!(arrays, written.into_iter().collect());
    assert!(read(write::<&str>([]).unwrap()).unwrap().is_empty());
}

#[test]
fn what_cannot_be_written() {
    let small = array(DType::S4, &[1], vec![1]);
    let error = write([("x", small)]).unwrap_err().to_string();
    assert!(error.contains("no elements of type int4"), "{error}");
    let one = array(DType::U8, &[1], vec![1]);
    let error = write([("x", one.clone()), ("x", one.clone())]).unwrap_err();
    assert!(error.to_string().contains("twice"), "{error}");
    assert!(write([("__metadata__", one)]).is_err());
}

#[test]
fn what_cannot_be_read() {
    let two = r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}"#;
    assert_eq!(read(file(&format!("{two}}}"), &[1, 2])).unwrap().len(), 1);
    for (bytes, words) in [
        (b"1234".to_vec(), "too short"),
        (u64::MAX.to_le_bytes().to_vec(), "longer than 100 MB"),
        (file("{}", &[])[..9].to_vec(), "cut off"),
        (file("[]", &[]), "no JSON object"),
        (file("{}", &[1]), "0 bytes, but 1 follow"),
        (file(&format!("{two}}}"), &[1]), "0..2 of 1 bytes"),
        (
            file(&format!("{two}}}"), &[1, 2, 3]),
            "2 bytes, but 3 follow",
        ),
        (
            file(
                &format!(r#"{two},"b":{{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}}}"#),
                &[1, 2],
            ),
            "begins at byte 1, where 2 is free",
        ),
        (
            file(
                &format!(r#"{two},"b":{{"dtype":"U8","shape":[1],"data_offsets":[3,4]}}}}"#),
                &[0; 4],
            ),
            "begins at byte 3",
        ),
        (
            file(
                r#"{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,2]}}"#,
                &[1, 2],
            ),
            "'a'",
        ),
        (
            file(
                r#"{"a":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}}"#,
                &[1, 2],
            ),
            "type F4",
        ),
        (
            file(
                r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[2,0]}}"#,
                &[1, 2],
            ),
            "2..0",
        ),
        (
            file(
                r#"{"a":{"dtype":"U8","shape":[-2],"data_offsets":[0,2]}}"#,
                &[1, 2],
            ),
            "'a'",
        ),
        (
            file(
                r#"{"a":{"dtype":"U8","shape":2,"data_offsets":[0,2]}}"#,
                &[1, 2],
            ),
            "no list of sizes",
        ),
        (
            file(r#"{"a":{"dtype":"U8","shape":[2]}}"#, &[1, 2]),
            "not two numbers",
        ),
        (file(r#"{"a":5}"#, &[]), "no 'dtype'"),
    ] {
        let message = read(bytes).unwrap_err().to_string();
        assert!(message.contains(words), "{words}: {message}");
    }
}

#[test]
fn damage_of_every_byte_is_an_error_or_harmless() {
    for position in 0..PYTHON.len() {
        for value in [0, 0xff, PYTHON[position] ^ 1] {
            let mut damaged = PYTHON.to_vec();
            damaged[position] = value;
            drop(read(damaged));
        }
        assert!(read(PYTHON[..position].to_vec()).is_err());
    }
}
