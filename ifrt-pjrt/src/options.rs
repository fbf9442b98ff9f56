//! [`CreateOptions`]: the options with which a client is made.

use std::fmt;

use ifrt::attribute_map::{AttributeMap, AttributeValue};
use ifrt::{Result, Status};

/// More devices than this in one process are a mistake, and each takes memory.
const MAX_CPU_DEVICES: i64 = 4096;

/// The options with which a client is made, for example `cpu_device_count`.
///
/// Which names a plugin knows is its own affair; newer plugins refuse unknown ones, older ones
/// ignore them. The values of the names that are known here are checked, because some plugins abort
/// on them.
///
/// # Examples
/// ```
/// # fn main() -> ifrt::Result<()> {
/// let options = ifrt_pjrt::CreateOptions::parse(["cpu_device_count=8", "asynchronous=true"])?;
/// assert_eq!(options.to_string(), "asynchronous=true cpu_device_count=8");
/// assert!(ifrt_pjrt::CreateOptions::parse(["cpu_device_count=-1"]).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreateOptions(AttributeMap);

impl CreateOptions {
    /// No options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads options of the form `name=value`. The value is an integer, `true` or `false`, a
    /// number with a point or exponent, or else a text.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a text without a name, a name that stands twice, or a value that no
    /// plugin can take.
    pub fn parse<I>(options: I) -> Result<Self>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let mut parsed = Self::new();
        for option in options {
            let option = option.as_ref();
            let (name, value) = match option.split_once('=') {
                Some((name, value)) if !name.is_empty() => (name, value),
                _ => {
                    return Err(Status::invalid_argument(format!(
                        "the option {option:?} is not of the form name=value"
                    )));
                }
            };
            if parsed.0.get(name).is_ok() {
                return Err(Status::invalid_argument(format!(
                    "the option {name} is given twice"
                )));
            }
            parsed = parsed.set(name, parse_value(value))?;
        }
        Ok(parsed)
    }

    /// The same options with one set or replaced.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a value that no plugin can take.
    pub fn set(mut self, name: &str, value: impl Into<AttributeValue>) -> Result<Self> {
        let value = value.into();
        check(name, &value)?;
        self.0.set(name, value);
        Ok(self)
    }

    pub(crate) fn attributes(&self) -> &AttributeMap {
        &self.0
    }
}

impl fmt::Display for CreateOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (name, value)) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str(" ")?;
            }
            match value {
                AttributeValue::String(text) => {
                    write!(f, "{name}={}", String::from_utf8_lossy(text))?;
                }
                AttributeValue::Bool(value) => write!(f, "{name}={value}")?,
                AttributeValue::Int64(value) => write!(f, "{name}={value}")?,
                AttributeValue::Int64List(list) => write!(f, "{name}={list:?}")?,
                AttributeValue::Float(value) => write!(f, "{name}={value:?}")?,
            }
        }
        Ok(())
    }
}

fn parse_value(text: &str) -> AttributeValue {
    if let Ok(value) = text.parse::<i64>() {
        return value.into();
    }
    if let Ok(value) = text.parse::<bool>() {
        return value.into();
    }
    // `inf`, `nan` and the like are more likely names than numbers.
    let looks_like_number = text
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'+' | b'-' | b'e' | b'E'));
    match text.parse::<f32>() {
        Ok(value) if looks_like_number && value.is_finite() => value.into(),
        _ => text.to_owned().into(),
    }
}

/// Checks the options whose misuse aborts some plugins.
fn check(name: &str, value: &AttributeValue) -> Result<()> {
    let wrong = |wanted: String| {
        Err(Status::invalid_argument(format!(
            "the option {name} must be {wanted}, not {value:?}"
        )))
    };
    match (name, value) {
        ("cpu_device_count", AttributeValue::Int64(count)) => match count {
            0..=MAX_CPU_DEVICES => Ok(()),
            _ => wrong(format!("a number from 0 to {MAX_CPU_DEVICES}")),
        },
        ("cpu_device_count", _) => wrong("an integer".to_owned()),
        ("process_id", AttributeValue::Int64(id)) => match i32::try_from(*id) {
            Ok(0..) => Ok(()),
            _ => wrong("an integer that is not negative".to_owned()),
        },
        ("process_id", _) => wrong("an integer".to_owned()),
        ("asynchronous", AttributeValue::Bool(_)) => Ok(()),
        ("asynchronous", _) => wrong("true or false".to_owned()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ifrt::Code;

    #[test]
    fn values_have_the_type_that_their_text_suggests() {
        for (text, value) in [
            ("8", AttributeValue::Int64(8)),
            ("-8", AttributeValue::Int64(-8)),
            ("true", AttributeValue::Bool(true)),
            ("false", AttributeValue::Bool(false)),
            ("0.75", AttributeValue::Float(0.75)),
            ("1e3", AttributeValue::Float(1000.0)),
            ("1e99", AttributeValue::from("1e99")),
            ("nan", AttributeValue::from("nan")),
            ("a=b", AttributeValue::from("a=b")),
            ("", AttributeValue::from("")),
            ("99999999999999999999", AttributeValue::Float(1e20)),
        ] {
            let options = CreateOptions::parse([format!("x={text}")]).unwrap();
            assert_eq!(options.attributes().get("x"), Ok(&value), "{text}");
        }
    }

    #[test]
    fn what_plugins_abort_on_is_refused() {
        for option in [
            "cpu_device_count=-1",
            "cpu_device_count=4097",
            "cpu_device_count=many",
            "cpu_device_count=true",
            "cpu_device_count=1.5",
            "process_id=-1",
            "process_id=99999999999",
            "asynchronous=1",
            "=1",
            "x",
            "",
        ] {
            let error = CreateOptions::parse([option]).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{option}");
        }
        assert!(
            CreateOptions::parse(["a=1", "a=2"])
                .unwrap_err()
                .message()
                .contains("twice")
        );
        for option in [
            "cpu_device_count=0",
            "cpu_device_count=4096",
            "process_id=3",
        ] {
            CreateOptions::parse([option]).unwrap();
        }
    }
}
