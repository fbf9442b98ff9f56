//! The checkout of JAX whose tests run.

use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// A folder with JAX's `tests/`, its `pyproject.toml` and its `jax/version.py`.
#[derive(Debug, Clone)]
pub(super) struct Checkout {
    pub(super) root: PathBuf,
    pub(super) version: String,
}

impl Checkout {
    /// Looks at a folder.
    ///
    /// # Errors
    /// It is no checkout of JAX; the text says what is missing.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let root = folder
            .canonicalize()
            .with_context(|| format!("--tests {}", folder.display()))?;
        for part in ["tests", "pyproject.toml"] {
            if !root.join(part).exists() {
                bail!(
                    "--tests {}: there is no {part} in it; name the top folder of a checkout of JAX \
                     (git clone --branch jax-vVERSION --depth 1 https://github.com/jax-ml/jax)",
                    folder.display()
                );
            }
        }
        let path = root.join("jax/version.py");
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let version = version(&text)
            .with_context(|| format!("there is no _version = \"…\" in {}", path.display()))?;
        Ok(Self { root, version })
    }

    /// Checks that the tests are those of the JAX that is installed.
    ///
    /// # Errors
    /// They are not; the text says which checkout is.
    pub(super) fn check(&self, installed: &str) -> Result<()> {
        if self.version != installed {
            bail!(
                "the tests in {} are those of JAX {}, and JAX {installed} is installed: check out \
                 the tag jax-v{installed}",
                self.root.display(),
                self.version
            );
        }
        Ok(())
    }

    /// The text of a file of tests.
    ///
    /// # Errors
    /// There is no such file.
    pub(super) fn text(&self, file: &str) -> Result<String> {
        let path = self.root.join(format!("tests/{file}.py"));
        fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
    }
}

/// The version that `jax/version.py` gives.
fn version(text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let value = line.strip_prefix("_version")?.trim_start();
        let value = value.strip_prefix('=')?.trim();
        Some(value.strip_prefix('"')?.strip_suffix('"')?.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkouts_are_held_against_the_installed_version() {
        let folder = tempfile::tempdir().unwrap();
        let missing = Checkout::open(folder.path()).unwrap_err();
        assert!(missing.to_string().contains("there is no tests in it"));
        for part in ["tests", "jax"] {
            fs::create_dir(folder.path().join(part)).unwrap();
        }
        fs::write(folder.path().join("pyproject.toml"), "").unwrap();
        let text = "import os\n\n_version = \"1.2.3\"\n_version_info = 3\n";
        fs::write(folder.path().join("jax/version.py"), text).unwrap();
        let checkout = Checkout::open(folder.path()).unwrap();
        checkout.check("1.2.3").unwrap();
        let error = checkout.check("1.2.4").unwrap_err().to_string();
        assert!(error.ends_with("check out the tag jax-v1.2.4"), "{error}");
    }
}
