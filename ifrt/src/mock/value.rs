//! Mocks of what holds data.

use std::sync::Arc;

use mockall::mock;

use crate::array::{Array, ArrayCopySemantics, ArrayRef, ShardSemantics};
use crate::array_spec::ArraySpec;
use crate::bundle::{Bundle, BundleRef, CopySlice};
use crate::client::Client;
use crate::completion::Completion;
use crate::dtype::DType;
use crate::host_buffer::HostValue;
use crate::layout::Layout;
use crate::shape::Shape;
use crate::sharding::ShardingRef;
use crate::status::Result;
use crate::tuple::{Tuple, TupleRef};
use crate::user_context::UserContextRef;
use crate::value::{Value, ValueRef};

mock! {
    /// A mock of [`Array`].
    pub Array {
        pub fn client(&self) -> Arc<dyn Client>;
        pub fn user_context(&self) -> Option<UserContextRef>;
        pub fn byte_size(&self) -> Result<Option<u64>>;
        pub fn ready(&self) -> Completion;
        pub fn delete(&self) -> Completion;
        pub fn is_deleted(&self) -> bool;
        pub fn dtype(&self) -> DType;
        pub fn shape(&self) -> &Shape;
        pub fn sharding(&self) -> &ShardingRef;
        pub fn layout(&self) -> Result<Option<Layout>>;
        pub fn disassemble(
            &self,
            copy: ArrayCopySemantics,
            shards: ShardSemantics,
        ) -> Result<Vec<ArrayRef>>;
        pub fn fully_replicated_shard(&self, copy: ArrayCopySemantics) -> Result<ArrayRef>;
        pub fn copy_to_host<'a>(&self, byte_strides: Option<&'a [i64]>) -> Completion<HostValue>;
    }
}

// Written by hand because a mock knows itself to be an array, which no expectation can say.
impl Value for MockArray {
    fn client(&self) -> Arc<dyn Client> {
        self.client()
    }

    fn into_array(self: Arc<Self>) -> Option<ArrayRef> {
        Some(self)
    }

    fn user_context(&self) -> Option<UserContextRef> {
        self.user_context()
    }

    fn byte_size(&self) -> Result<Option<u64>> {
        self.byte_size()
    }

    fn ready(&self) -> Completion {
        self.ready()
    }

    fn delete(&self) -> Completion {
        self.delete()
    }

    fn is_deleted(&self) -> bool {
        self.is_deleted()
    }
}

impl Array for MockArray {
    fn dtype(&self) -> DType {
        self.dtype()
    }

    fn shape(&self) -> &Shape {
        self.shape()
    }

    fn sharding(&self) -> &ShardingRef {
        self.sharding()
    }

    fn layout(&self) -> Result<Option<Layout>> {
        self.layout()
    }

    fn disassemble(
        &self,
        copy: ArrayCopySemantics,
        shards: ShardSemantics,
    ) -> Result<Vec<ArrayRef>> {
        self.disassemble(copy, shards)
    }

    fn fully_replicated_shard(&self, copy: ArrayCopySemantics) -> Result<ArrayRef> {
        self.fully_replicated_shard(copy)
    }

    fn copy_to_host(&self, byte_strides: Option<&[i64]>) -> Completion<HostValue> {
        self.copy_to_host(byte_strides)
    }
}

mock! {
    /// A mock of [`Tuple`].
    pub Tuple {
        pub fn client(&self) -> Arc<dyn Client>;
        pub fn user_context(&self) -> Option<UserContextRef>;
        pub fn byte_size(&self) -> Result<Option<u64>>;
        pub fn ready(&self) -> Completion;
        pub fn delete(&self) -> Completion;
        pub fn is_deleted(&self) -> bool;
        pub fn arity(&self) -> usize;
        pub fn unpack(&self) -> Result<Vec<ValueRef>>;
    }
}

impl Value for MockTuple {
    fn client(&self) -> Arc<dyn Client> {
        self.client()
    }

    fn into_tuple(self: Arc<Self>) -> Option<TupleRef> {
        Some(self)
    }

    fn user_context(&self) -> Option<UserContextRef> {
        self.user_context()
    }

    fn byte_size(&self) -> Result<Option<u64>> {
        self.byte_size()
    }

    fn ready(&self) -> Completion {
        self.ready()
    }

    fn delete(&self) -> Completion {
        self.delete()
    }

    fn is_deleted(&self) -> bool {
        self.is_deleted()
    }
}

impl Tuple for MockTuple {
    fn arity(&self) -> usize {
        self.arity()
    }

    fn unpack(&self) -> Result<Vec<ValueRef>> {
        self.unpack()
    }
}

mock! {
    /// A mock of [`Bundle`].
    pub Bundle {}

    impl Bundle for Bundle {
        fn client(&self) -> Arc<dyn Client>;
        fn user_context(&self) -> Option<UserContextRef>;
        fn ready(&self) -> Completion;
        fn delete(&self) -> Completion;
        fn is_deleted(&self) -> bool;
        fn num_values(&self) -> usize;
        fn values(&self, copy: ArrayCopySemantics) -> Result<Vec<ValueRef>>;
        fn array_specs(&self) -> Result<Vec<ArraySpec>>;
        fn slice(&self, sizes: &[usize], copy: ArrayCopySemantics) -> Result<Vec<BundleRef>>;
        fn copy_arrays(
            &self,
            slices: &[CopySlice],
            copy: ArrayCopySemantics,
        ) -> Result<BundleRef>;
        fn reshard_arrays(
            &self,
            specs: &[ArraySpec],
            copy: ArrayCopySemantics,
        ) -> Result<BundleRef>;
    }
}
