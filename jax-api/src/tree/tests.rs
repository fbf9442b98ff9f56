use super::*;

fn leaf() -> Tree<u8> {
    Tree::Leaf(0)
}

#[test]
fn there_and_back() {
    let tree = Tree::Tuple(vec![
        Tree::Leaf(1),
        Tree::None,
        Tree::dict([
            ("z", Tree::Leaf(4)),
            ("a", Tree::List(vec![Tree::Leaf(2), Tree::Leaf(3)])),
        ]),
        Tree::Custom {
            name: "point".into(),
            auxdata: vec![7],
            children: vec![Tree::Leaf(5)],
        },
    ]);
    assert_eq!(tree.leaves(), [&1, &2, &3, &4, &5]);
    let structure = tree.structure();
    assert_eq!(Tree::from_leaves(&structure, 1..=5), Ok(tree));
    for count in [4, 6] {
        let error = Tree::from_leaves(&structure, 0..count).unwrap_err();
        assert!(error.to_string().contains("has 5 leaves"), "{error}");
    }
}

#[test]
fn where_trees_differ() {
    let expected = Tree::Tuple(vec![
        Tree::List(vec![Tree::dict([("b", leaf()), ("w", leaf())]), leaf()]),
        Tree::None,
    ]);
    let with = |first: Tree<u8>, second: Tree<u8>| Tree::Tuple(vec![first, second]);
    let good = || Tree::dict([("b", leaf()), ("w", leaf())]);
    for (found, words) in [
        (leaf(), "args must be a tuple of 2, but is an array"),
        (
            Tree::Tuple(vec![]),
            "args must be a tuple of 2, but is a tuple of 0",
        ),
        (
            with(leaf(), Tree::None),
            "args[0] must be a list of 2, but is an array",
        ),
        (
            with(Tree::Tuple(vec![good(), leaf()]), Tree::None),
            "args[0] must be a list of 2, but is a tuple of 2",
        ),
        (
            with(
                Tree::List(vec![Tree::dict([("w", leaf())]), leaf()]),
                Tree::None,
            ),
            "args[0][0] must have the keys ['b', 'w'], but has ['w']",
        ),
        (
            with(
                Tree::List(vec![
                    Tree::dict([("b", leaf()), ("w", Tree::List(vec![]))]),
                    leaf(),
                ]),
                Tree::None,
            ),
            "args[0][0]['w'] must be an array, but is a list of 0",
        ),
        (
            with(Tree::List(vec![good(), leaf()]), leaf()),
            "args[1] must be None, but is an array",
        ),
    ] {
        let difference = difference(&expected.structure(), &found.structure()).unwrap();
        assert_eq!(format!("args{difference}"), words);
    }
    assert_eq!(
        difference(&expected.structure(), &expected.structure()),
        None
    );
    let node = |name: &str| TreeDef::Custom {
        name: name.into(),
        auxdata: vec![],
        children: vec![TreeDef::Leaf],
    };
    let names = difference(&node("a"), &node("b")).unwrap();
    assert_eq!(names, " must be a node a of 1, but is a node b of 1");
}
