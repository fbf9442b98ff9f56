//! [`TreeDef`]: how the leaves of arguments and results hang together.
//!
//! # Mirrors
//! `jax.tree_util.PyTreeDef`.

use std::fmt;

use ifrt::{Result, Status};

use super::flatbuffer::Table;

/// How leaves hang together; displayed as Python does, a leaf as `*`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "closed by the schema of exports")]
pub enum TreeDef {
    /// An array.
    Leaf,
    /// `None`, which has no leaf.
    None,
    /// A tuple.
    Tuple(Vec<Self>),
    /// A list.
    List(Vec<Self>),
    /// A dictionary, in the order of its keys.
    Dict(Vec<(String, Self)>),
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

impl TreeDef {
    pub(super) fn read(table: &Table<'_>) -> Result<Self> {
        let children = table.tables(1)?;
        let children: Vec<Self> = children.iter().map(Self::read).collect::<Result<_>>()?;
        Ok(match table.i8(0)? {
            0 => Self::Leaf,
            1 => Self::None,
            2 => Self::Tuple(children),
            3 => Self::List(children),
            4 => {
                let names = table.strings(2)?;
                if names.len() != children.len() {
                    return Err(Status::invalid_argument(format!(
                        "a dictionary in an exported function has {} keys and {} values",
                        names.len(),
                        children.len()
                    )));
                }
                Self::Dict(names.into_iter().zip(children).collect())
            }
            5 => Self::Custom {
                name: table.string(3)?.unwrap_or_default().to_owned(),
                auxdata: table.bytes(4)?.to_vec(),
                children,
            },
            kind => {
                return Err(Status::invalid_argument(format!(
                    "a tree in an exported function has the unknown kind {kind}; it was written by \
                     a newer JAX"
                )));
            }
        })
    }

    /// The number of leaves.
    pub fn num_leaves(&self) -> usize {
        match self {
            Self::Leaf => 1,
            Self::None => 0,
            Self::Tuple(children) | Self::List(children) | Self::Custom { children, .. } => {
                children.iter().map(Self::num_leaves).sum()
            }
            Self::Dict(entries) => entries.iter().map(|(_, child)| child.num_leaves()).sum(),
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, children: &[TreeDef]) -> fmt::Result {
    for (position, child) in children.iter().enumerate() {
        if position > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{child}")?;
    }
    Ok(())
}

impl fmt::Display for TreeDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leaf => f.write_str("*"),
            Self::None => f.write_str("None"),
            Self::Tuple(children) => {
                f.write_str("(")?;
                list(f, children)?;
                f.write_str(if children.len() == 1 { ",)" } else { ")" })
            }
            Self::List(children) => {
                f.write_str("[")?;
                list(f, children)?;
                f.write_str("]")
            }
            Self::Dict(entries) => {
                f.write_str("{")?;
                for (position, (key, child)) in entries.iter().enumerate() {
                    if position > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "'{key}': {child}")?;
                }
                f.write_str("}")
            }
            Self::Custom { name, children, .. } => {
                write!(f, "CustomNode({name}, [")?;
                list(f, children)?;
                f.write_str("])")
            }
        }
    }
}
