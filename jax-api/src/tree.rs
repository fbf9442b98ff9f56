//! [`Tree`]: arguments and results that hang together.

use std::collections::BTreeMap;

use jaxlib_core::export::TreeDef;

use crate::error::{Error, Result};

/// Values in the containers of Python: what JAX calls a pytree.
///
/// # Examples
/// ```
/// use jax_api::Tree;
/// let params = Tree::dict([("w", Tree::Leaf(1)), ("b", Tree::Leaf(2))]);
/// let tree = Tree::Tuple(vec![params, Tree::List(vec![Tree::Leaf(3), Tree::None])]);
/// assert_eq!(tree.structure().to_string(), "({'b': *, 'w': *}, [*, None])");
/// assert_eq!(tree.leaves(), [&2, &1, &3]);
/// ```
///
/// # Mirrors
/// `jax.tree`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    clippy::exhaustive_enums,
    reason = "as many as the format of exports has"
)]
pub enum Tree<T> {
    /// A value.
    Leaf(T),
    /// `None`, which has no value.
    None,
    /// A tuple.
    Tuple(Vec<Self>),
    /// A list.
    List(Vec<Self>),
    /// A dictionary.
    Dict(BTreeMap<String, Self>),
    /// A node of a type that was registered with JAX under this name.
    Custom {
        /// The name.
        name: String,
        /// What the type has written about itself.
        auxdata: Vec<u8>,
        /// Its parts.
        children: Vec<Self>,
    },
}

impl<T> Tree<T> {
    /// A dictionary.
    pub fn dict<K: Into<String>>(entries: impl IntoIterator<Item = (K, Self)>) -> Self {
        let entries = entries.into_iter();
        Self::Dict(entries.map(|(key, value)| (key.into(), value)).collect())
    }

    /// How the values hang together.
    pub fn structure(&self) -> TreeDef {
        let all = |children: &[Self]| children.iter().map(Self::structure).collect();
        match self {
            Self::Leaf(_) => TreeDef::Leaf,
            Self::None => TreeDef::None,
            Self::Tuple(children) => TreeDef::Tuple(all(children)),
            Self::List(children) => TreeDef::List(all(children)),
            Self::Dict(entries) => TreeDef::Dict(
                entries
                    .iter()
                    .map(|(key, value)| (key.clone(), value.structure()))
                    .collect(),
            ),
            Self::Custom {
                name,
                auxdata,
                children,
            } => TreeDef::Custom {
                name: name.clone(),
                auxdata: auxdata.clone(),
                children: all(children),
            },
        }
    }

    /// The values in the order of JAX: dictionaries by their keys.
    pub fn leaves(&self) -> Vec<&T> {
        let mut leaves = Vec::new();
        self.collect(&mut leaves);
        leaves
    }

    fn collect<'a>(&'a self, leaves: &mut Vec<&'a T>) {
        match self {
            Self::Leaf(value) => leaves.push(value),
            Self::None => {}
            Self::Tuple(children) | Self::List(children) | Self::Custom { children, .. } => {
                children.iter().for_each(|child| child.collect(leaves));
            }
            Self::Dict(entries) => entries.values().for_each(|child| child.collect(leaves)),
        }
    }

    /// The tree with this structure and these values.
    ///
    /// # Errors
    /// If there are too many values or too few.
    pub fn from_leaves(structure: &TreeDef, leaves: impl IntoIterator<Item = T>) -> Result<Self> {
        let mut leaves = leaves.into_iter();
        let tree = Self::build(structure, &mut leaves);
        match (tree, leaves.next()) {
            (Some(tree), None) => Ok(tree),
            (tree, _) => Err(Error::invalid(format!(
                "a tree {structure} has {} leaves, but there are {}",
                structure.num_leaves(),
                if tree.is_some() { "more" } else { "fewer" }
            ))),
        }
    }

    fn build(structure: &TreeDef, leaves: &mut impl Iterator<Item = T>) -> Option<Self> {
        let mut all = |children: &[TreeDef]| {
            children
                .iter()
                .map(|child| Self::build(child, &mut *leaves))
                .collect::<Option<Vec<_>>>()
        };
        Some(match structure {
            TreeDef::Leaf => Self::Leaf(leaves.next()?),
            TreeDef::None => Self::None,
            TreeDef::Tuple(children) => Self::Tuple(all(children)?),
            TreeDef::List(children) => Self::List(all(children)?),
            TreeDef::Dict(entries) => Self::Dict(
                entries
                    .iter()
                    .map(|(key, child)| Some((key.clone(), Self::build(child, leaves)?)))
                    .collect::<Option<_>>()?,
            ),
            TreeDef::Custom {
                name,
                auxdata,
                children,
            } => Self::Custom {
                name: name.clone(),
                auxdata: auxdata.clone(),
                children: all(children)?,
            },
        })
    }
}

