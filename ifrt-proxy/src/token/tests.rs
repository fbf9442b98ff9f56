use ifrt::Code;

use super::Token;

const SECRET: &str = "0123456789abcdef";

#[test]
fn only_the_same_bytes_match() {
    let token = Token::new(SECRET).unwrap();
    assert!(token.matches(SECRET.as_bytes()));
    for wrong in ["", "0", "0123456789abcdeF", "0123456789abcdef0"] {
        assert!(!token.matches(wrong.as_bytes()), "{wrong:?}");
    }
}

#[test]
fn white_space_around_it_does_not_count() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    std::fs::write(&path, format!(" {SECRET}\r\n")).unwrap();
    assert!(Token::from_file(&path).unwrap().matches(SECRET.as_bytes()));
}

#[test]
fn what_is_no_token() {
    let long = "x".repeat(5000);
    for bad in ["", "   ", "short", long.as_str()] {
        let error = Token::new(bad).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains("16 to 4096"), "{error}");
    }
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    let error = Token::from_file(&missing).unwrap_err();
    assert!(
        error.message().contains("missing") && error.message().contains("openssl"),
        "{error}"
    );
    std::fs::write(&missing, "short").unwrap();
    let error = Token::from_file(&missing).unwrap_err();
    assert!(error.message().contains("missing: a token of 5"), "{error}");
}

#[test]
fn the_secret_is_not_printed() {
    let token = Token::new(SECRET).unwrap();
    assert!(!format!("{token:?}").contains("0123"));
}
