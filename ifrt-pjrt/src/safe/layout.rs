//! Layouts: the struct form to a plugin, the text form from it.

use ifrt::dtype::DType;
use ifrt::layout::Layout;
use ifrt::shape::Shape;
use ifrt::{Result, Status};

use super::api::Api;
use super::bytes::lent;
use super::client::Client;
use super::dtype;
use super::event::missing;
use crate::sys::buffer::{MemoryLayout, MemoryLayoutTiled, layout_type};
use crate::sys::ext::{
    LayoutsClientGetDefaultLayout, LayoutsClientGetDefaultLayoutArgs, LayoutsMemoryLayoutDestroy,
    LayoutsMemoryLayoutDestroyArgs, LayoutsMemoryLayoutSerialize, LayoutsMemoryLayoutSerializeArgs,
};
use crate::sys::{Function, LayoutsMemoryLayout};

/// What the struct form of a dense layout points to.
#[derive(Debug)]
pub(super) struct RawLayout {
    minor_to_major: Vec<i64>,
}

impl RawLayout {
    /// Dense and major to minor.
    pub(super) fn descending(rank: usize) -> Self {
        Self {
            minor_to_major: Layout::descending(rank).minor_to_major().to_vec(),
        }
    }

    /// The order of dimensions of a layout.
    pub(super) fn new(layout: &Layout) -> Self {
        Self {
            minor_to_major: layout.minor_to_major().to_vec(),
        }
    }

    /// The struct form, good as long as `self`.
    pub(super) fn raw(&self) -> MemoryLayout {
        MemoryLayout {
            tiled: MemoryLayoutTiled {
                minor_to_major: self.minor_to_major.as_ptr(),
                minor_to_major_size: self.minor_to_major.len(),
                ..MemoryLayoutTiled::NEW
            },
            type_: layout_type::TILED,
            ..MemoryLayout::NEW
        }
    }
}

/// The layout that a client gives an array unless told otherwise.
///
/// # Errors
/// UNIMPLEMENTED if the plugin does not tell; those of [`dtype::to_pjrt`].
pub(crate) fn default_of_client(client: &Client, dtype: DType, shape: &Shape) -> Result<Layout> {
    let api = client.api();
    let mut args = LayoutsClientGetDefaultLayoutArgs {
        client: client.raw(),
        type_: dtype::to_pjrt(dtype, client.minor())?,
        dims: shape.dims().as_ptr(),
        num_dims: shape.rank(),
        ..LayoutsClientGetDefaultLayoutArgs::NEW
    };
    // SAFETY: S3 and S4.
    unsafe { api.call::<LayoutsClientGetDefaultLayout>(&mut args) }?;
    Owned::new(api, args.layout, LayoutsClientGetDefaultLayout::NAME)?.read()
}

/// A layout that the caller of C owns.
struct Owned {
    api: &'static Api,
    raw: *mut LayoutsMemoryLayout,
}

impl Owned {
    fn new(api: &'static Api, raw: *mut LayoutsMemoryLayout, function: &str) -> Result<Self> {
        if raw.is_null() {
            return Err(missing(function, "layout"));
        }
        Ok(Self { api, raw })
    }

    fn read(&self) -> Result<Layout> {
        // SAFETY: the layout is owned and not NULL.
        unsafe { read(self.api, self.raw) }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let mut args = LayoutsMemoryLayoutDestroyArgs {
            layout: self.raw,
            ..LayoutsMemoryLayoutDestroyArgs::NEW
        };
        // SAFETY: S3; the layout is owned and destroyed once.
        let destroyed = unsafe { self.api.call::<LayoutsMemoryLayoutDestroy>(&mut args) };
        if let Err(status) = destroyed {
            tracing::warn!(%status, "a layout cannot be destroyed");
        }
    }
}

/// The text of a layout, parsed.
///
/// # Safety
/// `raw` is a layout of the plugin that is alive.
pub(super) unsafe fn read(api: &'static Api, raw: *mut LayoutsMemoryLayout) -> Result<Layout> {
    let mut args = LayoutsMemoryLayoutSerializeArgs {
        layout: raw,
        ..LayoutsMemoryLayoutSerializeArgs::NEW
    };
    // SAFETY: S3; the layout is alive, as promised by the caller.
    unsafe { api.call::<LayoutsMemoryLayoutSerialize>(&mut args) }?;
    // SAFETY: S9; the bytes live until the deleter is called.
    let text = unsafe { lent(args.serialized_bytes, args.serialized_bytes_size) };
    let layout = std::str::from_utf8(text)
        .map_err(|_| Status::internal("the plugin gave a layout that is no text"))
        .and_then(Layout::parse);
    if let Some(deleter) = args.serialized_layout_deleter {
        // SAFETY: S9; the deleter came with the object and is called once, after the last use.
        unsafe { deleter(args.serialized_layout) };
    }
    layout
}
