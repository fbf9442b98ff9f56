use super::*;

#[test]
fn texts() {
    for text in [
        "grpc://127.0.0.1:0",
        "grpc://localhost:8000",
        "grpc://[::1]:65535",
        "grpcs://tpu.example:443",
        "grpc://unix:/tmp/x.sock",
        "grpc://unix:x.sock",
    ] {
        assert_eq!(text.parse::<ListenAddress>().unwrap().to_string(), text);
    }
    assert_eq!(
        "grpc://unix:///tmp/x".parse::<ListenAddress>().unwrap(),
        ListenAddress::Unix("/tmp/x".into())
    );
}

#[test]
fn other_texts_teach_the_form() {
    for text in [
        "",
        "127.0.0.1:8000",
        "http://127.0.0.1:8000",
        "grpc://",
        "grpc://127.0.0.1",
        "grpc://:8000",
        "grpc://::1:8000",
        "grpc://127.0.0.1:65536",
        "grpc://unix:",
        "grpcs://",
        "grpcs://unix:/tmp/x",
        "grpcs://tpu.example",
    ] {
        let error = text.parse::<ListenAddress>().unwrap_err();
        assert!(error.message().contains("grpc://127.0.0.1:PORT"), "{error}");
    }
}
