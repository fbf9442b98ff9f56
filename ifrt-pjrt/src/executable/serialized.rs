//! Executables as bytes.
//!
//! The form is that of PjRt-IFRT: a message about the program, preceded by its length, then the
//! bytes of the plugin. A plugin may accept the bytes of another build and compute garbage, so the
//! message also says which build wrote them, and another one is refused.
//!
//! # Mirrors
//! `xla/python/pjrt_ifrt/executable_metadata.proto`, `PjRtExecutable::CommonMetadata`.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use ifrt::client::Client;
use ifrt::device_list::DeviceList;
use ifrt::executable::{LoadedExecutableRef, XlaExecutableVersion};
use ifrt::proto::xla::ifrt::serialized_xla_executable_metadata::{OutputSpec, ParameterSpec};
use ifrt::proto::xla::ifrt::{
    Serialized, SerializedXlaExecutableMetadata, SerializedXlaExecutableVersion,
};
use ifrt::serdes::{dtype_to_proto, layout_to_proto, shape_to_proto};
use ifrt::xla::HloSharding;
use ifrt::{Result, Status};
use prost::Message;

use super::PjrtLoadedExecutable;
use super::metadata::{Hints, Metadata};
use crate::client::{PjrtClient, RUNTIME_TYPE};
use crate::device::PjrtDevice;
use crate::safe::executable::LoadedExecutable;

/// The name under which the build of the plugin stands in the message.
const BUILD_TYPE: &str = "ifrt_pjrt::PluginBuild";

/// The executable as bytes for [`load`].
///
/// # Errors
/// UNIMPLEMENTED if the plugin does not serialize; those of the plugin.
pub(super) fn save(
    client: &PjrtClient,
    executable: &LoadedExecutable,
    meta: &Metadata,
    outputs_bundle_slice_sizes: Option<&[usize]>,
) -> Result<Bytes> {
    let mut bytes =
        describe(client, meta, outputs_bundle_slice_sizes)?.encode_length_delimited_to_vec();
    bytes.extend_from_slice(&executable.serialize()?);
    Ok(bytes.into())
}

fn describe(
    client: &PjrtClient,
    meta: &Metadata,
    sizes: Option<&[usize]>,
) -> Result<SerializedXlaExecutableMetadata> {
    let output_specs = meta.outputs.iter().enumerate().map(|(index, output)| {
        let sharding = meta
            .output_shardings
            .as_ref()
            .and_then(|list| list.get(index));
        Ok(OutputSpec {
            shard_shape: Some(shape_to_proto(&output.shard.shape)),
            dtype: Some(dtype_to_proto(output.shard.dtype)),
            layout: output
                .shard
                .layout
                .as_ref()
                .map(layout_to_proto)
                .transpose()?,
            memory_kind: output.memory_kind.name().to_owned(),
            op_sharding: sharding.map(HloSharding::to_proto),
            shape: Some(shape_to_proto(&output.shape)),
        })
    });
    let parameter_specs = meta
        .inputs
        .iter()
        .flatten()
        .enumerate()
        .map(|(index, input)| {
            let sharding = meta
                .parameter_shardings
                .as_ref()
                .and_then(|list| list.get(index));
            Ok(ParameterSpec {
                layout: input.layout.as_ref().map(layout_to_proto).transpose()?,
                op_sharding: sharding.map(HloSharding::to_proto),
                donated_input: meta
                    .donatable
                    .as_ref()
                    .is_some_and(|list| list.contains(&index)),
                shape: Some(shape_to_proto(&input.parameter.shape)),
                dtype: Some(dtype_to_proto(input.parameter.dtype)),
                memory_kind: String::new(),
            })
        });
    Ok(SerializedXlaExecutableMetadata {
        ifrt_version_number: 0,
        runtime_name: RUNTIME_TYPE.to_owned(),
        output_specs: output_specs.collect::<Result<_>>()?,
        parameter_specs: parameter_specs.collect::<Result<_>>()?,
        computation_name: meta.name.clone(),
        portable: meta.devices.is_none(),
        executable_version: Some(SerializedXlaExecutableVersion {
            version_number: 0,
            platform_id: client.platform_id(),
            runtime_abi_version: build(client)?.encode_to_vec().into(),
        }),
        outputs_bundle_slice_sizes: sizes
            .unwrap_or_default()
            .iter()
            .map(|size| i32::try_from(*size))
            .collect::<Result<_, _>>()
            .map_err(|_| Status::internal("a bundle has more outputs than can be written"))?,
    })
}

