//! Compares our definitions with those that a library carries.

#[cfg(test)]
mod tests;

use super::schema::{Field, File};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Files by import path.
pub(super) type Files = BTreeMap<String, File>;

/// One place where the two sides differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// The import path of the file.
    pub(super) file: String,
    /// What differs: the import path of a file, or the full name of anything inside one.
    pub(super) path: String,
    /// What kind of thing `path` names.
    pub(super) item: Item,
    /// How it differs.
    pub(super) change: Change,
}

/// The things that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// A `.proto` file.
    File,
    /// A message or an enumeration.
    Type,
    /// A field of a message or a value of an enumeration that both sides have.
    Member,
    /// A method of a service.
    Method,
}

/// How something differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// We define it and the library does not.
    OnlyOurs,
    /// The library defines it and we do not.
    OnlyTheirs,
    /// Both define it, with another value of an aspect.
    Aspect {
        /// Which aspect.
        aspect: &'static str,
        /// Its value on our side.
        ours: String,
        /// Its value in the library.
        theirs: String,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.change {
            Change::OnlyOurs => write!(f, "{}: not in the library", self.path),
            Change::OnlyTheirs => write!(f, "{}: only in the library", self.path),
            Change::Aspect {
                aspect,
                ours,
                theirs,
            } => {
                write!(
                    f,
                    "{}: {aspect} is {ours} here and {theirs} in the library",
                    self.path
                )
            }
        }
    }
}

/// The result of a comparison.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// How many messages both sides define.
    pub(super) n_messages: usize,
    /// How many fields of these both sides define.
    pub(super) n_fields: usize,
    /// All differences, those that are intended included.
    pub(super) differences: Vec<Difference>,
}

/// Compares our files with those of a library.
///
/// Files that only the library has count if they belong to a package that begins with `whole`: a
/// family of packages of which we mean to know every file.
pub(super) fn compare(ours: &Files, theirs: &Files, whole: &str) -> Comparison {
    let mut comparison = Comparison::default();
    for (name, file) in ours {
        let mut log = Log {
            file: name,
            comparison: &mut comparison,
        };
        match theirs.get(name) {
            Some(other) => log.files(file, other),
            None => log.push(Item::File, name, Change::OnlyOurs),
        }
    }
    for (name, file) in theirs {
        if file.package.starts_with(whole) && !ours.contains_key(name) {
            Log {
                file: name,
                comparison: &mut comparison,
            }
            .push(Item::File, name, Change::OnlyTheirs);
        }
    }
    comparison
}

/// Where the differences of one file go.
struct Log<'a> {
    file: &'a str,
    comparison: &'a mut Comparison,
}

impl Log<'_> {
    fn push(&mut self, item: Item, path: &str, change: Change) {
        let (file, path) = (self.file.to_owned(), path.to_owned());
        self.comparison.differences.push(Difference {
            file,
            path,
            item,
            change,
        });
    }

    fn aspect(&mut self, item: Item, path: &str, aspect: &'static str, ours: &str, theirs: &str) {
        if ours != theirs {
            let (ours, theirs) = (ours.to_owned(), theirs.to_owned());
            self.push(
                item,
                path,
                Change::Aspect {
                    aspect,
                    ours,
                    theirs,
                },
            );
        }
    }

    /// Reports the keys of one side, and hands on those of both.
    fn each<'a, V>(
        &mut self,
        item: Item,
        ours: &'a BTreeMap<String, V>,
        theirs: &'a BTreeMap<String, V>,
        mut both: impl FnMut(&mut Self, &str, &'a V, &'a V),
    ) {
        for (path, our) in ours {
            match theirs.get(path) {
                Some(their) => both(self, path, our, their),
                None => self.push(item, path, Change::OnlyOurs),
            }
        }
        for path in theirs.keys().filter(|path| !ours.contains_key(*path)) {
            self.push(item, path, Change::OnlyTheirs);
        }
    }

    fn files(&mut self, ours: &File, theirs: &File) {
        let file = self.file;
        self.aspect(Item::File, file, "package", &ours.package, &theirs.package);
        self.each(Item::Type, &ours.messages, &theirs.messages, Self::messages);
        self.each(Item::Type, &ours.enums, &theirs.enums, Self::enums);
        self.each(
            Item::Method,
            &ours.methods,
            &theirs.methods,
            |log, path, ours, theirs| {
                log.aspect(Item::Method, path, "signature", ours, theirs);
            },
        );
    }

    fn enums(&mut self, path: &str, ours: &BTreeMap<String, i32>, theirs: &BTreeMap<String, i32>) {
        let full = |values: &BTreeMap<String, i32>| -> BTreeMap<String, i32> {
            values
                .iter()
                .map(|(name, number)| (format!("{path}.{name}"), *number))
                .collect()
        };
        self.each(
            Item::Member,
            &full(ours),
            &full(theirs),
            |log, path, ours, theirs| {
                log.aspect(
                    Item::Member,
                    path,
                    "number",
                    &ours.to_string(),
                    &theirs.to_string(),
                );
            },
        );
    }

    fn messages(
        &mut self,
        message: &str,
        ours: &BTreeMap<String, Field>,
        theirs: &BTreeMap<String, Field>,
    ) {
        self.comparison.n_messages += 1;
        let mut seen = BTreeSet::new();
        for (name, our) in ours {
            let path = format!("{message}.{name}");
            // A field of another name with the same number is the same field on the wire.
            let same_number = || {
                theirs
                    .iter()
                    .find(|(other, their)| their.number == our.number && !ours.contains_key(*other))
            };
            let Some((other, their)) = theirs.get_key_value(name).or_else(same_number) else {
                self.push(Item::Member, &path, Change::OnlyOurs);
                continue;
            };
            seen.insert(other);
            self.comparison.n_fields += 1;
            let group = |field: &Field| field.oneof.clone().unwrap_or_else(|| "none".to_owned());
            for (aspect, ours, theirs) in [
                ("name", name.clone(), other.clone()),
                ("number", our.number.to_string(), their.number.to_string()),
                ("type", our.kind.clone(), their.kind.clone()),
                ("label", our.label.to_string(), their.label.to_string()),
                ("oneof", group(our), group(their)),
            ] {
                self.aspect(Item::Member, &path, aspect, &ours, &theirs);
            }
        }
        for name in theirs.keys().filter(|name| !seen.contains(name)) {
            self.push(
                Item::Member,
                &format!("{message}.{name}"),
                Change::OnlyTheirs,
            );
        }
    }
}
