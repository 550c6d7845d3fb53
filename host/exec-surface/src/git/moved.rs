//! Judges files that contain relative paths again when they move.
//!
//! A relative path starts from the position of its file: moved to another depth, it leads elsewhere.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::path::Path;

use super::config_text;
use super::content::Content;
use super::finding::{Finding, Judgement, asks, shown};
use super::judge::judge;
use super::pointers::climbs;
use crate::site::Site;

/// Names of the files with such paths.
const LEADING: [&str; 6] = [".git", "alternates", "commondir", "config", "config.worktree", "gitdir"];

/// Returns true if a file with this name may be one for which [`Content::leads`].
#[must_use]
pub fn may_lead(name: &OsStr) -> bool {
    LEADING.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Judges a text that moves from `from` to `to` with a directory around it.
///
/// A text that the user has accepted at `from` passes, unless a path in it leads upwards from there.
#[must_use]
pub fn judge_moved(content: Content, (from, to): (&Path, &Path), text: &[u8], site: &Site<'_>) -> Judgement {
    if !content.leads() {
        return Judgement::Harmless;
    }
    let mut findings = match judge(content, to, None, text, site) {
        Judgement::Asks(findings) => findings,
        judgement @ (Judgement::Harmless | Judgement::Unreadable(_)) => return judgement,
    };
    let Judgement::Asks(known) = judge(content, from, None, text, site) else { return asks(findings) };
    let known: HashSet<Finding> = known.into_iter().collect();
    let climbing = Climbing::find(content, text);
    findings.retain(|finding| !known.contains(finding) || climbing.holds(finding));
    asks(findings)
}

/// The upward paths in a text.
#[derive(Default)]
struct Climbing {
    /// Keys as findings show them: one upward value of a key suffices, whichever value is reported.
    keys: BTreeSet<String>,
    lines: BTreeSet<usize>,
}

impl Climbing {
    fn find(content: Content, text: &[u8]) -> Self {
        if content == Content::Config {
            let entries = config_text::parse(text).unwrap_or_default();
            let climbing = entries.iter().filter(|entry| entry.value.as_deref().is_some_and(climbs));
            return Self { keys: climbing.map(|entry| shown(&entry.name)).collect(), ..Self::default() };
        }
        let lines = text.split(|byte| *byte == b'\n').zip(1..);
        let lines = lines.filter(|(line, _)| climbs(line)).map(|(_, number)| number).collect();
        Self { lines, ..Self::default() }
    }

    fn holds(&self, finding: &Finding) -> bool {
        match &finding.key {
            Some(key) => self.keys.contains(key),
            None => self.lines.contains(&finding.line),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::{Change, Class, class};

    fn climbs(content: Content, from: &str, to: &str, text: &str) -> usize {
        let roots = [PathBuf::from("/w")];
        let site = Site::without_files(&roots[0], &roots);
        match judge_moved(content, (Path::new(from), Path::new(to)), text.as_bytes(), &site) {
            Judgement::Harmless => 0,
            Judgement::Asks(findings) => findings.len(),
            Judgement::Unreadable(why) => panic!("{why}"),
        }
    }

    #[test]
    fn addresses_lead_elsewhere_from_another_depth() {
        let climbs = |from: &str, to: &str, values: &str| {
            let text = format!("[remote \"o\"]\n{values}");
            climbs(Content::Config, from, to, &text)
        };
        let (deep, top) = ("/w/a/b/r/.git/config", "/w/r/.git/config");
        assert_eq!(climbs(deep, top, "url = ../../../x\n"), 1);
        assert_eq!(climbs(deep, top, "pushurl = ../../../x\n"), 1);
        assert_eq!(climbs(deep, top, "url = ../x\n"), 0, "it leads into the workspace there, too");
        assert_eq!(climbs(top, "/w/a/r/.git/config", "url = ../x\n"), 0);
        assert_eq!(climbs(deep, "/w/b.git/config", "url = ../../../x\n"), 1);
        assert_eq!(climbs("/w/b.git/config", "/w/.git/config", "url = ../x\n"), 1, "from the working tree");
        // Values that the user has accepted there.
        assert_eq!(climbs(deep, top, "url = /u/x\nurl = ~/x\nvcs = x\n"), 0);
        assert_eq!(climbs(deep, top, "url = ../../../../x\n"), 1, "another one outside");
        assert_eq!(climbs(deep, top, "url = /u/x\nurl = ../../../x\n"), 1, "one of several values");
    }

    #[test]
    fn working_trees_lead_elsewhere_from_another_depth() {
        let climbs = |from: &str, to: &str, text: &str| climbs(Content::Config, from, to, text);
        let (deep, flat) = ("/w/.git/modules/a/b/c/config", "/w/.git/modules/m/config");
        assert_eq!(climbs(deep, flat, "[core]\nworktree = ../../../../..\n"), 1);
        assert_eq!(climbs(deep, flat, "[core]\nworktree = /w/m\n"), 0);
        assert_eq!(climbs(flat, "/w/m/.git/config", "[core]\nworktree = /w/m\n"), 1, "no submodule any more");
    }

    #[test]
    fn a_file_of_settings_may_come_to_be_another() {
        let climbs = |text: &str| climbs(Content::Config, "/w/r/.git/config", "/w/a/r/.git/config", text);
        assert_eq!(climbs("[include]\npath = ../../../mine\n"), 1);
        assert_eq!(climbs("[include]\npath = mine\n[core]\nfsmonitor = ./x\n[alias]\nst = status\n"), 0);
    }

    #[test]
    fn pointers_and_lenders_lead_elsewhere_from_another_depth() {
        let (file, lent) = (Content::GitFile, Content::Alternates);
        let module = "gitdir: ../../.git/modules/m\n";
        assert_eq!(climbs(file, "/w/a/m/.git", "/w/m/.git", module), 1);
        assert_eq!(climbs(file, "/w/a/m/.git", "/w/b/m/.git", module), 0);
        let outside = "gitdir: /u/.git/worktrees/x\n";
        assert_eq!(climbs(file, "/w/a/x/.git", "/w/x/.git", outside), 0, "as the user made it");
        let (deep, top) = ("/w/a/b/r/.git/objects/info/alternates", "/w/r/.git/objects/info/alternates");
        assert_eq!(climbs(lent, deep, top, "../../../../../x\n/u/objects\n"), 1);
        assert_eq!(climbs(lent, deep, top, "/u/objects\n"), 0);
        let (own, no_worktree) = ("/w/.git/worktrees/a/commondir", "/w/.git/modules/a/commondir");
        assert_eq!(climbs(Content::CommonDirectory, own, no_worktree, "../..\n"), 1);
    }

    #[test]
    fn all_names_are_known() {
        let roots = [PathBuf::from("/w")];
        let site = Site { exists: &|_| true, ..Site::without_files(&roots[0], &roots) };
        let known: Vec<Content> = [
            "/w/.git",
            "/w/.git/config",
            "/w/.git/config.worktree",
            "/w/.git/worktrees/a/commondir",
            "/w/.git/worktrees/a/gitdir",
            "/w/.git/objects/info/alternates",
        ]
        .into_iter()
        .filter(|path| Path::new(path).file_name().is_some_and(may_lead))
        .filter_map(|path| {
            let class = class(Path::new(path), Change::Install, &site);
            if let Class::Judged(_, content) = class { Some(content) } else { None }
        })
        .collect();
        assert!(known.len() == LEADING.len() && known.into_iter().all(Content::leads));
    }
}
