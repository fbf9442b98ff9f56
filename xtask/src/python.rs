//! The Python interpreter that the private environment is made from.

use crate::child;
use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The first and the last minor version of Python 3 for which the pinned jaxlib has wheels.
pub(crate) const SUPPORTED: std::ops::RangeInclusive<u32> = 11..=14;

/// The names that are tried, in order.
const NAMES: [&str; 6] = [
    "python3.11",
    "python3.12",
    "python3.13",
    "python3.14",
    "python3",
    "python",
];

/// Prints what is to be known about an interpreter.
const DESCRIBE: &str = "import importlib.util, json, platform, sys
print(json.dumps({
    'executable': sys.executable,
    'minor': sys.version_info[1] if sys.version_info[0] == 3 else 0,
    'version': platform.python_version(),
    'machine': platform.machine(),
    'has_venv': all(importlib.util.find_spec(m) for m in ('venv', 'ensurepip')),
}))";

const DEADLINE: Duration = Duration::from_secs(60);

/// An interpreter that answered.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Interpreter {
    pub(crate) executable: PathBuf,
    minor: u32,
    pub(crate) version: String,
    /// The processor, as Python names it.
    pub(crate) machine: String,
    has_venv: bool,
}

impl fmt::Display for Interpreter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Python {} ({})", self.version, self.executable.display())
    }
}

impl Interpreter {
    /// Asks an interpreter about itself.
    ///
    /// # Errors
    /// It cannot be run or does not answer.
    pub(crate) fn ask(program: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(["-I", "-c", DESCRIBE]);
        let text = child::output(&program.display().to_string(), &mut command, DEADLINE)?;
        serde_json::from_str(&text)
            .with_context(|| format!("{} answered {text:?}", program.display()))
    }

    /// Why this interpreter cannot be used, if it cannot.
    fn objection(&self) -> Option<String> {
        if !SUPPORTED.contains(&self.minor) {
            return Some("not supported".to_owned());
        }
        let fix = format!(
            "on Debian and Ubuntu: apt-get install python3.{}-venv",
            self.minor
        );
        (!self.has_venv).then(|| format!("it lacks the modules venv and ensurepip ({fix})"))
    }
}

/// Finds an interpreter: the one that the user named, or else the first that can be used.
///
/// # Errors
/// There is none; the text lists what was tried and says how to get one.
pub(crate) fn find(named: Option<&Path>) -> Result<Interpreter> {
    if let Some(program) = named {
        let found = Interpreter::ask(program)
            .with_context(|| format!("--python {} cannot be used", program.display()))?;
        if let Some(objection) = found.objection() {
            bail!(
                "--python {} cannot be used: {found}: {objection}",
                program.display()
            );
        }
        return Ok(found);
    }
    let mut tried = String::new();
    for name in NAMES {
        let objection = match Interpreter::ask(Path::new(name)) {
            Ok(found) => match found.objection() {
                None => return Ok(found),
                Some(objection) => format!("{found}: {objection}"),
            },
            // The details (not found, a version manager's complaint) say nothing more.
            Err(_) => "not found, or it does not start".to_owned(),
        };
        tried.push_str(&format!("\n  {name}: {objection}"));
    }
    bail!(
        "no usable Python: JAX needs CPython 3.{} to 3.{}. Tried:{tried}\n\
         Install one (on Debian and Ubuntu: apt-get install python3.11 python3.11-venv), or name \
         one with `cargo xtask setup --python PATH`",
        SUPPORTED.start(),
        SUPPORTED.end()
    )
}

#[cfg(test)]
mod tests;
