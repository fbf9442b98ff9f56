//! `COVERAGE.md`: which functions of the C API are wrapped where, and tested by what.
//!
//! The list is made from the function tables, so no function can be forgotten in it. The places and
//! tests that it names are looked up, so none can be invented.

use std::fmt::Write;
use std::path::Path;

use crate::sys::Slot;
use crate::sys::api::API;
use crate::sys::ext::{FFI, LAYOUTS, SHARDINGS};

/// Set to rewrite the document.
const UPDATE: &str = "UPDATE_COVERAGE";

/// A function, the file below `src/` that calls it, and a test: `it::MODULE::NAME` or a path of a
/// unit test below `src/`.
const WRAPPED: &[(&str, &str, &str)] = &[
    (
        "ErrorDestroy",
        "safe/error.rs",
        "safe/api/tests.rs::errors_are_read_once_and_destroyed_once",
    ),
    (
        "ErrorMessage",
        "safe/error.rs",
        "safe/api/tests.rs::errors_are_read_once_and_destroyed_once",
    ),
    (
        "ErrorGetCode",
        "safe/error.rs",
        "safe/api/tests.rs::errors_are_read_once_and_destroyed_once",
    ),
    (
        "ErrorForEachPayload",
        "safe/error.rs",
        "it::run::errors_travel_through_programs",
    ),
    (
        "PluginInitialize",
        "safe/library.rs",
        "it::plugin::a_plugin_is_loaded_once_whatever_its_path_is_called",
    ),
    (
        "PluginAttributes",
        "safe/library.rs",
        "it::create::a_client_has_the_attributes_that_jax_reads",
    ),
    (
        "EventDestroy",
        "safe/event.rs",
        "it::host::shared_memory_is_kept_as_long_as_the_array_and_given_back_once",
    ),
    ("EventIsReady", "safe/event.rs", "it::run::tokens"),
    (
        "EventError",
        "safe/event.rs",
        "it::run::errors_travel_through_programs",
    ),
    (
        "EventOnReady",
        "safe/event.rs",
        "it::run::the_last_reference_may_go_in_a_callback",
    ),
    (
        "ClientCreate",
        "safe/client.rs",
        "it::create::a_client_tells_its_devices_and_memories",
    ),
    (
        "ClientDestroy",
        "safe/client.rs",
        "it::run::the_client_goes_when_everything_is_gone_and_not_before",
    ),
    (
        "ClientPlatformName",
        "safe/client.rs",
        "it::create::a_client_tells_its_devices_and_memories",
    ),
    (
        "ClientProcessIndex",
        "safe/client.rs",
        "it::create::a_client_tells_its_devices_and_memories",
    ),
    (
        "ClientPlatformVersion",
        "safe/client.rs",
        "it::create::a_client_tells_its_devices_and_memories",
    ),
    (
        "ClientDevices",
        "safe/client/enumerate.rs",
        "it::create::a_client_tells_its_devices_and_memories",
    ),
    (
        "ClientAddressableMemories",
        "safe/client/enumerate.rs",
        "it::create::a_client_tells_its_devices_and_memories",
    ),
    (
        "ClientCompile",
        "safe/executable.rs",
        "it::run::a_program_runs_on_one_device",
    ),
    (
        "ClientDefaultDeviceAssignment",
        "safe/client.rs",
        "it::spmd::default_device_assignments",
    ),
    (
        "ClientBufferFromHostBuffer",
        "safe/buffer/from_host.rs",
        "it::host::every_dtype_comes_back_as_it_went",
    ),
    (
        "ClientCreateErrorBuffer",
        "safe/buffer/from_host.rs",
        "it::run::errors_travel_through_programs",
    ),
    (
        "ClientCreateAliasBuffer",
        "safe/buffer/promised.rs",
        "it::reshard::sources_that_are_not_ready_are_waited_for_by_nobody",
    ),
    (
        "ClientFulfillAliasBuffer",
        "safe/buffer/promised.rs",
        "it::reshard::sources_that_are_not_ready_are_waited_for_by_nobody",
    ),
    (
        "DeviceDescriptionId",
        "safe/client/enumerate.rs",
        "it::create::a_client_tells_its_devices_and_memories",
    ),
    (
        "DeviceDescriptionProcessIndex",
        "safe/client/enumerate.rs",
        "it::create::a_client_tells_its_devices_and_memories",
    ),
    (
        "DeviceDescriptionAttributes",
        "safe/client/enumerate.rs",
        "it::create::a_client_tells_its_devices_and_memories",
    ),
    (
        "DeviceDescriptionKind",
        "safe/client/enumerate.rs",
        "it::create::a_client_tells_its_devices_and_memories",
    ),
    (
        "DeviceDescriptionDebugString",
        "safe/client/enumerate.rs",
        "it::create::a_client_tells_its_devices_and_memories",
    ),
    (
        "DeviceDescriptionToString",
        "safe/client/enumerate.rs",
        "it::create::a_client_tells_its_devices_and_memories",
    ),
    (
        "DeviceGetDescription",
        "safe/client/enumerate.rs",
        "it::create::a_client_tells_its_devices_and_memories",
    ),
    (
        "DeviceIsAddressable",
        "safe/client/enumerate.rs",
        "it::create::a_client_tells_its_devices_and_memories",
    ),
    (
        "DeviceLocalHardwareId",
        "safe/client/enumerate.rs",
        "it::create::a_client_tells_its_devices_and_memories",
    ),
    (
        "DeviceAddressableMemories",
        "safe/client/enumerate.rs",
        "it::create::a_client_tells_its_devices_and_memories",
    ),
    (
        "DeviceDefaultMemory",
        "safe/client/enumerate.rs",
        "it::create::a_client_tells_its_devices_and_memories",
    ),
    (
        "MemoryId",
        "safe/client/enumerate.rs",
        "it::create::a_client_tells_its_devices_and_memories",
    ),
    (
        "MemoryKind",
        "safe/client/enumerate.rs",
        "it::host::memory_kinds",
    ),
    (
        "MemoryDebugString",
        "safe/client/enumerate.rs",
        "it::create::a_client_tells_its_devices_and_memories",
    ),
    (
        "MemoryToString",
        "safe/client/enumerate.rs",
        "it::create::a_client_tells_its_devices_and_memories",
    ),
    (
        "MemoryAddressableByDevices",
        "safe/client/enumerate.rs",
        "it::create::a_client_tells_its_devices_and_memories",
    ),
    (
        "ExecutableDestroy",
        "safe/executable.rs",
        "it::run::runs_outlive_their_executable_and_inputs",
    ),
    (
        "ExecutableName",
        "safe/executable/query.rs",
        "it::run::a_program_runs_on_one_device",
    ),
    (
        "ExecutableNumReplicas",
        "safe/executable/query.rs",
        "it::spmd::replicas_each_give_a_result",
    ),
    (
        "ExecutableNumPartitions",
        "safe/executable/query.rs",
        "it::spmd::a_program_runs_over_eight_devices",
    ),
    (
        "ExecutableNumOutputs",
        "safe/executable.rs",
        "it::run::several_outputs_of_several_dtypes",
    ),
    (
        "ExecutableSizeOfGeneratedCodeInBytes",
        "safe/executable/query.rs",
        "it::run::an_executable_tells_about_itself",
    ),
    (
        "ExecutableGetCostAnalysis",
        "safe/executable/query.rs",
        "it::run::an_executable_tells_about_itself",
    ),
    (
        "ExecutableOutputMemoryKinds",
        "safe/executable/query.rs",
        "it::run::an_executable_tells_about_itself",
    ),
    (
        "ExecutableOptimizedProgram",
        "safe/executable/query.rs",
        "it::run::an_executable_tells_about_itself",
    ),
    (
        "ExecutableSerialize",
        "safe/executable/query.rs",
        "it::serialized::an_executable_survives_the_round_trip_to_another_client",
    ),
    (
        "LoadedExecutableDestroy",
        "safe/executable.rs",
        "it::run::runs_outlive_their_executable_and_inputs",
    ),
    (
        "LoadedExecutableGetExecutable",
        "safe/executable.rs",
        "it::run::an_executable_tells_about_itself",
    ),
    (
        "LoadedExecutableAddressableDevices",
        "safe/executable.rs",
        "it::spmd::shards_follow_the_device_assignment",
    ),
    (
        "LoadedExecutableExecute",
        "safe/executable/execute.rs",
        "it::spmd::a_program_runs_over_eight_devices",
    ),
    (
        "ExecutableDeserializeAndLoad",
        "safe/executable.rs",
        "it::serialized::an_executable_survives_the_round_trip_to_another_client",
    ),
    (
        "BufferDestroy",
        "safe/buffer.rs",
        "it::deletion::deleting_from_many_threads_frees_once",
    ),
    ("BufferOnDeviceSizeInBytes", "safe/buffer.rs", ""),
    (
        "BufferIsDeleted",
        "safe/buffer.rs",
        "it::donation::a_donated_array_is_deleted_and_its_memory_is_the_result",
    ),
    ("BufferCopyToDevice", "safe/buffer/copy.rs", ""),
    (
        "BufferToHostBuffer",
        "safe/buffer/to_host.rs",
        "it::deletion::a_pending_output_may_be_deleted",
    ),
    (
        "BufferReadyEvent",
        "safe/buffer.rs",
        "it::deletion::a_deleted_array_says_so_and_refuses_everything",
    ),
    (
        "BufferIncreaseExternalReferenceCount",
        "safe/buffer/to_host.rs",
        "it::donation::reads_race_with_donations",
    ),
    (
        "BufferDecreaseExternalReferenceCount",
        "safe/buffer/to_host.rs",
        "it::donation::reads_race_with_donations",
    ),
    (
        "BufferOpaqueDeviceMemoryDataPointer",
        "safe/buffer/to_host.rs",
        "it::donation::reads_race_with_donations",
    ),
    (
        "ExecutableOutputElementTypes",
        "safe/executable/query.rs",
        "it::run::several_outputs_of_several_dtypes",
    ),
    (
        "ExecutableOutputDimensions",
        "safe/executable/query.rs",
        "it::run::several_outputs_of_several_dtypes",
    ),
    (
        "BufferCopyToMemory",
        "safe/buffer/copy.rs",
        "it::rearrange::copies_to_other_devices",
    ),
    (
        "ExecutableFingerprint",
        "safe/executable/query.rs",
        "it::run::an_executable_tells_about_itself",
    ),
    (
        "ExecutableGetCompiledMemoryStats",
        "safe/executable/query.rs",
        "it::run::an_executable_tells_about_itself",
    ),
    (
        "LoadedExecutableGetDeviceAssignment",
        "safe/executable.rs",
        "it::spmd::shards_follow_the_device_assignment",
    ),
    (
        "BufferBitcast",
        "safe/buffer/copy.rs",
        "it::rearrange::bytes_are_seen_as_another_type",
    ),
    (
        "LayoutsMemoryLayoutDestroy",
        "safe/layout.rs",
        "it::host::layouts",
    ),
    (
        "LayoutsMemoryLayoutSerialize",
        "safe/layout.rs",
        "it::host::layouts",
    ),
    (
        "LayoutsClientGetDefaultLayout",
        "safe/layout.rs",
        "it::host::layouts",
    ),
    (
        "LayoutsExecutableGetOutputLayouts",
        "safe/executable/query.rs",
        "it::run::an_executable_tells_about_itself",
    ),
    (
        "LayoutsExecutableGetParameterLayouts",
        "safe/executable/query.rs",
        "it::run::an_executable_tells_about_itself",
    ),
    (
        "ShardingsExecutableParameterShardings",
        "safe/executable/query.rs",
        "it::spmd::a_program_runs_over_eight_devices",
    ),
    (
        "ShardingsExecutableOutputShardings",
        "safe/executable/query.rs",
        "it::spmd::a_program_runs_over_eight_devices",
    ),
    ("FFIRegisterHandler", "safe/ffi/register.rs", ""),
];