/// Loads what [`save`] gave.
///
/// # Errors
/// INVALID_ARGUMENT for other bytes, or bytes of another build of the plugin; those of the plugin.
pub(crate) fn load(
    client: &Arc<PjrtClient>,
    serialized: &Bytes,
    devices: Option<DeviceList>,
) -> Result<LoadedExecutableRef> {
    let mut rest = serialized.clone();
    let meta = SerializedXlaExecutableMetadata::decode_length_delimited(&mut rest)
        .map_err(|error| invalid(format!("these bytes are no serialized executable: {error}")))?;
    if meta.runtime_name != RUNTIME_TYPE {
        return Err(invalid(format!(
            "the executable was serialized by the runtime {:?}, not by {RUNTIME_TYPE:?}",
            meta.runtime_name
        )));
    }
    let version = meta.executable_version.unwrap_or_default();
    if version.platform_id != client.platform_id()
        || version.runtime_abi_version != build(client)?.encode_to_vec()
    {
        return Err(invalid(
            "the executable was serialized by another build of the plugin or on another kind of \
             processor; compile the program again",
        ));
    }
    for device in devices.iter().flatten() {
        PjrtDevice::position_of(device, client.id())?;
    }
    if !rest.has_remaining() {
        return Err(invalid(
            "the serialized executable ends after its description",
        ));
    }
    let shardings = meta
        .output_specs
        .iter()
        .map(|output| output.op_sharding.as_ref());
    let output_shardings = match shardings.collect::<Option<Vec<_>>>() {
        Some(shardings) if !shardings.is_empty() => Some(
            shardings
                .into_iter()
                .map(HloSharding::from_proto)
                .collect::<Result<_>>()?,
        ),
        _ => None,
    };
    let donated = meta
        .parameter_specs
        .iter()
        .enumerate()
        .filter(|(_, spec)| spec.donated_input);
    let sizes = meta
        .outputs_bundle_slice_sizes
        .iter()
        .map(|size| usize::try_from(*size));
    let sizes = sizes
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| invalid("the serialized executable has a bundle of negative size"))?;
    let hints = Hints {
        outputs_bundle_slice_sizes: (!sizes.is_empty()).then_some(sizes),
        devices,
        is_portable: meta.portable,
        output_shardings,
        donatable: Some(donated.map(|(index, _)| index).collect()),
    };
    let safe = LoadedExecutable::deserialize(client.safe(), &rest, &[])?;
    PjrtLoadedExecutable::load(client, safe, hints)
}

fn invalid(message: impl Into<String>) -> Status {
    Status::invalid_argument(message)
}

/// The version of the executables of a client, which says for which build of the plugin they are.
pub(super) fn version(client: &PjrtClient) -> Result<XlaExecutableVersion> {
    Ok(XlaExecutableVersion {
        platform_id: client.platform_id(),
        abi_version: Some(build(client)?.encode_to_vec().into()),
    })
}

/// What must be the same where an executable is loaded: the plugin to the byte, as far as a look at
/// both ends of the file tells, and what the processor can do.
fn build(client: &PjrtClient) -> Result<Serialized> {
    let plugin = client.plugin();
    let text = format!(
        "{}\nPJRT C API 0.{}\n{}\n{}",
        client.platform_version(),
        plugin.api_minor(),
        plugin.build_id()?,
        processor()
    );
    Ok(Serialized {
        type_name: BUILD_TYPE.to_owned(),
        data: text.into(),
    })
}

/// The processor and those of its features that compilers of numeric code look for.
fn processor() -> String {
    #[allow(unused_mut, reason = "only some processors have features to ask for")]
    let mut features: Vec<&str> = vec![std::env::consts::ARCH];
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! ask {
            ($($feature:tt),*) => {
                $(if std::arch::is_x86_feature_detected!($feature) {
                    features.push($feature);
                })*
            };
        }
        ask!(
            "sse4.2",
            "avx",
            "avx2",
            "fma",
            "avx512f",
            "avx512bw",
            "avx512vl",
            "avx512bf16"
        );
    }
    features.join(" ")
}
