//! The paths that Portcullis always protects, whatever the settings say.
//!
//! Files that hold secrets are hidden from commands and refused to tools. Files that decide about the agent, or that
//! the user's other programs execute, are read-only. All are plain paths, so that mounts can enforce them.

use std::path::{Path, PathBuf};

use portcullis_decision::pattern::FilePattern;
use portcullis_decision::profile::FileRights;
use portcullis_decision::verdict::Effect;
use portcullis_settings_format::{ConfigError, HOOK_FILES, Layer};

use crate::disk::{Disk, follow};
use crate::places::Places;
use crate::protections::{
    Anchor, GIT_HOOKS, PROTECTIONS, ProtectedAccess, TOOLCHAIN_CREDENTIALS, TOOLCHAIN_SECRETS,
};
use crate::rule::Rule;
use crate::sensitive::{self, GNUPG, SENSITIVE};
use crate::writable::Writable;
use crate::{hook_links, own_git};

/// The context of the host's own rules; all paths are canonical.
pub(crate) struct HostRuleContext<'a> {
    pub(crate) places: &'a Places,
    pub(crate) workspace: &'a Path,
    pub(crate) homes: &'a [PathBuf],
    /// The workspace's repository, if it lies outside.
    pub(crate) git_directory: Option<&'a Path>,
    /// Directories in which commands could redirect links.
    pub(crate) writable: &'a Writable,
    pub(crate) disk: &'a dyn Disk,
}

