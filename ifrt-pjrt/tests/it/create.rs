//! Making clients and what they say of themselves.

use ifrt::{Client, MemoryKind};

use crate::support::client;

#[test]
fn a_client_tells_its_devices_and_memories() {
    let client = client(8);
    assert_eq!(client.runtime_type(), "pjrt_ifrt");
    assert_eq!(client.platform_name(), "cpu");
    assert!(client.platform_version().starts_with("PJRT C API\n"));
    assert_eq!(client.process_index(), 0);
    let ids: Vec<i32> = client
        .devices()
        .iter()
        .map(|device| device.id().0)
        .collect();
    assert_eq!(ids, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(client.addressable_devices().len(), 8);
    for device in client.devices() {
        assert!(device.is_addressable());
        assert_eq!(device.kind(), "cpu");
        assert_eq!(device.platform_name(), "cpu");
        assert_eq!(device.local_hardware_id(), Some(device.id().0));
        let kinds: Vec<&str> = device.memories().iter().map(|m| m.kind().name()).collect();
        assert_eq!(kinds, ["device", "pinned_host", "unpinned_host"]);
        let default = device.default_memory().unwrap();
        assert_eq!(default.kind(), &MemoryKind::default());
        assert_eq!(default.devices().len(), 1);
        assert_eq!(default.devices()[0].id(), device.id());
        assert_eq!(device.to_text(), format!("CpuDevice(id={})", device.id()));
    }
}

#[test]
fn a_client_has_the_attributes_that_jax_reads() {
    let client = client(1);
    let attributes = client.attributes();
    assert!(
        attributes
            .get_bool("supports_executable_serialization")
            .unwrap()
    );
    assert!(attributes.get_bool("serialize_with_sdy").unwrap());
    assert_eq!(attributes.get_i64("pjrt_c_api_major_version"), Ok(0));
    assert_eq!(
        attributes.get_i64("pjrt_c_api_minor_version"),
        Ok(i64::from(client.plugin().api_minor()))
    );
    assert!(attributes.get("stablehlo_current_version").is_ok());
}
