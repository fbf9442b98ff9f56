//! `cargo xtask tidy`: the rules of the house that the compiler does not know.

use crate::ctx::Workspace;
use crate::step::{Counts, Outcome, step};
use crate::tidy::CHECKS;
use anyhow::{Result, bail};

/// What `tidy` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run only this check
    #[arg(value_parser = CHECKS.map(|(name, _)| name))]
    name: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// A check cannot run, or it found a problem.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let counts = counted(workspace, args.name.as_deref());
    println!("{counts}");
    if !counts.is_success() {
        bail!("the tree is not tidy; each line above says what to mend");
    }
    Ok(())
}

/// Runs all checks, or the named one, and counts them.
pub(crate) fn counted(workspace: &Workspace, only: Option<&str>) -> Counts {
    let mut counts = Counts::default();
    for (name, check) in CHECKS
        .iter()
        .filter(|(name, _)| only.is_none_or(|only| only == *name))
    {
        let outcome = step(&format!("tidy {name}"), || {
            let findings = check(workspace)?;
            for warning in &findings.warnings {
                println!("  warning: {warning}");
            }
            if !findings.problems.is_empty() {
                bail!("{}", findings.problems.join("\n  "));
            }
            Ok(Outcome::Done)
        });
        match outcome {
            Ok(_) => counts.passed += 1,
            Err(error) => {
                println!("  {error:#}");
                counts.failed += 1;
            }
        }
    }
    counts
}
