//! The rule set as the sandbox broker uses it, for single names.

use std::path::{Path, PathBuf};

use portcullis_decision::pattern::FilePattern;
use portcullis_decision::profile::{FileRight, FileRule};
use portcullis_decision::rules::{Caller, DataError, RuleData};
use portcullis_decision::{Base, Effect, RuleSet};
use portcullis_sandbox::{FileId, Judgement, NameRules, Names, Reads};
use portcullis_settings_format::Layer;

use crate::replaceable_paths::{ReplaceablePaths, Surveyed};
use crate::sandbox_subject;
use crate::user_links::UserLinks;

/// Id of the rule that protects hooks, which denies tools the whole directory.
const GIT_HOOKS: &str = "host.git-hooks";

/// Returns the rules on names for commands, in addition to the places of their profile.
///
/// `reads` says whether rules on reading apply; places do not cover these if they are patterns or name missing files.
/// `kept_back` are files that commands cannot read under any name.
pub fn name_rules(
    Surveyed { rules, loose, .. }: Surveyed<'_>,
    (homes, links): (&[PathBuf], &UserLinks),
    lifted: &[String],
    reads: Reads,
    kept_back: Vec<FileId>,
) -> Result<NameRules, DataError> {
    let base = rules.base();
    // Otherwise a file that must not be read could be read under another name.
    let is_free = |place: &&PathBuf| {
        let restricts = |right| rules.restricts_below(place, right);
        !restricts(FileRight::Write) && (reads == Reads::Free || !restricts(FileRight::Read))
    };
    let spared = [&base.temp].into_iter().chain(&base.own.directories).filter(is_free).cloned().collect();
    let data = rules.data().without(Layer::Host.name(), is_gits_own).with_missing(loose.missing());
    // Without a workspace no name can be in it.
    let workspace = rules.base().workspace.first().cloned().unwrap_or_else(|| PathBuf::from("/"));
    let (homes, lifted) = (homes.to_vec(), lifted.to_vec());
    let (links, leading_nowhere) = (links.named.clone(), links.nowhere.clone());
    let data = data.encode()?;
    Ok(NameRules { data, workspace, homes, spared, lifted, links, leading_nowhere, reads, kept_back })
}

/// Returns true if a rule protects the hook directory that git itself creates, with samples.
///
/// The broker can tell the samples from hooks. Any other hook directory was named by the user, and a link is not git's
/// own directory.
fn is_gits_own(rule: &FileRule) -> bool {
    let FilePattern::Tree(path) = &rule.pattern else { return false };
    let is_link = || path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    rule.id == GIT_HOOKS && path.ends_with(".git/hooks") && !is_link()
}

/// Returns the rules on names for commands without policy rules, so that `base` decides.
///
/// # Errors
/// Never in a build whose tests pass.
pub fn plain_name_rules(base: Base) -> Result<NameRules, DataError> {
    without_rules(base, Reads::Free)
}

fn without_rules(base: Base, reads: Reads) -> Result<NameRules, DataError> {
    let rules = RuleSet::compile(Vec::new(), base, &[]);
    let places = rules.places();
    let loose = ReplaceablePaths::among(&places, rules.base());
    let surveyed = Surveyed { rules: &rules, places: &places, loose: &loose };
    name_rules(surveyed, (&[], &UserLinks::default()), &[], reads, Vec::new())
}

/// Returns the judge of names for a sandbox's broker, or `None` if the data do not come from [`RuleSet::data`].
#[must_use]
pub fn make_names(data: &[u8]) -> Option<Box<dyn Names>> {
    let data = RuleData::decode(data).ok()?;
    let missing = data.missing().ok()?;
    let rules = data.compile().ok()?;
    let plain = sandbox_subject::plain_places(&rules);
    Some(Box::new(RuleNames { rules, missing, plain }))
}

/// The rule set, and the writable paths that no mount shows.
struct RuleNames {
    rules: RuleSet,
    missing: Vec<PathBuf>,
    plain: Vec<PathBuf>,
}

