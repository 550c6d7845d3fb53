use proptest::prelude::*;

use super::*;

/// A simple version of [`is_secret_name`] for comparison.
fn is_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let lower = lower.trim_start_matches('-');
    let plain = lower.replace(['-', '_', '.'], "");
    let is_ended = lower
        .rsplit_once(['_', '-'])
        .is_some_and(|(before, end)| !before.is_empty() && LAST_WORDS.contains(&end));
    let is_name = name.len() <= 128 && !name.contains('/');
    let last = lower.rsplit(['_', '-', '.']).next().unwrap_or_default();
    let has_end = ENDS.iter().any(|end| last.len() >= end.len() + 2 && last.ends_with(end));
    is_name
        && (is_ended
            || (has_end && !ORDINARY_WORDS.contains(&last))
            || WHOLE.contains(&lower)
            || PARTS.iter().any(|secret| plain.contains(secret)))
}

#[test]
fn each_part_is_found_however_it_is_written() {
    for part in PARTS {
        let spaced: String = part.chars().flat_map(|letter| [letter, '-']).collect();
        for name in [part.to_owned(), part.to_ascii_uppercase(), format!("MY_{part}.2"), spaced] {
            assert!(is_secret_name(&name), "{name}");
        }
        let cut = part.get(1..).unwrap_or_default();
        assert_eq!(is_secret_name(cut), is_secret(cut), "{cut}");
    }
}

proptest! {
    #[test]
    fn names_are_judged_as_by_the_plain_version(
        name in "-{0,2}((a|api|Auth|cess|authoriz|ation|com|cook|ie|cred|credential|k|key|KEY|mon|oauth2|bearer|pass|\
                 PASS|phrase|pw|wd|word|private|pg|pat|pwd|sec|ret|session|sig|nature|tok|EN|token|x|é|/)[-_.]{0,2}\
                 ){0,6}",
    ) {
        prop_assert_eq!(is_secret_name(&name), is_secret(&name), "{}", name);
    }

    #[test]
    fn long_names_are_none(before in "[a-z_]{50,70}", after in "[a-z_]{50,70}") {
        let name = format!("{before}token{after}");
        prop_assert_eq!(is_secret_name(&name), is_secret(&name), "{}", name);
    }
}
