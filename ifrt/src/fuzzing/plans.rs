//! Remap plans, programs and compile options.

use super::{accepted, choose, client, serialized};
use crate::client::Client;
use crate::program::CompileOptions;
use crate::proto::xla::ifrt::RemapPlanProto;
use crate::remap_plan::RemapPlan;
use crate::serdes::{
    SerDesVersion, compile_options_from_proto, compile_options_to_proto, program_from_proto,
    program_to_proto, remap_plan_from_proto, remap_plan_to_proto,
};

/// A remap plan, and whether it is valid.
///
/// # Panics
/// If it does not survive being written and read again, or a valid plan does not give each shard.
pub fn remap_plan(data: &[u8]) {
    let client = client();
    let Ok(proto) = <RemapPlanProto as prost::Message>::decode(data) else {
        return;
    };
    let Ok(plan) = remap_plan_from_proto(&proto, &*client) else {
        return;
    };
    let written = remap_plan_to_proto(&plan, SerDesVersion::CURRENT);
    let written = accepted(written, "a plan that was read");
    let again = accepted(remap_plan_from_proto(&written, &*client), "what we wrote");
    // Opaque shardings are equal to themselves only, so texts are compared.
    assert_eq!(again.to_string(), plan.to_string());
    if plan.validate().is_err() {
        return;
    }
    let sources = accepted(plan.sources(), "a valid plan");
    for (spec, sources) in plan.output_specs.iter().zip(&sources) {
        assert_eq!(spec.sharding.devices().addressable().len(), sources.len());
    }
    let optimized = RemapPlan::create_optimized(plan.input_specs, plan.output_specs, plan.mappings);
    // A device that an input has twice does not fit into a map of devices.
    if let Ok(optimized) = optimized {
        assert_eq!(accepted(optimized.sources(), "an optimized plan"), sources);
    }
}

const KINDS: [&str; 6] = [
    "XlaProgram",
    "CustomCallProgram",
    "PluginProgram",
    "XlaCompileOptions",
    "CustomCallCompileOptions",
    "PluginCompileOptions",
];

/// A program or compile options.
///
/// # Panics
/// If it does not survive being written and read again.
pub fn program(data: &[u8]) {
    let Some((name, data)) = choose(data, &KINDS) else {
        return;
    };
    let client = client();
    let proto = serialized(name, data);
    let version = SerDesVersion::CURRENT;
    if let Ok(program) = program_from_proto(&proto, &*client) {
        let written = accepted(program_to_proto(&program, version), "a program");
        let again = accepted(program_from_proto(&written, &*client), "a written program");
        let again = accepted(program_to_proto(&again, version), "a program");
        assert_eq!(again, written);
    }
    if let Ok(options) = compile_options_from_proto(&proto) {
        if let CompileOptions::Xla(options) = &options
            && let Ok(devices) = options.resolve_devices(&*client)
        {
            assert!(devices.ids().all(|id| client.lookup_device(id).is_ok()));
        }
        let written = accepted(compile_options_to_proto(&options, version), "options");
        let again = accepted(compile_options_from_proto(&written), "written options");
        assert_eq!(
            again.outputs_bundle_slice_sizes(),
            options.outputs_bundle_slice_sizes()
        );
    }
}