impl RuleNames {
    fn is_missing(&self, path: &Path) -> bool {
        self.missing.iter().any(|missing| path.starts_with(missing))
    }

    fn is_seen(&self, path: &Path) -> bool {
        self.rules.answer(path, FileRight::Read, Caller::Command).effect == Effect::Allow
    }
}

impl Names for RuleNames {
    fn judge(&self, path: &Path) -> Judgement {
        let answer = self.rules.answer(path, FileRight::Write, Caller::Command);
        match answer.effect {
            // The host knows that this is allowed, and does it in its own view.
            Effect::Allow if self.is_missing(path) => Judgement::Asked,
            Effect::Allow => Judgement::Free,
            // Commands cannot see it, so there is no question about it.
            Effect::Ask if answer.is_of_the_base() && !self.is_seen(path) => Judgement::Refused,
            Effect::Ask => Judgement::Asked,
            Effect::Deny => Judgement::Refused,
        }
    }

    fn judge_reading(&self, path: &Path) -> Judgement {
        let answer = self.rules.answer(path, FileRight::Read, Caller::Command);
        match answer.effect {
            // Without a rule, commands can read the files that the mounts show.
            Effect::Allow => Judgement::Free,
            Effect::Ask if answer.is_of_the_base() => Judgement::Free,
            Effect::Ask => Judgement::Asked,
            Effect::Deny => Judgement::Refused,
        }
    }

    fn is_plain(&self, path: &Path) -> bool {
        self.plain.iter().any(|place| path.starts_with(place))
    }

    fn is_own(&self, path: &Path) -> bool {
        self.rules.base().is_own(path)
    }

    fn is_alike_below(&self, one: &Path, other: &Path) -> bool {
        self.rules.is_alike_below(one, other)
    }

    fn restricts_alike_below(&self, path: &Path, other: &Path) -> bool {
        self.rules.restricts_alike_below(path, other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_git_makes_itself_is_left_to_the_broker() {
        let place = tempfile::tempdir().unwrap();
        let at = |path: &str| place.path().join(path);
        std::fs::create_dir_all(at("real/.git/hooks")).unwrap();
        std::fs::create_dir_all(at("linked/.git")).unwrap();
        std::os::unix::fs::symlink("../tools", at("linked/.git/hooks")).unwrap();
        let rule = |pattern: FilePattern| FileRule {
            id: GIT_HOOKS.to_owned(),
            pattern,
            rights: portcullis_decision::profile::FileRights::WRITE,
            effect: Effect::Deny,
            conceal: false,
            condition: String::new(),
            reason: String::new(),
            setting: String::new(),
        };
        for (path, left) in [
            ("real/.git/hooks", true),
            ("new/.git/hooks", true),
            ("linked/.git/hooks", false),
            ("scripts/hooks", false),
            (".husky/_", false),
        ] {
            assert_eq!(is_gits_own(&rule(FilePattern::Tree(at(path)))), left, "{path}");
        }
        assert!(!is_gits_own(&rule(FilePattern::Exact(at("real/.git/hooks")))));
    }

    #[test]
    fn the_broker_says_what_the_rules_say() {
        let base = Base {
            workspace: vec!["/w".into()],
            temp: "/tmp".into(),
            closed: vec!["/home".into()],
            ..Base::default()
        };
        let rules = without_rules(base, Reads::Judged).unwrap();
        assert_eq!(rules.spared, [Path::new("/tmp")]);
        let names = make_names(&rules.data).unwrap();
        let judge = |path: &str| names.judge(Path::new(path));
        assert_eq!(judge("/w/a"), Judgement::Free);
        assert_eq!(judge("/etc/a"), Judgement::Asked);
        assert_eq!(judge("/home/a"), Judgement::Refused);
        // No rule is on reading it, so the mounts decide.
        assert_eq!(names.judge_reading(Path::new("/home/a")), Judgement::Free);
        assert!(make_names(b"[]").is_none());
    }
}
