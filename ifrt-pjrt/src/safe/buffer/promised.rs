//! Buffers whose contents come later: the C API calls them alias buffers.

use std::sync::Arc;

use ifrt::{Result, Status};

use super::from_host::{custom, target};
use super::{Buffer, Placement, ShardSpec};
use crate::safe::client::Client;
use crate::safe::dtype;
use crate::safe::event::missing;
use crate::safe::handle::Handle;
use crate::safe::layout::RawLayout;
use crate::sys;
use crate::sys::Function;
use crate::sys::api::{ClientCreateAliasBuffer, ClientFulfillAliasBuffer};
use crate::sys::client::{ClientCreateAliasBufferArgs, ClientFulfillAliasBufferArgs};

/// The duty to say once what a buffer holds. Dropping it makes the buffer fail.
#[derive(Debug)]
pub(crate) struct Promised {
    client: Client,
    /// `None` once it was said.
    raw: Option<Handle<sys::FulfillAliasBufferCallback>>,
}

impl Buffer {
    /// Makes a buffer that can be used at once, like one that a program has still to fill.
    ///
    /// # Errors
    /// UNIMPLEMENTED if the plugin has no such buffers, or cannot have this dtype or layout; those
    /// of the plugin.
    pub(crate) fn promised(
        client: &Client,
        spec: &Arc<ShardSpec>,
        placement: Placement,
    ) -> Result<(Arc<Self>, Promised)> {
        // Both functions, before a promise is made that could not be kept.
        if !client.api().has::<ClientFulfillAliasBuffer>() {
            return Err(Status::unimplemented(format!(
                "this plugin (PJRT C API 0.{}) has no buffers whose contents come later",
                client.minor()
            )));
        }
        // Such a buffer has the layout that it was made with, and a layout in C's form does not say
        // how elements share bytes: plugins find the contents to be of another kind.
        if spec.dtype.is_sub_byte() {
            return Err(Status::unimplemented(format!(
                "buffers of dtype {} whose contents come later",
                spec.dtype
            )));
        }
        let shape_element_type = dtype::to_pjrt(spec.dtype, client.minor())?;
        let (_, memory) = target(client, placement)?;
        if memory.is_null() {
            return Err(Status::unimplemented(
                "a plugin without memories has no buffers whose contents come later",
            ));
        }
        let dims = spec.shape.dims();
        let layout = match &spec.layout {
            Some(layout) => custom(client, layout, dims.len())?,
            None => RawLayout::descending(dims.len()),
        };
        let mut layout = layout.raw();
        let mut args = ClientCreateAliasBufferArgs {
            client: client.raw(),
            memory,
            shape_dims: dims.as_ptr(),
            shape_num_dims: dims.len(),
            shape_element_type,
            shape_layout: &raw mut layout,
            ..ClientCreateAliasBufferArgs::NEW
        };
        // SAFETY: S3 and S4.
        unsafe { client.api().call::<ClientCreateAliasBuffer>(&mut args) }?;
        let promised = Handle::new_opt(args.fulfill_alias_buffer_cb)
            .map(|raw| Promised {
                client: client.clone(),
                raw: Some(raw),
            })
            .ok_or_else(|| missing(ClientCreateAliasBuffer::NAME, "callback"));
        let buffer = Self::from_raw::<ClientCreateAliasBuffer>(
            client,
            args.alias_buffer,
            Arc::clone(spec),
            placement,
        );
        Ok((buffer?, promised?))
    }
}

impl Promised {
    /// Says what the buffer holds: the contents of another buffer of the same kind and place, which
    /// is consumed, or an error.
    ///
    /// # Errors
    /// Those of the plugin; the buffer has then failed or stays without contents.
    pub(crate) fn set(mut self, contents: Result<Arc<Buffer>>) -> Result<()> {
        self.fulfill(contents)
    }

    fn fulfill(&mut self, contents: Result<Arc<Buffer>>) -> Result<()> {
        let Some(raw) = self.raw.take() else {
            return Ok(());
        };
        let api = self.client.api();
        let new = || ClientFulfillAliasBufferArgs {
            client: self.client.raw(),
            fulfill_alias_buffer_cb: raw.as_ptr(),
            ..ClientFulfillAliasBufferArgs::NEW
        };
        let pinned = contents.as_ref().map_err(Clone::clone);
        match pinned.and_then(|contents| contents.pin_exclusively()) {
            Ok(mut pinned) => {
                let mut args = ClientFulfillAliasBufferArgs {
                    buffer: pinned.raw(),
                    ..new()
                };
                // SAFETY: S3, S4 and S6; the callback is used once.
                let done = unsafe { api.call::<ClientFulfillAliasBuffer>(&mut args) };
                pinned.note_donation();
                done
            }
            Err(status) => {
                let mut args = ClientFulfillAliasBufferArgs {
                    status_code: status.code().number(),
                    error_message: status.message().as_ptr(),
                    error_message_size: status.message().len(),
                    ..new()
                };
                // SAFETY: S3 and S4; the callback is used once.
                unsafe { api.call::<ClientFulfillAliasBuffer>(&mut args) }
            }
        }
    }
}

impl Drop for Promised {
    fn drop(&mut self) {
        let lost = Status::internal("the contents of a buffer were promised and never made");
        if let Err(status) = self.fulfill(Err(lost)) {
            tracing::warn!(%status, "a buffer without contents cannot be failed");
        }
    }
}
