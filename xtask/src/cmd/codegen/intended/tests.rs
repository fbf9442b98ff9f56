use super::super::compare::{Change, Difference, Item};
use super::super::{compile, schema, workspace_root};
use super::{NEWER, OLDER, OPAQUE, PARTIAL, UNUSED_FILES, judge};
use std::collections::BTreeSet;

const DATA: &str = "xla/xla_data.proto";

fn difference(file: &str, path: &str, item: Item, change: Change) -> Difference {
    Difference {
        file: file.to_owned(),
        path: path.to_owned(),
        item,
        change,
    }
}

fn aspect(path: &str, aspect: &'static str, ours: &str, theirs: &str) -> Difference {
    let (ours, theirs) = (ours.to_owned(), theirs.to_owned());
    difference(
        "f.proto",
        path,
        Item::Member,
        Change::Aspect {
            aspect,
            ours,
            theirs,
        },
    )
}

#[track_caller]
fn check(difference: Difference, intended: bool) {
    let verdict = judge(vec![difference]);
    assert_eq!(
        (verdict.n_intended == 1, verdict.unexplained.is_empty()),
        (intended, intended)
    );
}

#[test]
fn an_opaque_field_may_have_another_type_and_nothing_else() {
    let field = "xla.ifrt.XlaCompileOptionsProto.compile_options";
    check(
        aspect(field, "type", "bytes", ".xla.CompileOptionsProto"),
        true,
    );
    check(aspect(field, "type", "bytes", "int32"), false);
    check(
        aspect(field, "type", "string", ".xla.CompileOptionsProto"),
        false,
    );
    check(aspect(field, "number", "1", "2"), false);
    check(
        aspect("xla.ifrt.Serialized.data", "type", "bytes", ".xla.Any"),
        false,
    );

    let map = "xla.ifrt.IfrtIrCompileOptionsProto.compile_option_overrides";
    check(
        aspect(
            map,
            "type",
            "map<string, bytes>",
            "map<string, .xla.CompileOptionsProto>",
        ),
        true,
    );
    check(
        aspect(
            map,
            "type",
            "map<string, bytes>",
            "map<int32, .xla.CompileOptionsProto>",
        ),
        false,
    );
    check(
        aspect(
            map,
            "type",
            "bytes",
            "map<string, .xla.CompileOptionsProto>",
        ),
        false,
    );
}

#[test]
fn a_partial_file_lacks_types_but_not_parts_of_its_types() {
    check(
        difference(
            DATA,
            "xla.GatherDimensionNumbers",
            Item::Type,
            Change::OnlyTheirs,
        ),
        true,
    );
    check(
        difference(
            DATA,
            "xla.OpSharding.extra",
            Item::Member,
            Change::OnlyTheirs,
        ),
        false,
    );
    check(
        difference(DATA, "xla.OpSharding", Item::Type, Change::OnlyOurs),
        false,
    );
    check(
        difference("f.proto", "xla.ifrt.New", Item::Type, Change::OnlyTheirs),
        false,
    );
    let hlo = "xla/service/hlo.proto";
    check(
        difference(
            hlo,
            "xla.HloModuleProto.schedule",
            Item::Member,
            Change::OnlyTheirs,
        ),
        true,
    );
    check(
        difference(
            hlo,
            "xla.HloBufferDonorProto.x",
            Item::Member,
            Change::OnlyTheirs,
        ),
        false,
    );
}

#[test]
fn what_depends_on_the_release_may_be_missing_but_not_differ() {
    let kind = "xla.ifrt.DTypeProto.Kind.KIND_F6E2M3FN";
    check(
        difference("f.proto", kind, Item::Member, Change::OnlyOurs),
        true,
    );
    check(aspect(kind, "number", "34", "36"), false);
    check(
        difference("f.proto", kind, Item::Member, Change::OnlyTheirs),
        false,
    );
}

#[test]
fn new_methods_and_files_are_reported() {
    let file = "xla/python/ifrt/new.proto";
    check(
        difference(file, file, Item::File, Change::OnlyTheirs),
        false,
    );
    let method = "xla.ifrt.proxy.GrpcIfrtService.New";
    check(
        difference("f.proto", method, Item::Method, Change::OnlyTheirs),
        false,
    );
}

#[test]
fn rows_that_explain_nothing_are_reported() {
    let all: BTreeSet<&str> = PARTIAL
        .iter()
        .chain(OPAQUE)
        .map(|(path, _)| *path)
        .collect();
    let stale = |differences| {
        judge(differences)
            .stale
            .into_iter()
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(stale(Vec::new()), all);
    let field = OPAQUE[0].0;
    let left = stale(vec![aspect(
        field,
        "type",
        "bytes",
        ".xla.CompileOptionsProto",
    )]);
    assert_eq!(all.difference(&left).collect::<Vec<_>>(), [&field]);
}

#[test]
fn every_row_names_something_that_we_define() {
    let mut known = BTreeSet::new();
    for file in &compile::compile(workspace_root()).unwrap().set.file {
        let defined = schema::of_ours(file);
        known.insert(file.name().to_owned());
        for (path, fields) in defined.messages {
            known.extend(fields.keys().map(|field| format!("{path}.{field}")));
            known.insert(path);
        }
        for (path, values) in defined.enums {
            known.extend(values.keys().map(|value| format!("{path}.{value}")));
            known.insert(path);
        }
    }
    for (path, reason) in [PARTIAL, OPAQUE, NEWER, OLDER].concat() {
        assert!(known.contains(path), "{path} is listed but not defined");
        assert!(!reason.is_empty(), "{path} has no reason");
    }
    for (path, _) in UNUSED_FILES {
        assert!(
            !known.contains(*path),
            "{path} is listed as left out but defined"
        );
    }
}
