//! Wildcards over the names of environment variables: `*` for any run of characters, `?` for one.

/// Returns true if `pattern` matches the whole `name`.
///
/// ```
/// assert!(portcullis_decision::pattern::name_matches("CARGO_TARGET_*_RUNNER", "CARGO_TARGET_X_RUNNER"));
/// ```
#[must_use]
pub fn name_matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut here) = (0, 0);
    // Where to continue if the last `*` has to take one more character.
    let mut star: Option<(usize, usize)> = None;
    while here < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at + 1, here));
                at += 1;
            }
            Some(wanted) if *wanted == b'?' || Some(wanted) == name.get(here) => {
                at += 1;
                here += 1;
            }
            _ => match star {
                Some((after, taken)) => {
                    star = Some((after, taken + 1));
                    (at, here) = (after, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern.get(at..).is_some_and(|rest| rest.iter().all(|byte| *byte == b'*'))
}

#[cfg(test)]
mod tests {
    use super::name_matches;

    #[test]
    fn matches_whole_names() {
        for (pattern, name, expected) in [
            ("LD_*", "LD_PRELOAD", true),
            ("LD_*", "OLD_X", false),
            ("*", "", true),
            ("", "", true),
            ("", "A", false),
            ("A?C", "ABC", true),
            ("A?C", "AC", false),
            ("A*B*C", "AxxBxBxC", true),
            ("A*B", "AxBx", false),
            ("ENV", "ENVX", false),
            ("[AB]", "A", false),
        ] {
            assert_eq!(name_matches(pattern, name), expected, "{pattern} on {name}");
        }
    }
}