/// Where two structures differ first, and how: `[0]['w'] must be a leaf, but is a list`.
pub(crate) fn difference(expected: &TreeDef, found: &TreeDef) -> Option<String> {
    differ(expected, found, &mut String::new())
}

fn differ(expected: &TreeDef, found: &TreeDef, path: &mut String) -> Option<String> {
    let len = path.len();
    match (expected, found) {
        (TreeDef::Dict(expected_entries), TreeDef::Dict(found_entries)) => {
            let keys = |entries: &[(String, TreeDef)]| -> Vec<String> {
                entries.iter().map(|(key, _)| format!("'{key}'")).collect()
            };
            if keys(expected_entries) != keys(found_entries) {
                return Some(format!(
                    "{path} must have the keys [{}], but has [{}]",
                    keys(expected_entries).join(", "),
                    keys(found_entries).join(", ")
                ));
            }
            for ((key, expected), (_, found)) in expected_entries.iter().zip(found_entries) {
                path.push_str(&format!("['{key}']"));
                if let Some(difference) = differ(expected, found, path) {
                    return Some(difference);
                }
                path.truncate(len);
            }
            None
        }
        _ if expected == found => None,
        _ => {
            let (Some(expected_children), Some(found_children)) =
                (children(expected), children(found))
            else {
                return Some(mismatch(path, expected, found));
            };
            if std::mem::discriminant(expected) != std::mem::discriminant(found)
                || expected_children.len() != found_children.len()
            {
                return Some(mismatch(path, expected, found));
            }
            for (n, (expected, found)) in expected_children.iter().zip(found_children).enumerate() {
                path.push_str(&format!("[{n}]"));
                if let Some(difference) = differ(expected, found, path) {
                    return Some(difference);
                }
                path.truncate(len);
            }
            // Nodes of two types that JAX does not know by itself.
            Some(mismatch(path, expected, found))
        }
    }
}

fn children(tree: &TreeDef) -> Option<&[TreeDef]> {
    match tree {
        TreeDef::Tuple(children) | TreeDef::List(children) | TreeDef::Custom { children, .. } => {
            Some(children)
        }
        TreeDef::Leaf | TreeDef::None | TreeDef::Dict(_) => None,
    }
}

fn mismatch(path: &str, expected: &TreeDef, found: &TreeDef) -> String {
    format!(
        "{path} must be {}, but is {}",
        describe(expected),
        describe(found)
    )
}

fn describe(tree: &TreeDef) -> String {
    match tree {
        TreeDef::Leaf => "an array".to_owned(),
        TreeDef::None => "None".to_owned(),
        TreeDef::Tuple(children) => format!("a tuple of {}", children.len()),
        TreeDef::List(children) => format!("a list of {}", children.len()),
        TreeDef::Dict(entries) => format!("a dictionary of {}", entries.len()),
        TreeDef::Custom { name, children, .. } => {
            format!("a node {name} of {}", children.len())
        }
    }
}

#[cfg(test)]
mod tests;
