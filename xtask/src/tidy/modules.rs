//! Which words may stand in which rooms: the part of the layers that manifests cannot say.

use super::Findings;
use super::source::{SourceFile, code, files, rust};
use crate::ctx::Workspace;
use anyhow::Result;

/// A word that may stand in some places only.
struct Rule {
    /// Looked for as whole words.
    word: &'static str,
    /// The places where the rule holds: paths that start with one of these.
    within: &'static [&'static str],
    /// The places where the word may stand all the same.
    except: &'static [&'static str],
    reason: &'static str,
}

const EVERYWHERE: &[&str] = &[""];

const RULES: [Rule; 7] = [
    Rule {
        word: "unsafe",
        within: EVERYWHERE,
        except: &[
            "ifrt-pjrt/src/sys.rs",
            "ifrt-pjrt/src/sys/",
            "ifrt-pjrt/src/safe.rs",
            "ifrt-pjrt/src/safe/",
            // The other side of the C ABI: a plugin for tests.
            "ifrt-pjrt/examples/fake_plugin.rs",
            "ifrt-pjrt/examples/faulty_plugin.rs",
        ],
        reason: "only ifrt-pjrt::{sys,safe} contain unsafe code",
    },
    Rule {
        word: "sys::",
        within: &["ifrt-pjrt/"],
        except: &[
            "ifrt-pjrt/src/sys.rs",
            "ifrt-pjrt/src/sys/",
            "ifrt-pjrt/src/safe.rs",
            "ifrt-pjrt/src/safe/",
        ],
        reason: "above `safe` nothing touches the C ABI",
    },
    Rule {
        word: "tokio::",
        within: &["ifrt/", "ifrt-pjrt/", "jaxlib-core/", "jax-api/", "xtask/"],
        // Shows that arrays do not mind the executors of their users.
        except: &["jax-api/tests/it/executors.rs"],
        reason: "only ifrt-proxy needs an executor",
    },
    Rule {
        word: "ifrt_pjrt",
        within: &["ifrt-proxy/src/"],
        except: &["ifrt-proxy/src/bin/"],
        reason: "the library does not know which backend it serves",
    },
    Rule {
        word: "crate::client",
        within: &["ifrt-proxy/src/server.rs", "ifrt-proxy/src/server/"],
        except: &[],
        reason: "server and client share only what both sides of the wire share",
    },
    Rule {
        word: "crate::server",
        within: &["ifrt-proxy/src/client.rs", "ifrt-proxy/src/client/"],
        except: &[],
        reason: "server and client share only what both sides of the wire share",
    },
    Rule {
        word: "async_trait",
        within: &["ifrt/", "ifrt-pjrt/", "jaxlib-core/", "jax-api/"],
        except: &[],
        reason: "operations that enqueue are plain functions; see Completion",
    },
];

/// Searches all Rust files.
///
/// # Errors
/// A file cannot be read.
pub(super) fn check(workspace: &Workspace) -> Result<Findings> {
    let mut findings = Findings::default();
    for file in rust(&files(workspace)?) {
        search(file, &mut findings);
    }
    Ok(findings)
}

fn search(file: &SourceFile, findings: &mut Findings) {
    let starts = |places: &[&str]| places.iter().any(|place| file.path.starts_with(place));
    let rules: Vec<&Rule> = RULES
        .iter()
        .filter(|rule| starts(rule.within) && !starts(rule.except))
        .collect();
    for (idx, line) in code(&file.text).lines().enumerate() {
        for rule in rules.iter().filter(|rule| has_word(line, rule.word)) {
            findings.problem(format!(
                "{}:{}: `{}` must not stand here: {}",
                file.path,
                idx + 1,
                rule.word,
                rule.reason
            ));
        }
    }
}

/// Whether a word stands in a line, not as a part of a longer word.
fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let open_end = word.ends_with("::");
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let after = line
            .get(at + word.len()..)
            .and_then(|text| text.chars().next());
        !before.is_some_and(is_part) && (open_end || !after.is_some_and(is_part))
    })
}

#[cfg(test)]
mod tests;
