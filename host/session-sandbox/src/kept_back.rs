//! Hidden files with several names (hard links), which must not be read under any of them.

use std::collections::HashMap;
use std::path::PathBuf;

use portcullis_decision::pattern::FilePattern;
use portcullis_decision::profile::FileRight;
use portcullis_decision::{Caller, Effect, RuleSet};
use portcullis_file_gate::{Inode, linked_files};
use portcullis_sandbox::FileId;

use crate::own_directories::OwnDirectories;

/// Files with several names that rules restrict, each with effect and rule.
#[derive(Debug)]
pub struct KeptBack(HashMap<Inode, (Effect, String)>);

impl KeptBack {
    /// Finds the files that tools may not read.
    pub fn from_tools(rules: &RuleSet, own: &OwnDirectories) -> Self {
        Self::by(rules, own, Caller::Tool)
    }

    /// Returns the files that commands may not read.
    pub fn from_commands(rules: &RuleSet, own: &OwnDirectories) -> Vec<FileId> {
        let kept = Self::by(rules, own, Caller::Command).0.into_keys().map(Inode::numbers);
        let mut kept: Vec<_> = kept.map(|(device, inode)| FileId { device, inode }).collect();
        // Sort, so that the same files give the same sandbox.
        kept.sort_by_key(|file| (file.device, file.inode));
        kept
    }

    /// The private homes are left out: each is a mount of its own to the commands that write there, so no file outside
    /// has another name in them. They are also much larger than places with secrets.
    fn by(all: &RuleSet, own: &OwnDirectories, caller: Caller) -> Self {
        let rules = all.layers().iter().flat_map(|layer| &layer.profile.files);
        let denied =
            rules.filter(|rule| rule.effect == Effect::Deny && rule.rights.contains(FileRight::Read));
        let tops: Vec<PathBuf> = denied
            .filter_map(|rule| match &rule.pattern {
                FilePattern::Exact(top) | FilePattern::Tree(top) => Some(top.clone()),
                FilePattern::Glob(_) | FilePattern::Name { .. } => None,
            })
            .collect();
        let answered = |path: PathBuf| {
            let answer = all.answer(&path, FileRight::Read, caller);
            (answer.effect == Effect::Deny).then(|| (answer.effect, answer.rule.to_owned()))
        };
        let files = linked_files(&tops, own.homes());
        Self(files.into_iter().filter_map(|(file, path)| Some((file, answered(path)?))).collect())
    }

    /// Returns effect and rule for a file.
    pub fn ruling(&self, file: Inode) -> Option<(Effect, &str)> {
        self.0.get(&file).map(|(effect, rule)| (*effect, rule.as_str()))
    }

    /// Returns true if this file is kept back.
    #[must_use]
    pub fn holds(&self, file: Inode) -> bool {
        self.0.contains_key(&file)
    }
}
