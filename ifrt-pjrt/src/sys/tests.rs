//! The declarations against the facts that were measured on plugins.

mod coverage;

use super::api::API;
use super::client::NamedValue;
use super::ext::{FFI, LAYOUTS, SHARDINGS};
use super::*;

#[test]
fn the_table_has_the_size_of_a_0_115_plugin() {
    assert_eq!(API.len(), 138);
    assert_eq!(API.last().map(|slot| slot.offset + 8), Some(1144));
}

/// The table sizes of released plugins: whatever a slot's version says, the last slot that such a
/// plugin has must not be younger than the plugin.
#[test]
fn versions_fit_the_tables_of_released_plugins() {
    for (minor, size) in [(81, 984), (106, 1128), (115, 1144)] {
        for slot in API {
            let inside = slot.offset + 8 <= size;
            assert_eq!(
                inside,
                slot.since <= minor,
                "{} in a 0.{minor} plugin",
                slot.name
            );
        }
    }
}

#[test]
fn extensions_have_the_sizes_of_a_0_115_plugin() {
    for (list, size) in [(LAYOUTS, 80), (SHARDINGS, 40), (FFI, 48)] {
        assert_eq!(list.last().map(|slot| slot.offset + 8), Some(size));
    }
}

#[test]
fn names_are_unique_and_markers_are_their_names() {
    let mut names = std::collections::HashSet::new();
    for slot in [API, LAYOUTS, SHARDINGS, FFI].concat() {
        assert!(names.insert(slot.name), "{}", slot.name);
        if let Some(marker) = slot.marker {
            let plain = slot.name.replace("PJRT_", "").replace('_', "");
            assert_eq!(marker, plain, "{}", slot.name);
        }
    }
}

/// Sizes at API 0.114 that differ from `size_of` or that have grown.
#[test]
fn struct_sizes_do_not_count_padding() {
    fn check<T: Sized0>(struct_size: usize, padded: usize) {
        let name = std::any::type_name::<T>();
        assert_eq!(T::STRUCT_SIZE, struct_size, "{name}");
        assert_eq!(size_of::<T>(), padded, "{name}");
    }
    check::<status::ErrorGetCodeArgs>(28, 32);
    check::<status::EventIsReadyArgs>(25, 32);
    check::<device::DeviceDescriptionIdArgs>(28, 32);
    check::<device::DeviceIsAddressableArgs>(25, 32);
    check::<buffer::BufferIsDeletedArgs>(25, 32);
    check::<buffer::MemoryLayout>(76, 80);
    check::<client::ClientCreateArgs>(88, 88);
    check::<client::ClientCreateErrorBufferArgs>(112, 112);
    check::<client::ClientCreateAliasBufferArgs>(80, 80);
    check::<client::ClientFulfillAliasBufferArgs>(64, 64);
    check::<executable::ExecuteOptions>(144, 144);
    check::<executable::ExecutableDeserializeAndLoadArgs>(72, 72);
    check::<executable::ExecutableGetCompiledMemoryStatsArgs>(144, 144);
    check::<NamedValue>(56, 56);
}

#[test]
fn new_structs_state_their_size_and_nothing_else() {
    let args = executable::ExecuteOptions::NEW;
    assert_eq!(args.struct_size, 144);
    assert!(args.extension_start.is_null() && args.context.is_null());
    assert_eq!((args.launch_id, args.num_tasks), (0, 0));
    let layout = buffer::MemoryLayout::NEW;
    assert_eq!((layout.struct_size, layout.tiled.struct_size), (76, 56));
    assert_eq!(layout.type_, buffer::layout_type::TILED);
}

#[test]
fn growth_names_the_version_of_late_fields() {
    fn since<T: Sized0>(field: &str) -> Option<i32> {
        T::GROWTH
            .iter()
            .find(|(name, _)| *name == field)
            .map(|(_, since)| *since)
    }
    type Stats = executable::ExecutableGetCompiledMemoryStatsArgs;
    assert_eq!(since::<Stats>("peak_memory_in_bytes"), Some(72));
    assert_eq!(since::<Stats>("argument_size_in_bytes"), None);
    assert_eq!(
        since::<client::ClientCreateErrorBufferArgs>("payload"),
        Some(103)
    );
    assert_eq!(
        since::<client::ClientCreateArgs>("kv_try_get_callback"),
        Some(61)
    );
}
