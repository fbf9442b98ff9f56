use super::*;

#[test]
fn sizes() {
    for (len, expected) in [
        (0, &[0][..]),
        (1, &[1]),
        (CHUNK_BYTES, &[CHUNK_BYTES]),
        (CHUNK_BYTES + 1, &[CHUNK_BYTES, 1]),
        (2 * CHUNK_BYTES, &[CHUNK_BYTES, CHUNK_BYTES]),
    ] {
        let bytes = Bytes::from(vec![7; len]);
        let sizes: Vec<usize> = Chunks::new(bytes)
            .map(|chunk| chunk.unwrap().data.len())
            .collect();
        assert_eq!(sizes, expected);
    }
}
