//! The form of rule ids.

/// The most bytes of a rule id in the contract.
const LONGEST: usize = 128;

/// Returns true if `text` can be the id of a rule: lower-case letters, digits, dots, dashes and underscores.
pub fn is_rule_id(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte);
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_ids_are_plain() {
        assert!(is_rule_id("git.no-push_2") && !is_rule_id("") && !is_rule_id("No push") && !is_rule_id("*"));
        assert!(!is_rule_id(&"x".repeat(LONGEST + 1)));
    }
}
