//! Counts with their nouns.

/// Formats a count with a noun, whose plural is formed with an `s`.
#[must_use]
pub fn counted(count: impl TryInto<u64>, thing: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_and_more() {
        assert_eq!([0_usize, 1, 2].map(|count| counted(count, "pack")), ["0 packs", "1 pack", "2 packs"]);
    }
}
