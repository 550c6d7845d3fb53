//! The verdicts of the host on the variables that come with every command, kept from one command to the next.

use std::sync::{Arc, Mutex, PoisonError};

use crate::environment::withheld;

/// The answers for the variables of the last command. A caller gives the same ones with nearly every command, and to
/// look through the lists for each takes many times as long as to see that.
#[derive(Default)]
pub(crate) struct EnvVerdictCache(Mutex<Known>);

// No `Debug`: there are secrets among them, as in what they come from, the environment of the host itself.
#[derive(Default)]
struct Known {
    variables: Vec<(String, String)>,
    harmless: Arc<[bool]>,
}

impl EnvVerdictCache {
    /// Returns for each of `variables` whether the lists let it through.
    pub(crate) fn of(&self, variables: &[(String, String)]) -> Arc<[bool]> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.variables != variables {
            let harmless = variables.iter().map(|(name, value)| withheld(name, value).is_none()).collect();
            *known = Known { variables: variables.to_vec(), harmless };
        }
        Arc::clone(&known.harmless)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_are_those_for_what_is_given_now() {
        let known = EnvVerdictCache::default();
        let all = [("HOME", "/h"), ("TOKEN", "x"), ("A", "ghp_x"), ("A", "b"), ("LD_PRELOAD", "/x")];
        let all = all.map(|(name, value)| (name.to_owned(), value.to_owned()));
        for given in [&all[..], &all, &all[..3], &all[3..], &[], &all[2..4], &[], &all[1..2], &all[3..4]] {
            let expected: Vec<bool> =
                given.iter().map(|(name, value)| withheld(name, value).is_none()).collect();
            assert_eq!(*known.of(given), *expected, "{given:?}");
        }
    }
}
