//! What a client says of itself when it opens a session.

use bytes::Bytes;
use ifrt::serdes::attribute_map_from_proto;
use ifrt::{Result, Status};
use tonic::metadata::MetadataMap;

use crate::proto::xla::ifrt::proxy::GrpcIfrtSessionMetadata;
use crate::token::Token;
use crate::version::{self, Version};

/// The name of the client's directory among the `initialization_data`.
const DIRECTORY_ATTRIBUTE: &str = "shared_directory";

/// What a client says of itself when it opens a session.
#[derive(Debug)]
pub(crate) struct Introduction {
    pub(crate) version: Version,
    /// The directory of the client below the shared one, if it has one of its own.
    pub(crate) directory: Option<String>,
    token: Option<Bytes>,
}

impl Introduction {
    /// Reads the metadata of the stream of a session and the headers around it.
    ///
    /// # Errors
    /// FAILED_PRECONDITION for versions that this server does not speak; INVALID_ARGUMENT for
    /// attributes that cannot be.
    pub(crate) fn new(metadata: GrpcIfrtSessionMetadata, headers: &MetadataMap) -> Result<Self> {
        let version = version::from_wire(metadata.version.unwrap_or_default());
        version::check(version)?;
        let attributes = metadata.initialization_data.unwrap_or_default();
        let attributes = attribute_map_from_proto(&attributes)?;
        let token = match attributes.get_bytes(Token::ATTRIBUTE) {
            Ok(token) => Some(token.clone()),
            Err(_) => bearer(headers),
        };
        let is_named = attributes
            .iter()
            .any(|(name, _)| name == DIRECTORY_ATTRIBUTE);
        // A client that names something else than text must not end up in the directory of all.
        let directory = is_named
            .then(|| attributes.get_str(DIRECTORY_ATTRIBUTE))
            .transpose()?;
        Ok(Self {
            version,
            directory: directory.map(str::to_owned),
            token,
        })
    }

    /// Checks the client's token, if one is wanted.
    ///
    /// # Errors
    /// UNAUTHENTICATED without the right one.
    pub(crate) fn authenticate(&self, wanted: Option<&Token>) -> Result<()> {
        let Some(wanted) = wanted else {
            return Ok(());
        };
        match &self.token {
            Some(shown) if wanted.matches(shown) => Ok(()),
            Some(_) => Err(Status::unauthenticated(
                "the token is not that of this server; compare the client's \
                 IFRT_PROXY_TOKEN_FILE with the server's --token-file",
            )),
            None => Err(Status::unauthenticated(
                "this server wants a token and the client has shown none; set \
                 IFRT_PROXY_TOKEN_FILE to a copy of the server's --token-file",
            )),
        }
    }
}

/// The token in the header `authorization`.
fn bearer(headers: &MetadataMap) -> Option<Bytes> {
    let header = headers.get("authorization")?.as_bytes();
    let (scheme, token) = header.split_at_checked("Bearer ".len())?;
    scheme
        .eq_ignore_ascii_case(b"Bearer ")
        .then(|| Bytes::copy_from_slice(token.trim_ascii()))
}
