use super::*;

#[track_caller]
fn check_code(text: &str, expected: &str) {
    let words: Vec<String> = code(text).split_whitespace().map(str::to_owned).collect();
    assert_eq!(words.join(" "), expected, "{text}");
    assert_eq!(code(text).lines().count(), text.lines().count());
}

#[test]
fn comments_and_literals_go_away() {
    check_code("a // b\nc", "a c");
    check_code("a /* b /* c */ d */ e", "a e");
    check_code("a(\"b // c\", d)", "a( , d)");
    check_code("a(\"b \\\" c\") d", "a( ) d");
    check_code("a(r#\"b \" c\"#) d", "a( ) d");
    check_code("a(br\"b\\\") d", "a( ) d");
    check_code("a('\"') + b('\\'') + c", "a( ) + b( ) + c");
    check_code("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}");
    check_code("var\"x\"", "var");
    check_code("a \"unclosed", "a");
    check_code("a /* unclosed", "a");
}

#[test]
fn what_git_and_builds_leave_is_not_ours() {
    let root = tempfile::tempdir().unwrap();
    // In a linked working tree of git this is a file.
    fs::write(root.path().join(".git"), "gitdir: elsewhere").unwrap();
    for folder in ["target", "ifrt"] {
        fs::create_dir(root.path().join(folder)).unwrap();
        fs::write(root.path().join(folder).join("a.rs"), "").unwrap();
    }
    let mut found = Vec::new();
    visit(root.path(), "", &mut found).unwrap();
    let paths: Vec<_> = found.iter().map(|file| &file.path).collect();
    assert_eq!(paths, ["ifrt/a.rs"]);
}
