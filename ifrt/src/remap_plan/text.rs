//! Plans as text for people.

use std::fmt;

use super::{Interval, Mapping, RemapPlan};

fn join<T: fmt::Display>(values: impl IntoIterator<Item = T>) -> String {
    let texts: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
    texts.join(",")
}

/// `[0:4:2]`, the form of the reference.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}:{}:{}]", self.start, self.end, self.step)
    }
}

/// `Mapping(in_array=0,out_array=1,from=[[0:1:1]],to=[[0:1:1]])`, the form of the reference.
impl fmt::Display for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Mapping(in_array={},out_array={},from=[{}],to=[{}])",
            self.in_array,
            self.out_array,
            join(&self.from),
            join(&self.to)
        )
    }
}

/// The form of the reference; of the device map only the numbers of devices.
impl fmt::Display for RemapPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outputs = self.input_devices_for_output_map.iter();
        let outputs = outputs.map(|(output, inputs)| {
            let inputs = inputs
                .iter()
                .map(|input| format!("i{}:#{}", input.in_array, input.devices.len()));
            format!("o{output}:{{{}}}", join(inputs))
        });
        write!(
            f,
            "RemapPlan(input_specs=[{}],output_specs=[{}],mappings=[{}],output_map=[{}])",
            join(&self.input_specs),
            join(&self.output_specs),
            join(&self.mappings),
            join(outputs)
        )
    }
}
