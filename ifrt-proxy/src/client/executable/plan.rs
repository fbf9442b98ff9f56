//! [`Plan`]: what comes out of an execution, known from an earlier one.
//!
//! The server tells the types and shardings of the outputs only with the outputs. So the first
//! execution waits, and later ones with arguments of the same types do not.

use std::sync::{Arc, Mutex, PoisonError};

use ifrt::{ArraySpec, DType, DeviceId, DeviceList, Shape, ShardingRef};

use super::super::array::ProxyArray;

/// The plans that are kept for one executable. Only a portable one has more than one.
const MAX_PLANS: usize = 32;

/// What an argument is, as far as an executable looks at it.
#[derive(Debug)]
struct Parameter {
    dtype: DType,
    shape: Shape,
    sharding: ShardingRef,
}

impl Parameter {
    fn fits(&self, argument: &ProxyArray) -> bool {
        let spec = argument.spec();
        self.dtype == spec.dtype
            && self.shape == spec.shape
            && (Arc::ptr_eq(&self.sharding, &spec.sharding) || self.sharding == spec.sharding)
    }
}

/// What comes out of an execution with such arguments.
#[derive(Debug)]
pub(super) struct Plan {
    /// Only of portable executables.
    devices: Option<Vec<DeviceId>>,
    parameters: Vec<Parameter>,
    pub(super) outputs: Vec<ArraySpec>,
}

impl Plan {
    pub(super) fn new(
        args: &[&ProxyArray],
        devices: Option<&DeviceList>,
        outputs: Vec<ArraySpec>,
    ) -> Self {
        let parameter = |argument: &&ProxyArray| Parameter {
            dtype: argument.spec().dtype,
            shape: argument.spec().shape.clone(),
            sharding: Arc::clone(&argument.spec().sharding),
        };
        Self {
            devices: devices.map(|devices| devices.ids().collect()),
            parameters: args.iter().map(parameter).collect(),
            outputs,
        }
    }

    fn is_for(&self, args: &[&ProxyArray], devices: Option<&DeviceList>) -> bool {
        let same_devices = match (&self.devices, devices) {
            (None, None) => true,
            (Some(own), Some(asked)) => asked.ids().eq(own.iter().copied()),
            _ => false,
        };
        same_devices
            && self.parameters.len() == args.len()
            && self
                .parameters
                .iter()
                .zip(args)
                .all(|(parameter, argument)| parameter.fits(argument))
    }
}

/// The plans of an executable.
#[derive(Debug, Default)]
pub(super) struct Plans(Mutex<Vec<Arc<Plan>>>);

impl Plans {
    /// The plan for such arguments, if there was an execution with them.
    pub(super) fn find(
        &self,
        args: &[&ProxyArray],
        devices: Option<&DeviceList>,
    ) -> Option<Arc<Plan>> {
        let plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        plans
            .iter()
            .find(|plan| plan.is_for(args, devices))
            .cloned()
    }

    /// Keeps a plan, in place of the oldest if there are many.
    pub(super) fn keep(&self, plan: Plan) {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if plans.len() >= MAX_PLANS {
            plans.remove(0);
        }
        plans.push(Arc::new(plan));
    }
}
