//! Files with several names (hard links): which of the other names are known, and how they affect a decision.
//!
//! For reading, a name is *known* if it lies in a place that a rule restricts: a file that is secret under one name is
//! secret under all. For writing, a name is *known* if it lies where writing is allowed, in the workspace and the paths
//! that settings add. A write happens in place, so it changes the file under all its names; only if all of them are
//! known does it affect no other user of the file. Package stores share files with every project, so reading such files
//! is ordinary, and writing to them asks.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use portcullis_decision::pattern::FilePattern;
use portcullis_decision::profile::FileRight;
use portcullis_decision::request::{Action, Attribute, Content, FileAccess, FileOperation, Origin, PathKind};
use portcullis_decision::{Caller, Effect, Grant, GrantPattern, Request, RuleSet, Ruling, path_text};
use portcullis_file_gate::{Identity, Inode, Located, Purpose, linked_files};
use portcullis_sandbox::FileId;
use serde_json::{Value, json};

use crate::effective_policy::Force;
use crate::paths;
use crate::session::Session;

/// Name of the attribute with the verdict on a file's other names: a JSON object with `effect` and `reason`.
const NAMES: &str = "host:names";
/// Id of the rule on hard links.
pub(crate) const HARD_LINKS: &str = "host.hard-links";

/// Facts about a file with several names that is to be written.
#[derive(Debug)]
pub(crate) struct Linked {
    /// The attribute for the request; `None` if the file is ordinary.
    pub(crate) attribute: Option<Attribute>,
    /// The file when its names were searched.
    pub(crate) identity: Identity,
}

/// Files with several names that rules restrict, each with effect and rule.
#[derive(Debug)]
pub(crate) struct KeptBack(HashMap<Inode, (Effect, String)>);

impl KeptBack {
    /// Finds the files that `force`'s rules keep from tools.
    pub(crate) fn of(force: &Force) -> Self {
        Self::by(&force.rules, Caller::Tool)
    }

    /// Returns the files that commands may not read.
    pub(crate) fn from_commands(rules: &RuleSet) -> Vec<FileId> {
        let kept = Self::by(rules, Caller::Command).0.into_keys().map(Inode::numbers);
        let mut kept: Vec<_> = kept.map(|(device, inode)| FileId { device, inode }).collect();
        // Sort, so that the same files give the same sandbox.
        kept.sort_by_key(|file| (file.device, file.inode));
        kept
    }

    fn by(all: &RuleSet, caller: Caller) -> Self {
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
        let files = linked_files(&tops);
        Self(files.into_iter().filter_map(|(file, path)| Some((file, answered(path)?))).collect())
    }

    pub(crate) fn holds(&self, file: Inode) -> bool {
        self.0.contains_key(&file)
    }
}

impl Session {
    /// Returns the attribute for a file to read, if reading it under another of its names is restricted.
    pub(crate) fn read_by_another_name(&self, force: &Force, located: &Located) -> Option<Attribute> {
        if !has_several(located) {
            return None;
        }
        let kept_back = KeptBack::of(force);
        let (effect, rule) = kept_back.0.get(&located.inode()?)?;
        let reason = format!("it is another name (hard link) of a file that the rule `{rule}` keeps back");
        Some(attribute(*effect, &reason))
    }

    /// Returns the facts about a file to write, or `None` if it has one name only.
    pub(crate) fn written_by_other_names(
        &self,
        force: &Force,
        located: &Located,
        operation: &FileOperation,
    ) -> Option<Linked> {
        if !has_several(located) {
            return None;
        }
        let tops: Vec<PathBuf> = self.roots().into_iter().chain([force.rules.base().temp.clone()]).collect();
        let names = force.gate.names_of(located, &tops).ok()?;
        let others = names.paths.iter().filter(|path| *path != located.canonical());
        let strictest = others
            .map(|path| {
                let reference = paths::reference(
                    &self.setup.context,
                    &path_text::encode(path),
                    path,
                    path,
                    PathKind::File,
                );
                let facts = located.facts();
                let action =
                    Action::File(FileAccess { path: reference, operation: operation.clone(), facts });
                let decision = self.decide(&self.request(Origin::Agent, action));
                (decision.effect(), decision.cause().reason.clone())
            })
            .max_by_key(|(effect, _)| *effect);
        let (total, known) = (names.count, names.paths.len());
        let attribute = match strictest {
            Some((effect @ (Effect::Ask | Effect::Deny), reason)) => Some(attribute(
                effect,
                &format!("it has other names (hard links), and for one of them {reason}"),
            )),
            Some((Effect::Allow, _)) | None if names.is_complete => None,
            Some((Effect::Allow, _)) | None => Some(attribute(
                Effect::Ask,
                &format!(
                    "it has {total} names (hard links), of which {known} lie where commands may write; the others would \
                     change with it"
                ),
            )),
        };
        Some(Linked { attribute, identity: names.identity })
    }

    /// Returns the attribute for a file that a command is about to write.
    pub(crate) fn other_names(&self, path: &Path) -> Option<Attribute> {
        let force = self.force();
        match force.gate.locate(path, Purpose::ForWriting) {
            Ok(located) => {
                let operation = FileOperation::Write(Content::Unknown);
                self.written_by_other_names(&force, &located, &operation)?.attribute
            }
            Err(_) => {
                Some(attribute(Effect::Ask, "it has other names (hard links), which could not be looked for"))
            }
        }
    }

    /// Returns the ruling that the file's other names add to the decision, if any.
    pub(crate) fn ruling_on_links(request: &Request, grants: &[Grant]) -> Option<Ruling> {
        let told = request.attributes.iter().find(|attribute| attribute.name == NAMES)?;
        let told: Value = serde_json::from_str(&told.value).unwrap_or_default();
        let is_denied = told.get("effect").and_then(Value::as_str) == Some("deny");
        if !is_denied && grants.iter().any(|grant| is_for_one_file(&grant.pattern) && grant.covers(request)) {
            return None;
        }
        Some(Ruling {
            effect: if is_denied { Effect::Deny } else { Effect::Ask },
            policy: "host".to_owned(),
            rule: HARD_LINKS.to_owned(),
            reason: told.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned(),
            setting: String::new(),
            conceal: false,
        })
    }
}

/// Returns true if a grant is for one file only.
pub(crate) fn is_for_one_file(pattern: &GrantPattern) -> bool {
    match pattern {
        GrantPattern::Exact(_) => true,
        GrantPattern::Path(path) => matches!(path.pattern, FilePattern::Exact(_)),
        GrantPattern::Command(_) | GrantPattern::Network(_) | GrantPattern::Tool(_) => false,
    }
}

fn has_several(located: &Located) -> bool {
    located.kind() == PathKind::File && located.facts().links > 1
}

fn attribute(effect: Effect, reason: &str) -> Attribute {
    let effect = if effect == Effect::Deny { "deny" } else { "ask" };
    Attribute { name: NAMES.to_owned(), value: json!({ "effect": effect, "reason": reason }).to_string() }
}
