//! The committed list of the tests that are known to differ, each under one reason.

use crate::ctx::Workspace;
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeMap;
use std::fs;

/// The list.
const PATH: &str = "xtask/python/jax_tests_known.txt";

/// Why a test that passes in process cannot pass through the server. None of them lies in the
/// server: what does is mended, not listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    HostCallback,
    HostMemory,
    PjrtOnly,
    Strides,
    PythonInCompiler,
    DonatedAlias,
    ExecutableSerialization,
    PluginVersion,
}

impl Reason {
    pub(super) const ALL: [Self; 8] = [
        Self::HostCallback,
        Self::HostMemory,
        Self::PjrtOnly,
        Self::Strides,
        Self::PythonInCompiler,
        Self::DonatedAlias,
        Self::ExecutableSerialization,
        Self::PluginVersion,
    ];

    /// The name in the list.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::HostCallback => "host-callback",
            Self::HostMemory => "host-memory",
            Self::PjrtOnly => "pjrt-only",
            Self::Strides => "strides",
            Self::PythonInCompiler => "python-in-compiler",
            Self::DonatedAlias => "donated-alias",
            Self::ExecutableSerialization => "executable-serialization",
            Self::PluginVersion => "plugin-version",
        }
    }

    /// The reason in a sentence.
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::HostCallback => {
                "the published client refuses programs with host callbacks before it sends them"
            }
            Self::HostMemory => {
                "the published client shows no memory of arrays: no buffer protocol, no DLPack"
            }
            Self::PjrtOnly => {
                "jaxlib answers this for PJRT clients of its own process only, whatever the server says"
            }
            Self::Strides => "the published client refuses arrays with zero or negative strides",
            Self::PythonInCompiler => {
                "the program calls Python of the client from inside of the compiler"
            }
            Self::DonatedAlias => {
                "the published client does not ask whether an array went with another that shared its buffer"
            }
            Self::ExecutableSerialization => {
                "the published client cannot read serialized executables"
            }
            Self::PluginVersion => {
                "the pinned CPU plugin was built from another revision of the compiler than jaxlib"
            }
        }
    }
}

/// The tests that are known to differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Known {
    reasons: BTreeMap<String, Reason>,
}

impl Known {
    /// Reads the list of the workspace.
    ///
    /// # Errors
    /// It cannot be read, or is malformed.
    pub(super) fn read(workspace: &Workspace) -> Result<Self> {
        let path = workspace.path(PATH);
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("reading {}", path.display()))
    }

    /// Reads a list: `[REASON]`, and below it the names of tests, one a line. Lines that start with
    /// `#` and empty ones say nothing.
    ///
    /// # Errors
    /// A reason is not one of the set, a test has none or two.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut reasons = BTreeMap::new();
        let mut current = None;
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                current = Some(reason(name)?);
                continue;
            }
            let reason = current.with_context(|| format!("{line} stands under no [REASON]"))?;
            if reasons.insert(line.to_owned(), reason).is_some() {
                bail!("{line} stands there twice");
            }
        }
        Ok(Self { reasons })
    }

    /// Why a test is known to differ, if it is.
    pub(super) fn reason(&self, test: &str) -> Option<Reason> {
        self.reasons.get(test).copied()
    }

    /// The tests of a file that are known to differ.
    pub(super) fn of_file<'a>(&'a self, file: &'a str) -> impl Iterator<Item = &'a str> {
        let prefix = format!("tests/{file}.py::");
        self.reasons
            .keys()
            .map(String::as_str)
            .filter(move |test| test.starts_with(&prefix))
    }
}

fn reason(name: &str) -> Result<Reason> {
    let names: Vec<_> = Reason::ALL.iter().map(|reason| reason.name()).collect();
    Reason::ALL
        .into_iter()
        .find(|reason| reason.name() == name)
        .with_context(|| format!("[{name}] is no reason; these are: {}", names.join(", ")))
}
