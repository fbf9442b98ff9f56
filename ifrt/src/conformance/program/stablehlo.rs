//! The programs in StableHLO, for runtimes that compile with XLA.

use prost::Message;

use super::ProgramKind;
use crate::device_list::DeviceList;
use crate::program::{CompileOptions, HloProgram, Program, XlaCompileOptions};
use crate::proto::xla::device_assignment_proto::ComputationDevice;
use crate::proto::xla::{CompileOptionsProto, DeviceAssignmentProto, ExecutableBuildOptionsProto};

const ADD_SUB: &str = r#"
module @add_sub attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(
      %a: tensor<2x3xi32> {mhlo.sharding = "{devices=[2,1]<=[2]}"},
      %b: tensor<2x3xi32> {mhlo.sharding = "{replicated}"})
      -> (tensor<2x3xi32> {mhlo.sharding = "{replicated}"},
          tensor<2x3xi32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) {
    %sum = stablehlo.add %a, %b : tensor<2x3xi32>
    %difference = stablehlo.subtract %a, %b : tensor<2x3xi32>
    return %sum, %difference : tensor<2x3xi32>, tensor<2x3xi32>
  }
}
"#;

const ADD: &str = "
module @add {
  func.func public @main(%a: tensor<2x3xi32>, %b: tensor<2x3xi32>) -> tensor<2x3xi32> {
    %sum = stablehlo.add %a, %b : tensor<2x3xi32>
    return %sum : tensor<2x3xi32>
  }
}
";

const FOUR: &str = "
module @four {
  func.func public @main(
      %a: tensor<2x3xi32> {jax.buffer_donor = true},
      %b: tensor<2x3xi32>,
      %c: tensor<2x3xi32> {jax.buffer_donor = true},
      %d: tensor<2x3xi32>)
      -> (tensor<2x3xi32>, tensor<2x3xi32>, tensor<2x3xi32>, tensor<2x3xi32>) {
    return %a, %b, %c, %d : tensor<2x3xi32>, tensor<2x3xi32>, tensor<2x3xi32>, tensor<2x3xi32>
  }
}
";

const ADD_ONE: &str = "
module @add_one {
  func.func public @main(%a: tensor<2x3xi32>) -> tensor<2x3xi32> {
    %one = stablehlo.constant dense<1> : tensor<2x3xi32>
    %sum = stablehlo.add %a, %one : tensor<2x3xi32>
    return %sum : tensor<2x3xi32>
  }
}
";

const ADD_THREE: &str = "
module @add_three {
  func.func public @main(%a: tensor<2x3xi32>, %b: tensor<2x3xi32>, %c: tensor<2x3xi32>)
      -> (tensor<2x3xi32>, tensor<2x3xi32>, tensor<2x3xi32>) {
    %one = stablehlo.constant dense<100> : tensor<2x3xi32>
    %two = stablehlo.constant dense<200> : tensor<2x3xi32>
    %three = stablehlo.constant dense<300> : tensor<2x3xi32>
    %x = stablehlo.add %a, %one : tensor<2x3xi32>
    %y = stablehlo.add %b, %two : tensor<2x3xi32>
    %z = stablehlo.add %c, %three : tensor<2x3xi32>
    return %x, %y, %z : tensor<2x3xi32>, tensor<2x3xi32>, tensor<2x3xi32>
  }
}
";

const NOTHING: &str = "
module @nothing {
  func.func public @main() {
    return
  }
}
";

const DONATE: &str = "
module @donate {
  func.func public @main(
      %a: tensor<2x3xi32> {jax.buffer_donor = true},
      %b: tensor<2x3xi32> {jax.buffer_donor = true})
      -> (tensor<2x3xi32>, tensor<2x3xi32>) {
    %sum = stablehlo.add %a, %b : tensor<2x3xi32>
    %difference = stablehlo.subtract %a, %b : tensor<2x3xi32>
    return %sum, %difference : tensor<2x3xi32>, tensor<2x3xi32>
  }
}
";

const TOKEN: &str = r#"
module @token attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(
      %t: !stablehlo.token,
      %a: tensor<4x2xi32> {mhlo.sharding = "{devices=[2,1]<=[2]}"})
      -> (!stablehlo.token, tensor<4x2xi32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) {
    return %t, %a : !stablehlo.token, tensor<4x2xi32>
  }
}
"#;

/// The program as MLIR text, with options that bind it to `devices`.
#[allow(
    clippy::unnecessary_wraps,
    reason = "has the form of the method that it answers for"
)]
pub fn stablehlo(kind: ProgramKind, devices: &DeviceList) -> Option<(Program, CompileOptions)> {
    let module = match kind {
        ProgramKind::AddSub => ADD_SUB,
        ProgramKind::Add => ADD,
        ProgramKind::Four => FOUR,
        ProgramKind::AddOne | ProgramKind::PortableAddOne => ADD_ONE,
        ProgramKind::AddThree => ADD_THREE,
        ProgramKind::Nothing => NOTHING,
        ProgramKind::Donate => DONATE,
        ProgramKind::Token => TOKEN,
    };
    let portable = kind == ProgramKind::PortableAddOne;
    let partitions = i64::try_from(devices.len()).unwrap_or(i64::MAX);
    let device = |id: crate::device::DeviceId| ComputationDevice {
        replica_device_ids: vec![i64::from(id.0)],
    };
    let assignment = DeviceAssignmentProto {
        replica_count: 1,
        computation_count: i32::try_from(devices.len()).unwrap_or(i32::MAX),
        computation_devices: devices.ids().map(device).collect(),
    };
    let options = CompileOptionsProto {
        compile_portable_executable: portable,
        executable_build_options: Some(ExecutableBuildOptionsProto {
            device_ordinal: -1,
            num_replicas: 1,
            num_partitions: partitions,
            use_spmd_partitioning: devices.len() > 1,
            device_assignment: (!portable).then_some(assignment),
            ..ExecutableBuildOptionsProto::default()
        }),
        ..CompileOptionsProto::default()
    };
    let program = Program::Hlo(HloProgram {
        module: module.into(),
    });
    let options = CompileOptions::Xla(XlaCompileOptions {
        compile_options: options.encode_to_vec().into(),
        devices: (!portable).then(|| devices.clone()),
        ..XlaCompileOptions::default()
    });
    Some((program, options))
}
