use super::*;

#[test]
fn the_bytes_are_aligned_and_not_moved() {
    for size in [0, 1, 63, 64, 65, 4096, 1 << 20] {
        let mut memory = UploadMemory::new(size).unwrap();
        let data: Vec<u8> = (0..size).map(|n| n.to_le_bytes()[0]).collect();
        for chunk in data.chunks(1000) {
            memory.push(chunk);
        }
        let bytes = memory.finish();
        assert_eq!(bytes, data);
        if size > 0 {
            assert_eq!(bytes.as_ptr().addr() % ALIGNMENT, 0);
        }
    }
}

#[test]
fn too_much_is_an_error() {
    for size in [
        usize::MAX,
        usize::MAX - ALIGNMENT,
        usize::MAX / 2 - ALIGNMENT,
    ] {
        let error = UploadMemory::new(size).unwrap_err();
        assert_eq!(error.code(), ifrt::Code::ResourceExhausted);
        assert!(error.message().contains(&size.to_string()));
    }
}
