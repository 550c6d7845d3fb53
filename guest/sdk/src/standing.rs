//! Queries on a profile: in every list the last matching rule answers.

use crate::{Endpoint, FileRights, FileRule, GlobError, NetworkRule, Profile};

/// A right on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Right {
    /// See it, list it, read it.
    Read,
    /// Create, change, rename, remove, link, change metadata.
    Write,
    /// Execute it.
    Execute,
}

impl Profile {
    /// Returns the rule that answers for a path and a right; `None` for no opinion.
    ///
    /// A rule with a condition that only the host can check is skipped if it allows and applied otherwise, as by a host
    /// that cannot check it.
    ///
    /// # Errors
    ///
    /// If a candidate rule contains a malformed glob.
    pub fn file_rule(&self, path: &str, right: Right) -> Result<Option<&FileRule>, GlobError> {
        for rule in self.files.iter().rev().filter(|rule| rule.rights.contains(right.into())) {
            let counts = rule.condition.is_empty() || rule.effect != crate::Effect::Allow;
            if counts && rule.pattern.matches(path)? {
                return Ok(Some(rule));
            }
        }
        Ok(None)
    }

    /// Returns the rule that answers for a connection of a program, given by its path; `None` for no opinion.
    pub fn network_rule(&self, target: &Endpoint, port: u16, program: &str) -> Option<&NetworkRule> {
        let name = program.rsplit('/').next().unwrap_or(program);
        self.network.iter().rev().find(|rule| {
            let named = rule.program == "*" || rule.program == program || rule.program == name;
            named && rule.target.matches(target, port)
        })
    }
}

impl From<Right> for FileRights {
    fn from(right: Right) -> Self {
        match right {
            Right::Read => Self::READ,
            Right::Write => Self::WRITE,
            Right::Execute => Self::EXECUTE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FilePattern, NetworkPattern};

    #[test]
    fn the_last_rule_answers_for_each_right() {
        let profile = Profile::new()
            .file(FileRule::allow("work", FilePattern::tree("/w"), FileRights::READ_WRITE))
            .file(FileRule::deny("licence", FilePattern::exact("/w/LICENSE"), FileRights::WRITE));
        let id = |path, right| profile.file_rule(path, right).unwrap().map(|rule| rule.id.as_str());
        assert_eq!(id("/w/LICENSE", Right::Write), Some("licence"));
        assert_eq!(id("/w/LICENSE", Right::Read), Some("work"));
        assert_eq!(id("/w/LICENSE", Right::Execute), None);
        assert_eq!(id("/x", Right::Read), None);
    }

    #[test]
    fn a_condition_nobody_can_see_never_allows() {
        let git = FilePattern::exact("/w/.git/config");
        let profile = Profile::new()
            .file(FileRule::deny("git.config", git.clone(), FileRights::WRITE))
            .file(FileRule::allow("git.safe", git, FileRights::WRITE).condition("git-config-safe"));
        let rule = profile.file_rule("/w/.git/config", Right::Write).unwrap();
        assert_eq!(rule.map(|rule| rule.id.as_str()), Some("git.config"));
    }

    #[test]
    fn programs_by_path_or_name() {
        let everything = NetworkPattern::everything();
        let profile = Profile::new()
            .network(NetworkRule::deny("all", everything.clone()))
            .network(NetworkRule::allow("curl", everything).program("curl"));
        let host = Endpoint::Domain("a.test".into());
        let id = |program| profile.network_rule(&host, 1, program).map(|rule| rule.id.as_str());
        assert_eq!(id("/usr/bin/curl"), Some("curl"));
        assert_eq!(id("/usr/bin/wget"), Some("all"));
    }
}
