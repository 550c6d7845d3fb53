//! Rule sets for tests, and what commands can do under their profiles.

use std::path::PathBuf;

use portcullis_decision::grant::{GrantPattern, GrantScope, PathPattern};
use portcullis_decision::pattern::FilePattern;
use portcullis_decision::profile::{FileRights, FileRule, Profile};
use portcullis_decision::{Effect, Grant, RuleLayer, RuleSet};

pub(crate) fn paths(list: &[&str]) -> Vec<PathBuf> {
    list.iter().map(PathBuf::from).collect()
}

pub(crate) fn rule(effect: Effect, pattern: FilePattern, rights: FileRights) -> FileRule {
    FileRule {
        id: format!("{effect} {pattern}"),
        pattern,
        rights,
        effect,
        conceal: false,
        condition: String::new(),
        reason: String::new(),
        setting: String::new(),
    }
}

pub(crate) fn layer(name: &str, tightens: bool, files: Vec<FileRule>) -> RuleLayer {
    RuleLayer { name: name.to_owned(), tightens, profile: Profile { files, ..Profile::default() } }
}

pub(crate) fn grant(pattern: FilePattern, rights: FileRights) -> Grant {
    Grant {
        scope: GrantScope::Session,
        pattern: GrantPattern::Path(PathPattern { pattern, rights }),
        granted_at: 0,
        expires_at: 0,
    }
}

/// Returns a rule set as text, for a failed test.
pub(crate) fn shown(rules: &RuleSet) -> String {
    let mut text = format!("{:#?}", rules.base());
    for layer in rules.layers() {
        text.push_str(&format!("\nlayer, tightens: {}\n", layer.tightens));
        for rule in &layer.profile.files {
            text.push_str(&format!("  {:?} {:?} {:?}\n", rule.id, rule.rights, rule.condition));
        }
    }
    rules.granted().for_each(|(pattern, rights)| text.push_str(&format!("grant {pattern} {rights:?}\n")));
    text
}
