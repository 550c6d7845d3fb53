//! Reads a policy's configuration, with pointers to its errors.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;

use crate::ConfigError;

/// The configuration of a policy without one: only `{}`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Never {}

/// Reads a configuration document.
///
/// # Errors
///
/// The first value that does not fit the type, with its JSON pointer.
pub fn read_config<T: DeserializeOwned>(document: &str) -> Result<T, Vec<ConfigError>> {
    let mut reader = serde_json::Deserializer::from_str(document);
    let config = serde_path_to_error::deserialize(&mut reader)
        .map_err(|error| vec![ConfigError::new(pointer(error.path()), error.inner().to_string())])?;
    reader.end().map_err(|error| vec![ConfigError::new("", error.to_string())])?;
    Ok(config)
}

impl ConfigError {
    /// Returns a refusal of the value at a JSON pointer.
    pub fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), message: message.into() }
    }
}

/// Converts a path in a document to a JSON pointer (RFC 6901).
fn pointer(path: &serde_path_to_error::Path) -> String {
    path.iter().fold(String::new(), |pointer, segment| match segment {
        Segment::Seq { index } => format!("{pointer}/{index}"),
        Segment::Map { key } | Segment::Enum { variant: key } => {
            format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
        }
        Segment::Unknown => pointer,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    #[expect(dead_code, reason = "only its shape matters")]
    struct Config {
        #[serde(default)]
        allow_read: Vec<Entry>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "only its shape matters")]
    enum Entry {
        Tree(String),
        Name { below: String },
    }

    #[track_caller]
    fn refused_at(document: &str, pointer: &str) {
        let errors = read_config::<Config>(document).unwrap_err();
        assert_eq!(errors[0].pointer, pointer, "{}", errors[0].message);
    }

    #[test]
    fn a_refusal_points_at_the_value() {
        refused_at(r#"{"alowRead": []}"#, "/alowRead");
        refused_at(r#"{"allowRead": [{"tree": "/a"}, {"tree": 1}]}"#, "/allowRead/1/tree");
        refused_at(r#"{"allowRead": [{"name": {"below": []}}]}"#, "/allowRead/0/name/below");
        refused_at(r#"{"allowRead": 7}"#, "/allowRead");
        refused_at("[", "");
        refused_at("{} {}", "");
    }

    #[test]
    fn a_policy_without_configuration_takes_only_the_empty_object() {
        assert_eq!(read_config::<Never>("{}").unwrap(), Never {});
        assert_eq!(read_config::<Never>(r#"{"a": 1}"#).unwrap_err()[0].pointer, "/a");
    }
}