impl HostRuleContext<'_> {
    /// Returns the host's own rules. `decisive` names further files that decide about the agent.
    pub(crate) fn rules(&self, decisive: &[PathBuf]) -> Result<Vec<Rule>, ConfigError> {
        let mut rules = Vec::new();
        self.agent_directories(&mut rules)?;
        for protection in PROTECTIONS {
            for anchor in self.anchors(protection.anchor) {
                for name in protection.names {
                    self.add(
                        &mut rules,
                        protection.id,
                        &anchor.join(name),
                        protection.kind,
                        protection.reason,
                    )?;
                }
            }
        }
        if let Some(repository) = self.git_directory {
            let reason = "your own git runs programs from it";
            self.add(&mut rules, GIT_HOOKS, &repository.join("hooks"), ProtectedAccess::Fixed, reason)?;
        }
        for source in own_git::sources(self.workspace, self.homes, self.disk)? {
            self.add(&mut rules, source.id, &source.path, source.kind, source.reason)?;
        }
        self.hooks(&mut rules)?;
        self.own_files(&mut rules, decisive)?;
        self.path_directories(&mut rules)?;
        let mut rules = links_last(rules);
        rules.extend(self.sensitive_files()?);
        Ok(rules)
    }

    /// Returns the rules that deny sensitive files. The exceptions come last, because the last matching rule wins.
    fn sensitive_files(&self) -> Result<Vec<Rule>, ConfigError> {
        let (mut denied, mut excepted) = (Vec::new(), Vec::new());
        for (home, entry) in
            self.homes.iter().flat_map(|home| SENSITIVE.iter().map(move |entry| (home, entry)))
        {
            let path = home.join(entry.path);
            self.add(&mut denied, entry.id, &path, ProtectedAccess::Hidden, &entry.reason())?;
            for directory in self.follow(&path)?.all() {
                excepted.extend(entry.exceptions(directory, self.disk));
            }
        }
        // Its agent can be started at any time, also for a signature that a command wants.
        if let Some(directory) = self.places.gnupg.as_ref().filter(|directory| self.is_apart(directory)) {
            let reason = sensitive::reason("your GnuPG keys", GNUPG);
            self.add(&mut denied, GNUPG, directory, ProtectedAccess::Hidden, &reason)?;
        }
        let in_path = self.places.path.iter().filter(|directory| directory.is_absolute());
        let in_path: Vec<PathBuf> = in_path
            .map(|directory| Ok(self.follow(directory)?.canonical))
            .collect::<Result<_, ConfigError>>()?;
        // A directory of programs alone is no package manager's own.
        for root in self.places.toolchains.iter().filter(|root| !in_path.contains(root)) {
            for name in TOOLCHAIN_SECRETS {
                let reason = sensitive::reason("credentials of a toolchain", TOOLCHAIN_CREDENTIALS);
                self.add(
                    &mut denied,
                    TOOLCHAIN_CREDENTIALS,
                    &root.join(name),
                    ProtectedAccess::Hidden,
                    &reason,
                )?;
            }
        }
        denied.extend(excepted);
        Ok(denied)
    }

    /// Returns true if the project and the homes lie outside of a directory.
    fn is_apart(&self, directory: &Path) -> bool {
        let mut own = std::iter::once(self.workspace).chain(self.homes.iter().map(PathBuf::as_path));
        directory.is_absolute() && !own.any(|own| own.starts_with(directory))
    }

    /// Protects an agent directory that lies inside the workspace (because the workspace is the home directory).
    ///
    /// A name that does not exist yet cannot be protected on its own, so no file can be created in the whole directory.
    /// These rules come first: the rules on single names are more specific.
    fn agent_directories(&self, rules: &mut Vec<Rule>) -> Result<(), ConfigError> {
        for directory in self.anchors(Anchor::Agent) {
            if self.follow(&directory)?.canonical.starts_with(self.workspace) {
                let reason = "the agent's settings and extensions lie in it";
                self.add(rules, "host.agent-directory", &directory, ProtectedAccess::FixedOutside, reason)?;
            }
        }
        Ok(())
    }

    /// Protects the targets of hook directories and of hooks that are links.
    ///
    /// They have a rule id of their own: in directories named `hooks` git creates samples, which commands may do as
    /// well.
    fn hooks(&self, rules: &mut Vec<Rule>) -> Result<(), ConfigError> {
        let repository = self.git_directory.map(|repository| repository.join("hooks"));
        let own: Vec<PathBuf> = [self.workspace.join(".git/hooks")].into_iter().chain(repository).collect();
        let mut directories = Vec::new();
        for rule in rules.iter_mut().filter(|rule| [GIT_HOOKS, HOOK_FILES].contains(&rule.id.as_str())) {
            let FilePattern::Tree(directory) = &rule.pattern else { continue };
            if !own.contains(directory) {
                HOOK_FILES.clone_into(&mut rule.id);
            }
            directories.push(directory.clone());
        }
        for hook in directories.iter().flat_map(|directory| hook_links::links(directory, self.disk)) {
            self.add(rules, HOOK_FILES, &hook, ProtectedAccess::Fixed, hook_links::REASON)?;
        }
        Ok(())
    }

    fn anchors(&self, anchor: Anchor) -> Vec<PathBuf> {
        match anchor {
            Anchor::Agent => {
                let mut anchors = vec![self.places.agent_directory.clone()];
                anchors.extend(self.homes.iter().map(|home| home.join(".pi/agent")));
                anchors
            }
            Anchor::Home => self.homes.to_vec(),
            Anchor::Workspace => vec![self.workspace.to_owned()],
            Anchor::Root => vec![PathBuf::from("/")],
        }
    }

    fn own_files(&self, rules: &mut Vec<Rule>, decisive: &[PathBuf]) -> Result<(), ConfigError> {
        let places = self.places;
        let id = "host.portcullis";
        self.add(
            rules,
            id,
            &places.state_directory,
            ProtectedAccess::Hidden,
            "it holds the log of what agents did",
        )?;
        let own = [&places.machine_directory, &places.cache_directory];
        for path in own.into_iter().chain(&places.programs).chain(decisive) {
            self.add(
                rules,
                id,
                path,
                ProtectedAccess::Fixed,
                "it decides what the agent may do, or is what decides",
            )?;
        }
        Ok(())
    }

    /// Protects the directories of PATH: the user may run a file written there as a command.
    fn path_directories(&self, rules: &mut Vec<Rule>) -> Result<(), ConfigError> {
        let holds_home = self.homes.iter().any(|home| home.starts_with(self.workspace));
        for directory in &self.places.path {
            let is_spared = |path: &Path| {
                // In a project below the home directory, its own tool directories are ordinary files.
                self.workspace.starts_with(path)
                    || self.places.temp.starts_with(path)
                    || path.starts_with(self.workspace) && !holds_home
            };
            if !directory.is_absolute() || is_spared(&self.follow(directory)?.canonical) {
                continue;
            }
            let reason = "programs are started from it by name";
            self.add(rules, "host.path-directories", directory, ProtectedAccess::FixedOutside, reason)?;
        }
        Ok(())
    }

    fn add(
        &self,
        rules: &mut Vec<Rule>,
        id: &str,
        path: &Path,
        kind: ProtectedAccess,
        reason: &str,
    ) -> Result<(), ConfigError> {
        crate::places::absolute(path, "a protected path")?;
        let followed = self.follow(path)?;
        let effect = |path: &Path| match kind {
            ProtectedAccess::FixedOutside if path.starts_with(self.workspace) => Effect::Ask,
            ProtectedAccess::Hidden | ProtectedAccess::Fixed | ProtectedAccess::FixedOutside => Effect::Deny,
        };
        let mut put = |pattern, rights, effect, reason: String| {
            let (id, layer) = (id.to_owned(), Layer::Host);
            let rule = Rule { layer, id, pattern, rights, effect, reason, origin: None };
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        };
        for path in followed.all() {
            // `~/.npmrc` is often a link to `/dev/null`, which is empty and needed by all programs.
            if ["/dev", "/proc", "/sys"].iter().any(|top| path.starts_with(top)) || *path == Path::new("/") {
                continue;
            }
            let rights = if kind == ProtectedAccess::Hidden { FileRights::ALL } else { FileRights::WRITE };
            put(FilePattern::Tree(path.clone()), rights, effect(path), reason.to_owned());
        }
        // Protect the links on the way: redirecting one replaces the file behind it. A link that is the whole name is
        // covered already.
        for link in followed.links.iter().filter(|link| link.at != link.name) {
            if self.writable.holds(&link.at) {
                let reason = format!("it is a link on the way to `{}`, and {reason}", path.display());
                put(FilePattern::Exact(link.at.clone()), FileRights::WRITE, effect(&link.at), reason);
            }
        }
        Ok(())
    }

    fn follow(&self, path: &Path) -> Result<crate::disk::Followed, ConfigError> {
        follow(path, self.disk).map_err(|source| ConfigError::Path { path: path.to_owned(), source })
    }
}

