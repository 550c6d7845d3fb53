//! Judges the operations in the body of a GraphQL request.
//!
//! A rule names the fields that an operation asks the server for, as `mutation:createIssue`: the client chooses the name
//! of the operation itself. Every operation of a document is judged, also those that `operationName` does not select,
//! so it does not matter how a server selects one.

mod document;
mod tokens;

use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use portcullis_decision::ConnectionRefusal;
use portcullis_decision::pattern::OperationPattern;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The longest body that is judged, in bytes.
pub const GRAPHQL_MAX: usize = 1 << 20;

/// What the operations of a request are compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operations {
    /// What names them in the settings, and what is permitted. Each of these must permit all operations.
    permitted: Vec<(OperationsRule, Vec<OperationPattern>)>,
}

/// Where patterns come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OperationsRule {
    /// From `network.requests`.
    Requests,
    /// From the purpose of the credential with this name.
    Purpose(String),
}

impl Operations {
    /// Makes the operations that the body of a request may have; `None` if no rule says which.
    pub(crate) fn new(
        permitted: Vec<(OperationsRule, Vec<OperationPattern>)>,
        request: &Parts,
        is_push: bool,
    ) -> Result<Option<Self>, ConnectionRefusal> {
        if permitted.is_empty() {
            return Ok(None);
        }
        // Servers also take operations from the query of the target, and read other bodies in other ways.
        let is_json = |kind: &HeaderValue| {
            let kind = kind.as_bytes().to_ascii_lowercase();
            kind == b"application/json" || kind == b"application/json; charset=utf-8"
        };
        let mut kinds = request.headers.get_all(CONTENT_TYPE).iter();
        let is_only = kinds.next().is_some_and(is_json) && kinds.next().is_none();
        let is_encoded = request.headers.contains_key(CONTENT_ENCODING);
        if is_push || request.uri.query().is_some() || !is_only || is_encoded {
            let reason = "a rule names operations of GraphQL for this path, and the request is not one of them: JSON in \
                          the body, not compressed, `Content-Type: application/json`, and nothing after the path";
            return Err(ConnectionRefusal::by_host("host.request-rule", reason));
        }
        Ok(Some(Self { permitted }))
    }

    /// Judges the body of a request.
    pub fn judge(&self, body: &[u8]) -> Result<(), ConnectionRefusal> {
        let unreadable = |why: String| {
            ConnectionRefusal::by_host("host.request-rule", format!("its GraphQL cannot be judged: {why}"))
        };
        let text = query(body).map_err(unreadable)?;
        for (kind, field) in document::fields(&text).map_err(unreadable)? {
            for (rule, patterns) in &self.permitted {
                if !patterns.iter().any(|pattern| pattern.matches(kind, field)) {
                    return Err(rule.refuses(&format!("{kind}:{field}")));
                }
            }
        }
        Ok(())
    }
}

impl OperationsRule {
    fn refuses(&self, operation: &str) -> ConnectionRefusal {
        match self {
            Self::Requests => {
                let reason =
                    format!("no rule in `network.requests` allows the GraphQL operation {operation}");
                ConnectionRefusal::by_host("host.request-rule", reason)
            }
            Self::Purpose(name) => {
                let reason = format!("the credential `{name}` is not for the GraphQL operation {operation}");
                ConnectionRefusal::by_host("host.credential-purpose", reason)
            }
        }
    }
}

/// The body of a request (GraphQL over HTTP, 5.3). A member that is there twice is an error, as is any other.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Body {
    query: Option<String>,
    #[serde(rename = "operationName")]
    _selected: Option<IgnoredAny>,
    #[serde(rename = "variables")]
    _variables: Option<IgnoredAny>,
    extensions: Option<IgnoredAny>,
}

/// Returns the document in the body of a request.
fn query(body: &[u8]) -> Result<String, String> {
    // A list would be taken for the members of an object, in their order; servers take it for several requests.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err("the body is not one object of JSON".to_owned());
    }
    let body: Body = serde_json::from_slice(body).map_err(|error| {
        let error = error.to_string();
        format!("the body is not a request in JSON: {}", portcullis_text::escape(&error))
    })?;
    // With extensions, a server can take another document than the one in the body.
    if body.extensions.is_some() {
        return Err("the body has extensions".to_owned());
    }
    body.query
        .ok_or_else(|| "the body has no document, so the server would use one that it has kept".to_owned())
}

#[cfg(test)]
mod tests;
