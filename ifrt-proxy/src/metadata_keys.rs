//! The keys of what goes with a gRPC call besides its messages.

/// The metadata of a session.
pub(crate) const SESSION_METADATA: &str = "ifrt-proxy-grpc-ifrt-session-metadata-bin";
/// The metadata of an upload.
pub(crate) const STORE_METADATA: &str = "ifrt-proxy-grpc-host-buffer-store-metadata-bin";
