//! Questions about signatures of commits and tags.

use portcullis_decision::request::OtherAction;
use portcullis_text::escape_confusables;
use serde_json::Value;

/// The kind of the request, as in `other-action` of the contract.
pub const KIND: &str = "host:git-signature";

/// Returns the verb of a question with its object; `None` for other requests.
pub(super) fn verb(action: &OtherAction) -> Option<String> {
    let input = input(action)?;
    Some(format!("sign a {} with your key “{}”", text(&input, "object"), text(&input, "credential")))
}

/// Returns the first line of the message, and the committer or tagger.
pub(super) fn subject(action: &OtherAction) -> Option<String> {
    let input = input(action)?;
    Some(format!("{} ({})", text(&input, "summary"), text(&input, "by")))
}

fn input(action: &OtherAction) -> Option<Value> {
    serde_json::from_str(&action.input).ok().filter(|_| action.kind == KIND)
}

fn text(input: &Value, key: &str) -> String {
    escape_confusables(input.get(key).and_then(Value::as_str).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_named_and_other_requests_are_not() {
        let input =
            r#"{"credential":"sign","object":"commit","by":"N <n@x.test>","summary":"One \u001b[2J"}"#;
        let action = |kind: &str| OtherAction { kind: kind.to_owned(), input: input.to_owned() };
        assert_eq!(verb(&action(KIND)).unwrap(), "sign a commit with your key “sign”");
        let subject_of = subject(&action(KIND)).unwrap();
        assert!(subject_of.starts_with("One ") && subject_of.ends_with(" (N <n@x.test>)"), "{subject_of}");
        assert!(!subject_of.contains('\u{1b}'));
        assert_eq!(verb(&action("host:other")), None);
        assert_eq!(subject(&action("host:other")), None);
    }
}
