//! The grants that can answer the questions of the host's own rules.

use std::path::Path;

use portcullis_exec_surface::{Change, Class, Rule, Site, Treatment, class};

use super::by_host::HOST;
use crate::pattern::FilePattern;
use crate::{Decision, GrantPattern};

/// Id of the rule on hard links.
pub const HARD_LINKS: &str = "host.hard-links";

/// Returns true if the host offers `pattern` as a grant for `decision`.
#[must_use]
pub fn is_offered(decision: &Decision, pattern: &GrantPattern) -> bool {
    if decision.policy() == HOST && decision.cause().rule == HARD_LINKS {
        return is_for_one_file(pattern);
    }
    let rule = portcullis_exec_surface::rule(&decision.cause().rule).filter(|_| decision.policy() == HOST);
    rule.is_none_or(|rule| may_be_granted(rule, pattern, &Site::without_files(Path::new("/"), &[])))
}

/// Returns true if a grant on paths also covers a name under `rule`.
///
/// A grant for a directory was given for other files in it, and no grant can cover content that the user has not seen.
pub(super) fn may_be_granted(rule: &Rule, pattern: &GrantPattern, site: &Site<'_>) -> bool {
    match pattern {
        GrantPattern::Exact(_) => true,
        GrantPattern::Path(granted) => match &granted.pattern {
            FilePattern::Exact(_) => rule.anywhere == Treatment::Asked,
            FilePattern::Tree(top) => {
                matches!(class(top, Change::Write, site), Class::Asked(own) if own == rule)
            }
            FilePattern::Glob(_) | FilePattern::Name { .. } => false,
        },
        GrantPattern::Command(_) | GrantPattern::Network(_) | GrantPattern::Tool(_) => false,
    }
}

/// Returns true if a grant is for one file only.
pub(super) fn is_for_one_file(pattern: &GrantPattern) -> bool {
    match pattern {
        GrantPattern::Exact(_) => true,
        GrantPattern::Path(path) => matches!(path.pattern, FilePattern::Exact(_)),
        GrantPattern::Command(_) | GrantPattern::Network(_) | GrantPattern::Tool(_) => false,
    }
}
