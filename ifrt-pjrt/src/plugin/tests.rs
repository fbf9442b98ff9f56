use super::*;

fn error_for(path: &Path) -> PluginError {
    Plugin::load(path).unwrap_err()
}

#[test]
fn a_missing_file_is_not_found() {
    let error = error_for(Path::new("/nonexistent/plugin.so"));
    assert!(matches!(error, PluginError::NotFound { .. }), "{error:?}");
    let status = Status::from(error);
    assert_eq!(status.code(), Code::NotFound);
    assert!(
        status.message().contains("/nonexistent/plugin.so"),
        "{status}"
    );
    assert!(status.message().contains("cargo xtask setup"), "{status}");
}

#[test]
fn a_file_that_is_no_library_is_refused() {
    let own_source = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    for path in [own_source.as_path(), Path::new(env!("CARGO_MANIFEST_DIR"))] {
        let error = error_for(path);
        assert!(
            matches!(error, PluginError::NotALibrary { .. }),
            "{error:?}"
        );
        let status = Status::from(error);
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(
            status.message().contains(&*path.to_string_lossy()),
            "{status}"
        );
    }
}

#[test]
fn the_texts_name_both_versions_and_the_file() {
    let error = PluginError::UnsupportedVersion {
        path: "old.so".into(),
        major: 0,
        minor: 40,
    };
    let status = Status::from(error);
    assert_eq!(status.code(), Code::FailedPrecondition);
    for part in ["old.so", "0.40", "0.57", "newer release"] {
        assert!(status.message().contains(part), "{status}");
    }
}
