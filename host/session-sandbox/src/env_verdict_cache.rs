//! Cache of the host's verdicts on inherited environment variables, kept between commands.

use std::sync::{Arc, Mutex, PoisonError};

use crate::environment::withheld;

/// The verdicts for the variables of the last command.
///
/// A caller passes the same variables with nearly every command, and comparing them is much faster than checking each
/// one against the lists.
#[derive(Default)]
pub struct EnvVerdictCache(Mutex<Known>);

// Like the host's environment, the variables contain secrets.
impl std::fmt::Debug for EnvVerdictCache {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("EnvVerdictCache").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Known {
    variables: Vec<(String, String)>,
    harmless: Arc<[bool]>,
}

impl EnvVerdictCache {
    /// Returns for each variable whether commands get it by default.
    pub fn verdicts(&self, variables: &[(String, String)]) -> Arc<[bool]> {
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
            assert_eq!(*known.verdicts(given), *expected, "{given:?}");
        }
    }
}