fn document() -> String {
    let mut text = String::from(include_str!("coverage_head.md"));
    for (title, slots) in [
        ("Functions", API),
        ("Extension 4: layouts", LAYOUTS),
        ("Extension 19: shardings", SHARDINGS),
        ("Extension 5: FFI", FFI),
    ] {
        let used = slots.iter().filter(|slot| slot.marker.is_some()).count();
        let count = slots.len();
        writeln!(text, "\n## {title}: {used} of {count}\n").unwrap();
        text.push_str("| function | since 0. | wrapped in | tested by |\n|---|---|---|---|\n");
        slots.iter().for_each(|slot| row(&mut text, slot));
    }
    text
}

fn row(text: &mut String, slot: &Slot) {
    let since = match slot.since {
        0 => "–".to_owned(),
        since => since.to_string(),
    };
    let wrapped = slot.marker.map(|marker| {
        let found = WRAPPED.iter().find(|(name, ..)| *name == marker);
        *found.unwrap_or_else(|| panic!("{marker} is missing in the list of this test"))
    });
    let (place, test) = match wrapped {
        None => ("–".to_owned(), "–".to_owned()),
        Some((_, place, "")) => (format!("`{place}`"), "**not tested here**".to_owned()),
        Some((_, place, test)) => (format!("`{place}`"), format!("`{test}`")),
    };
    writeln!(text, "| `{}` | {since} | {place} | {test} |", slot.name).unwrap();
}

#[test]
fn the_document_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("COVERAGE.md");
    let document = document();
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, &document).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == document,
        "COVERAGE.md is out of date; run: {UPDATE}=1 cargo test -p ifrt-pjrt --lib coverage"
    );
}

#[test]
fn what_the_document_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    for (function, place, test) in WRAPPED {
        assert!(
            read(&format!("src/{place}")).contains(function),
            "{function} is not called in {place}"
        );
        let (file, name) = match test.strip_prefix("it::").map(|test| test.rsplit_once("::")) {
            Some(Some((module, name))) => (format!("tests/it/{module}.rs"), name),
            _ => match test.rsplit_once("::") {
                Some((file, name)) => (format!("src/{file}"), name),
                None => continue,
            },
        };
        assert!(
            read(&file).contains(&format!("fn {name}(")),
            "{test} does not exist"
        );
    }
}
