//! Reading responses, none of which is trusted.

/// The body of a response, if it is of the kind that was asked for.
macro_rules! body {
    ($response:expr, $kind:ident) => {
        match $response {
            $crate::proto::xla::ifrt::proxy::ifrt_response::Response::$kind(content) => Ok(content),
            _ => Err(ifrt::Status::internal(concat!(
                "IFRT server sent a response with wrong type (expected ",
                stringify!($kind),
                ")"
            ))),
        }
    };
}

pub(super) use body;
