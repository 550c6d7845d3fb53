//! Recognises values that look random.

/// The minimum length of a value that is recognised by its randomness.
const SHORTEST: usize = 16;

/// Returns true if a value looks random: long, with several kinds of characters, and few repetitions.
pub(crate) fn looks_random(value: &str) -> bool {
    let length = value.chars().count();
    let has = |test: fn(&char) -> bool| value.chars().any(|character| test(&character));
    let digits = has(char::is_ascii_digit);
    let letters = has(char::is_ascii_alphabetic);
    length >= SHORTEST && digits && letters && entropy(value) > 3.2 && !is_a_place(value)
}

/// Returns true for paths, addresses and variables, which occur in the position of passwords.
fn is_a_place(value: &str) -> bool {
    ["/", "./", "~", "$", "<", "{", "http://", "https://", "file:"]
        .iter()
        .any(|start| value.starts_with(start))
}

/// Returns the entropy in bits per character.
fn entropy(value: &str) -> f64 {
    let mut counts = std::collections::BTreeMap::new();
    for character in value.chars() {
        *counts.entry(character).or_insert(0_u32) += 1;
    }
    let length = f64::from(counts.values().sum::<u32>());
    counts.values().map(|count| f64::from(*count) / length).map(|share| -share * share.log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_random() {
        for (value, random) in [
            ("q8Zr2Lk0Xv9TtBn4", true),
            ("5f4dcc3b5aa765d61d8327deb882cf99", true),
            ("correct-horse-battery", false),
            ("aaaaaaaaaaaaaaa1", false),
            ("short1", false),
            ("${SECRET_FROM_ENV_1}", false),
            ("/run/secrets/password1", false),
        ] {
            assert_eq!(looks_random(value), random, "{value}");
        }
    }
}
