//! Compares the generated code with the committed files.

#[cfg(test)]
mod tests;

use anyhow::{Context as _, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Texts by file name.
pub(super) type Texts = BTreeMap<String, String>;

/// The committed files of a folder; none if it does not exist.
///
/// # Errors
/// A file cannot be read as text.
pub(super) fn read(folder: &Path) -> Result<Texts> {
    let mut texts = Texts::new();
    if !folder.exists() {
        return Ok(texts);
    }
    for entry in fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))? {
        let path = entry
            .with_context(|| format!("listing {}", folder.display()))?
            .path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        texts.insert(name, text);
    }
    Ok(texts)
}

/// One line for every file that differs.
pub(super) fn drift(committed: &Texts, generated: &Texts) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, fresh) in generated {
        match committed.get(name) {
            None => lines.push(format!("{name}: not committed")),
            Some(old) if old != fresh => lines.push(format!("{name}: {}", summary(old, fresh))),
            Some(_) => {}
        }
    }
    for name in committed
        .keys()
        .filter(|name| !generated.contains_key(*name))
    {
        lines.push(format!("{name}: committed, but no longer generated"));
    }
    lines
}

/// Where two texts part, and how much longer the new one is.
fn summary(old: &str, fresh: &str) -> String {
    let (n_old, n_fresh) = (old.lines().count(), fresh.lines().count());
    let n_same = old
        .lines()
        .zip(fresh.lines())
        .take_while(|(old, fresh)| old == fresh)
        .count();
    let quoted = |text: &str| match text.lines().nth(n_same) {
        Some(line) => format!("`{}`", line.trim()),
        None => "the end".to_owned(),
    };
    format!(
        "line {} is {} and should be {} ({n_old} lines committed, {n_fresh} generated)",
        n_same + 1,
        quoted(old),
        quoted(fresh)
    )
}
