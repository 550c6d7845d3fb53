//! Patterns over the operations of a GraphQL request.

use std::fmt;

use super::name_matches;

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationKind {
    /// It reads.
    Query,
    /// It changes.
    Mutation,
    /// It is told of changes.
    Subscription,
}

impl OperationKind {
    /// Returns the kind with this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "query" => Self::Query,
            "mutation" => Self::Mutation,
            "subscription" => Self::Subscription,
            _ => return None,
        })
    }
}

impl fmt::Display for OperationKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Query => "query",
            Self::Mutation => "mutation",
            Self::Subscription => "subscription",
        })
    }
}

/// A pattern over operations, such as `query:*` or `mutation:createIssue,add*`.
///
/// The names are those of the fields that an operation asks the server for. The client chooses the operation's own name
/// freely, so rules do not look at it.
///
/// ```
/// use portcullis_decision::pattern::{OperationKind, OperationPattern};
/// let pattern = OperationPattern::parse("mutation:createIssue,add*").unwrap();
/// assert!(pattern.matches(OperationKind::Mutation, "addComment"));
/// assert!(!pattern.matches(OperationKind::Mutation, "deleteRepository"));
/// assert!(!pattern.matches(OperationKind::Query, "createIssue"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationPattern {
    kind: OperationKind,
    fields: Vec<String>,
}

impl OperationPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// If the text has another form; the error says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let form = "write GraphQL operations as `query:*` or `mutation:createIssue,addComment`";
        let (kind, fields) = text.split_once(':').ok_or(form)?;
        let kind = OperationKind::parse(kind).ok_or(form)?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'*' | b'?');
        let fields: Vec<String> = fields.split(',').map(str::to_owned).collect();
        if fields.iter().any(|field| field.is_empty() || !field.bytes().all(is_name)) {
            return Err(form.to_owned());
        }
        Ok(Self { kind, fields })
    }

    /// Returns true if the pattern covers a field of an operation.
    #[must_use]
    pub fn matches(&self, kind: OperationKind, field: &str) -> bool {
        self.kind == kind && self.fields.iter().any(|pattern| name_matches(pattern, field))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_forms_are_refused() {
        for text in ["", "query", "query:", "read:*", "Query:*", "query:a,", "query:a b", "query:a-b", ":a"] {
            OperationPattern::parse(text).unwrap_err();
        }
    }
}
