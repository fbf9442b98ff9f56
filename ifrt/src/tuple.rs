//! [`Tuple`]: a value of values.
//!
//! # Mirrors
//! `xla/python/ifrt/tuple.h`, `xla/python/pjrt_ifrt/pjrt_tuple.h`.

use std::fmt;
use std::sync::Arc;

use crate::client::Client;
use crate::completion::Completion;
use crate::status::{Result, Status};
use crate::user_context::{self, UserContextRef};
use crate::value::{Lifecycle, READY_ON_DELETED, Value, ValueRef, check_owner};

/// A shared [`Tuple`].
pub type TupleRef = Arc<dyn Tuple>;

/// An immutable list of values that is itself a value.
///
/// Deleting a tuple deletes its elements. A tuple counts as deleted as soon as one of its elements
/// does; the others live on.
pub trait Tuple: Value {
    /// The number of elements.
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Conformance
    /// TUP-01, TUP-02.
    fn arity(&self) -> usize;

    /// The elements: the very objects that the tuple was made of.
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Errors
    /// Those of the runtime.
    ///
    /// # Mirrors
    /// `Tuple::Unpack`, which fills slots of the caller.
    ///
    /// # Conformance
    /// TUP-02, TUP-04.
    fn unpack(&self) -> Result<Vec<ValueRef>>;
}

/// A tuple that any runtime can use: it holds references and asks the client for the rest.
pub struct BasicTuple {
    client: Arc<dyn Client>,
    values: Box<[ValueRef]>,
    life: Lifecycle<()>,
    user_context: Option<UserContextRef>,
}

impl BasicTuple {
    /// A tuple of these values.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if a value belongs to another client.
    pub fn new(client: Arc<dyn Client>, values: &[ValueRef]) -> Result<Self> {
        check_owner(&client, values.iter().map(|v| v.client()), "value")?;
        Ok(Self {
            client,
            values: values.into(),
            life: Lifecycle::new(()),
            user_context: user_context::current(),
        })
    }
}

impl Value for BasicTuple {
    fn client(&self) -> Arc<dyn Client> {
        Arc::clone(&self.client)
    }

    fn into_tuple(self: Arc<Self>) -> Option<TupleRef> {
        Some(self)
    }

    fn user_context(&self) -> Option<UserContextRef> {
        self.user_context.clone()
    }

    /// The sum over the elements; `None` if one of them has no size.
    fn byte_size(&self) -> Result<Option<u64>> {
        let mut total = 0_u64;
        for value in &self.values {
            let Some(bytes) = value.byte_size()? else {
                return Ok(None);
            };
            total = total.checked_add(bytes).ok_or_else(|| {
                Status::out_of_range("the elements of a tuple have more bytes than 64 bits count")
            })?;
        }
        Ok(Some(total))
    }

    fn ready(&self) -> Completion {
        if !self.life.is_live() {
            return Completion::ready(Err(Status::invalid_argument(READY_ON_DELETED)));
        }
        self.client.ready(&self.values)
    }

    fn delete(&self) -> Completion {
        self.life
            .delete(|()| self.client.delete_values(&self.values))
    }

    fn is_deleted(&self) -> bool {
        !self.life.is_live() || self.values.iter().any(|value| value.is_deleted())
    }
}

impl Tuple for BasicTuple {
    fn arity(&self) -> usize {
        self.values.len()
    }

    fn unpack(&self) -> Result<Vec<ValueRef>> {
        Ok(self.values.to_vec())
    }
}

/// `BasicTuple(a,b,c)` with the elements' own descriptions.
impl fmt::Debug for BasicTuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BasicTuple(")?;
        for (position, value) in self.values.iter().enumerate() {
            if position > 0 {
                f.write_str(",")?;
            }
            write!(f, "{value:?}")?;
        }
        f.write_str(")")
    }
}
