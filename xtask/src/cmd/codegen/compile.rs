//! The `.proto` files, compiled to descriptors.

use anyhow::{Context as _, Result};
use prost_types::FileDescriptorSet;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A crate that holds `.proto` files and the code generated from them.
pub(super) struct Owner {
    /// The folder of the crate in the workspace.
    pub(super) folder: &'static str,
    /// How other crates name the module that includes the generated code.
    pub(super) rust_path: &'static str,
}

/// The owners, each one after those that it imports from.
pub(super) const OWNERS: [Owner; 2] = [
    Owner {
        folder: "ifrt",
        rust_path: "::ifrt::proto",
    },
    Owner {
        folder: "ifrt-proxy",
        rust_path: "::ifrt_proxy::proto",
    },
];

/// Everything that was compiled.
pub(super) struct Compiled {
    /// All files, imports before the files that import them.
    pub(super) set: FileDescriptorSet,
    /// The names of the files that each owner holds, in the order of `OWNERS`.
    pub(super) owned: Vec<BTreeSet<String>>,
}

/// The folder of an owner's `.proto` files.
pub(super) fn proto_folder(root: &Path, owner: &Owner) -> PathBuf {
    root.join(owner.folder).join("protos")
}

/// Compiles every `.proto` file of the workspace.
///
/// # Errors
/// A file cannot be read or is not valid.
pub(super) fn compile(root: &Path) -> Result<Compiled> {
    let folders: Vec<PathBuf> = OWNERS
        .iter()
        .map(|owner| proto_folder(root, owner))
        .collect();
    let mut owned = Vec::with_capacity(folders.len());
    for folder in &folders {
        owned.push(
            super::proto_hash::proto_files(folder)?
                .into_iter()
                .collect::<BTreeSet<_>>(),
        );
    }
    let mut compiler = protox::Compiler::new(&folders).context("preparing the compiler")?;
    // Comments would become documentation of the generated types, and indented text in them would
    // become documentation tests.
    compiler.include_imports(true).include_source_info(false);
    for (names, folder) in owned.iter().zip(&folders) {
        for name in names {
            compiler
                .open_file(folder.join(name))
                .with_context(|| format!("compiling {}", folder.join(name).display()))?;
        }
    }
    Ok(Compiled {
        set: compiler.file_descriptor_set(),
        owned,
    })
}
