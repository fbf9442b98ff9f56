//! [`Op`]: the operations that layers see.

use std::fmt;

macro_rules! ops {
    ($($variant:ident => $name:literal;)*) => {
        /// An operation of the contract; named after the method, without saying on which object.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "each is the method of that name")]
        #[non_exhaustive]
        pub enum Op {
            $($variant,)*
        }

        impl Op {
            /// Every operation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name of the method.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The span of a call. A span has its name from the place in the source where it is
            /// made, so there is a place per operation.
            pub(super) fn span(self) -> tracing::Span {
                use tracing::field::Empty;
                match self {
                    $(Self::$variant => tracing::debug_span!(
                        concat!("ifrt.", $name),
                        op = $name,
                        client_id = Empty,
                        array = Empty,
                        executable = Empty,
                        dtype = Empty,
                        shape = Empty,
                        devices = Empty,
                        bytes = Empty,
                        user_context = Empty,
                        outputs = Empty,
                        code = Empty,
                        elapsed_us = Empty,
                    ),)*
                }
            }
        }
    };
}

ops! {
    MakeArrayFromHostBuffer => "make_array_from_host_buffer";
    MakeArraysFromHostBufferShards => "make_arrays_from_host_buffer_shards";
    CopyArraysToHostBufferShards => "copy_arrays_to_host_buffer_shards";
    MakeErrorArrays => "make_error_arrays";
    AssembleArray => "assemble_array";
    CopyArrays => "copy_arrays";
    RemapArrays => "remap_arrays";
    BitcastArrays => "bitcast_arrays";
    ReshardArrays => "reshard_arrays";
    HashValues => "hash_values";
    DeleteValues => "delete_values";
    MakeTuple => "make_tuple";
    Bundle => "bundle";
    ConcatBundles => "concat_bundles";
    CancelExecution => "cancel_execution";
    DefaultDeviceAssignment => "default_device_assignment";
    DefaultLayout => "default_layout";
    TopologyForDevices => "topology_for_devices";
    SubscribeToAttributeChanges => "subscribe_to_attribute_changes";
    Ready => "ready";
    Delete => "delete";
    ByteSize => "byte_size";
    Layout => "layout";
    Disassemble => "disassemble";
    FullyReplicatedShard => "fully_replicated_shard";
    CopyToHost => "copy_to_host";
    Unpack => "unpack";
    Values => "values";
    ArraySpecs => "array_specs";
    Slice => "slice";
    Compile => "compile";
    CompileAndLoad => "compile_and_load";
    DeserializeLoadedExecutable => "deserialize_loaded_executable";
    Serialize => "serialize";
    Execute => "execute";
    ExecuteBundle => "execute_bundle";
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
