//! Applies the file rules of its configuration, and has no opinion on anything else:
//! `{"rules": [{"tree": "/srv", "rights": "rx", "effect": "allow"}]}`.

use portcullis_sdk::{
    ConfigError, Context, Descriptor, Effect, FilePattern, FileRights, FileRule, Policy, Profile,
};
use serde::Deserialize;

const RULE: &str = "file-rules.rule";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRules {
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    tree: Option<String>,
    exact: Option<String>,
    glob: Option<String>,
    /// Letters of `rwx`; empty for a rule without rights.
    rights: String,
    effect: Word,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Allow,
    Ask,
    Deny,
}

impl Policy for FileRules {
    type Config = Self;

    fn describe() -> Descriptor {
        Descriptor::new("test:file-rules", "0.1.0", "Has the file rules of its configuration")
            .rule(RULE, "The configuration says so")
    }

    fn configure(config: Self) -> Result<Self, Vec<ConfigError>> {
        Ok(config)
    }

    fn standing(&self, _context: &Context) -> Profile {
        self.rules.iter().fold(Profile::new(), |profile, rule| match rule.file_rule() {
            Some(rule) => profile.file(rule),
            None => profile,
        })
    }
}

impl Rule {
    fn file_rule(&self) -> Option<FileRule> {
        let pattern = match (&self.tree, &self.exact, &self.glob) {
            (Some(tree), None, None) => FilePattern::tree(tree),
            (None, Some(exact), None) => FilePattern::exact(exact),
            (None, None, Some(glob)) => FilePattern::glob(glob),
            _ => return None,
        };
        let rights = self.rights.chars().fold(FileRights::empty(), |rights, letter| match letter {
            'r' => rights | FileRights::READ,
            'w' => rights | FileRights::WRITE,
            'x' => rights | FileRights::EXECUTE,
            _ => rights,
        });
        let effect = match self.effect {
            Word::Allow => Effect::Allow,
            Word::Ask => Effect::Ask,
            Word::Deny => Effect::Deny,
        };
        Some(FileRule::new(RULE, pattern, rights, effect))
    }
}

portcullis_sdk::export_policy!(FileRules);