/// Moves the rules on links behind all others, so that no other rule opens a link again.
///
/// Among them, those that ask come first, so that none of these opens a link that another rule refuses.
fn links_last(rules: Vec<Rule>) -> Vec<Rule> {
    let is_link = |rule: &Rule| matches!(rule.pattern, FilePattern::Exact(_));
    let (links, mut rules): (Vec<Rule>, Vec<Rule>) = rules.into_iter().partition(is_link);
    let (refused, asked): (Vec<Rule>, Vec<Rule>) =
        links.into_iter().partition(|link| link.effect == Effect::Deny);
    let is_refused = |link: &Rule| {
        let (FilePattern::Exact(link) | FilePattern::Tree(link)) = &link.pattern else { return false };
        let covers = |rule: &Rule| matches!(&rule.pattern, FilePattern::Tree(top) if link.starts_with(top));
        rules.iter().any(|rule| rule.effect == Effect::Deny && covers(rule))
    };
    let asked: Vec<Rule> = asked.into_iter().filter(|link| !is_refused(link)).collect();
    rules.extend(asked.into_iter().chain(refused));
    rules
}

#[cfg(test)]
mod tests {
    use portcullis_settings_format::LIFTABLE;

    use super::*;

    #[test]
    fn all_but_what_decides_about_the_agent_can_be_lifted() {
        let mut ids: Vec<&str> = PROTECTIONS.iter().map(|protection| protection.id).collect();
        ids.extend(portcullis_exec_surface::RULES.iter().map(|rule| rule.id));
        ids.extend(SENSITIVE.iter().map(|entry| entry.id));
        ids.extend(["host.path-directories", HOOK_FILES]);
        ids.sort_unstable();
        ids.dedup();
        ids.retain(|id| !["host.agent-settings", "host.project-agent-settings"].contains(id));
        assert_eq!(LIFTABLE, ids);
    }
}
