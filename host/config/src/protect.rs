//! The paths that Portcullis always protects, whatever the settings say.
//!
//! Files that hold secrets are hidden from commands and refused to tools. Files that decide about the agent, or that
//! the user's other programs execute, are read-only. All are plain paths, so that mounts can enforce them.

use std::path::{Path, PathBuf};

use portcullis_decision::pattern::FilePattern;
use portcullis_decision::profile::FileRights;
use portcullis_decision::verdict::Effect;
use portcullis_exec_surface::{PROJECT_AGENT_NAMES, PROJECT_AGENT_SETTINGS};

use crate::disk::{Disk, follow};
use crate::error::ConfigError;
use crate::hook_links::{self, HOOK_FILES};
use crate::own_git;
use crate::places::Places;
use crate::rule::Rule;
use crate::sensitive::{self, SENSITIVE};
use crate::tighten::Layer;
use crate::writable::Writable;

/// A group of protected names.
#[derive(Debug, Clone, Copy)]
pub struct Protection {
    /// The id of its rules.
    pub id: &'static str,
    /// The directory that the names are relative to.
    pub anchor: Anchor,
    /// The names, relative to the anchor.
    pub names: &'static [&'static str],
    /// The access that is refused.
    pub kind: Kind,
    /// One sentence for the user.
    pub reason: &'static str,
}

/// The directory that protected names are relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// The agent's directory, and its usual path.
    Agent,
    /// The caller's home directories.
    Home,
    /// The working directory.
    Workspace,
    /// The root of the file system.
    Root,
}

/// The access that a protection refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reading and writing.
    Hidden,
    /// Writing.
    Fixed,
    /// Writing outside the workspace; inside it, writing asks.
    ///
    /// So users who start the agent in their home directory can have these files edited.
    FixedOutside,
}

/// All protected names that are known in advance.
pub const PROTECTIONS: &[Protection] = &[
    Protection {
        id: "host.agent-secrets",
        anchor: Anchor::Agent,
        names: &[
            "auth.json",
            "mcp-auth.json",
            "mcp-oauth",
            "mcp.json",
            "models-store.json",
            "models.json",
            "oauth.json",
        ],
        kind: Kind::Hidden,
        reason: "it holds the agent's credentials",
    },
    Protection {
        id: "host.agent-sessions",
        anchor: Anchor::Agent,
        names: &["crashes.json", "mcp.log", "pi-debug.log", "sessions"],
        kind: Kind::Hidden,
        reason: "it holds what was said and done in sessions of other projects",
    },
    Protection {
        id: "host.system-secrets",
        anchor: Anchor::Root,
        names: &[
            "etc/NetworkManager/system-connections",
            "etc/gshadow",
            "etc/gshadow-",
            "etc/krb5.keytab",
            "etc/shadow",
            "etc/shadow-",
            "etc/ssh/ssh_host_dsa_key",
            "etc/ssh/ssh_host_ecdsa_key",
            "etc/ssh/ssh_host_ed25519_key",
            "etc/ssh/ssh_host_rsa_key",
            "etc/ssl/private",
            "etc/wireguard",
        ],
        kind: Kind::Hidden,
        reason: "it holds the machine's own passwords and keys",
    },
    Protection {
        id: "host.agent-settings",
        anchor: Anchor::Agent,
        names: &[
            "AGENTS.md",
            "APPEND_SYSTEM.md",
            "SYSTEM.md",
            "bin",
            "extensions",
            "git",
            "hooks",
            "keybindings.json",
            "node_modules",
            "npm",
            "package-lock.json",
            "package.json",
            "sandbox",
            "sandbox.json",
            "settings.json",
            "tmp",
            "tools",
            "trust.json",
        ],
        kind: Kind::Fixed,
        reason: "it decides what the agent is and may do",
    },
    Protection {
        id: PROJECT_AGENT_SETTINGS.id,
        anchor: Anchor::Workspace,
        names: PROJECT_AGENT_NAMES,
        kind: Kind::Fixed,
        reason: PROJECT_AGENT_SETTINGS.reason,
    },
    // The rule of the same id over names covers the hooks of any repository at any depth, except git's samples, but
    // needs a broker that checks each name. Without a broker, a mount makes this one path read-only. The broker does
    // not get this rule, or git could not create its samples.
    Protection {
        id: GIT_HOOKS,
        anchor: Anchor::Workspace,
        names: &[".git/hooks"],
        kind: Kind::Fixed,
        reason: "your own git runs programs from it",
    },
    Protection {
        id: "host.keys",
        anchor: Anchor::Home,
        names: &[".gnupg", ".ssh"],
        kind: Kind::Fixed,
        reason: "it decides who may log in and sign as you",
    },
    Protection {
        id: "host.scheduled-jobs",
        anchor: Anchor::Home,
        names: &[
            ".config/autostart",
            ".config/environment.d",
            ".config/systemd",
            ".local/share/systemd",
            ".local/share/dbus-1",
        ],
        kind: Kind::Fixed,
        reason: "your system starts programs from it",
    },
    Protection {
        id: "host.system-start-up",
        anchor: Anchor::Root,
        names: &[
            "etc/bash.bashrc",
            "etc/cron.d",
            "etc/cron.daily",
            "etc/cron.hourly",
            "etc/cron.monthly",
            "etc/cron.weekly",
            "etc/crontab",
            "etc/environment",
            "etc/init.d",
            "etc/ld.so.preload",
            "etc/profile",
            "etc/profile.d",
            "etc/rc.local",
            "etc/systemd",
            "usr/lib/systemd",
            "var/spool/at",
            "var/spool/cron",
        ],
        kind: Kind::Fixed,
        reason: "the system starts programs from it",
    },
    Protection {
        id: "host.start-up-files",
        anchor: Anchor::Home,
        names: &[
            ".bash_aliases",
            ".bash_login",
            ".bash_logout",
            ".bash_profile",
            ".bashrc",
            ".cargo/config",
            ".cargo/config.toml",
            ".config/direnv",
            ".config/fish",
            ".config/git",
            ".config/hypr",
            ".config/i3",
            ".config/kitty",
            ".config/nvim",
            ".config/sway",
            ".direnvrc",
            ".emacs",
            ".emacs.d",
            ".gitconfig",
            ".inputrc",
            ".ipython",
            ".local/share/applications",
            ".pam_environment",
            ".profile",
            ".vim",
            ".vimrc",
            ".xinitrc",
            ".xprofile",
            ".xsession",
            ".zlogin",
            ".zlogout",
            ".zprofile",
            ".zshenv",
            ".zshrc",
        ],
        kind: Kind::FixedOutside,
        reason: "your shell and tools execute it",
    },
];

/// Ids of the host's rules that the user can lift, rules over names included.
///
/// Rules on files that decide about the agent are not among them.
pub const LIFTABLE: &[&str] = &[
    "host.age-keys",
    "host.agent-files",
    "host.agent-logins",
    "host.agent-secrets",
    "host.agent-sessions",
    "host.aws",
    "host.azure",
    "host.browsers",
    "host.ci-files",
    "host.containers",
    "host.databases",
    "host.editor-files",
    "host.forges",
    "host.gcloud",
    "host.git-attributes",
    "host.git-config",
    HOOK_FILES,
    "host.git-hooks",
    "host.git-index",
    "host.git-pointers",
    "host.git-rebase",
    "host.gnupg",
    "host.histories",
    "host.home-files",
    "host.hook-managers",
    "host.infrastructure",
    "host.keyrings",
    "host.keys",
    "host.kubernetes",
    "host.mail",
    "host.netrc",
    "host.new-dot-files",
    "host.other-clouds",
    "host.password-stores",
    "host.path-directories",
    "host.scheduled-jobs",
    "host.shell-files",
    "host.ssh-keys",
    "host.start-up-files",
    "host.system-secrets",
    "host.system-start-up",
    "host.tool-files",
    "host.toolchain-credentials",
    "host.wallets",
];

/// Rule id for hook directories.
const GIT_HOOKS: &str = "host.git-hooks";

/// Rule id for credentials of toolchains.
const TOOLCHAIN_CREDENTIALS: &str = "host.toolchain-credentials";

/// Names in the root of a toolchain that hold credentials.
const TOOLCHAIN_SECRETS: [&str; 2] = ["credentials", "credentials.toml"];

/// The context of the host's own rules; all paths are canonical.
pub(crate) struct Ground<'a> {
    pub(crate) places: &'a Places,
    pub(crate) workspace: &'a Path,
    pub(crate) homes: &'a [PathBuf],
    /// The workspace's repository, if it lies outside.
    pub(crate) git_directory: Option<&'a Path>,
    /// Directories in which commands could redirect links.
    pub(crate) writable: &'a Writable,
    pub(crate) disk: &'a dyn Disk,
}

impl Ground<'_> {
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
            self.add(&mut rules, GIT_HOOKS, &repository.join("hooks"), Kind::Fixed, reason)?;
        }
        for source in own_git::sources(self.workspace, self.homes, self.disk) {
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
            self.add(&mut denied, entry.id, &path, Kind::Hidden, &entry.reason())?;
            for directory in self.follow(&path)?.all() {
                excepted.extend(entry.exceptions(directory, self.disk));
            }
        }
        for root in &self.places.toolchains {
            for name in TOOLCHAIN_SECRETS {
                let reason = sensitive::reason("credentials of a toolchain", TOOLCHAIN_CREDENTIALS);
                self.add(&mut denied, TOOLCHAIN_CREDENTIALS, &root.join(name), Kind::Hidden, &reason)?;
            }
        }
        denied.extend(excepted);
        Ok(denied)
    }

    /// Protects an agent directory that lies inside the workspace (because the workspace is the home directory).
    ///
    /// A name that does not exist yet cannot be protected on its own, so no file can be created in the whole directory.
    /// These rules come first: the rules on single names are more specific.
    fn agent_directories(&self, rules: &mut Vec<Rule>) -> Result<(), ConfigError> {
        for directory in self.anchors(Anchor::Agent) {
            if self.follow(&directory)?.canonical.starts_with(self.workspace) {
                let reason = "the agent's settings and extensions lie in it";
                self.add(rules, "host.agent-directory", &directory, Kind::FixedOutside, reason)?;
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
            self.add(rules, HOOK_FILES, &hook, Kind::Fixed, hook_links::REASON)?;
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
        self.add(rules, id, &places.state_directory, Kind::Hidden, "it holds the log of what agents did")?;
        let own = [&places.machine_directory, &places.cache_directory];
        for path in own.into_iter().chain(&places.programs).chain(decisive) {
            self.add(rules, id, path, Kind::Fixed, "it decides what the agent may do, or is what decides")?;
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
            self.add(rules, "host.path-directories", directory, Kind::FixedOutside, reason)?;
        }
        Ok(())
    }

    fn add(
        &self,
        rules: &mut Vec<Rule>,
        id: &str,
        path: &Path,
        kind: Kind,
        reason: &str,
    ) -> Result<(), ConfigError> {
        crate::places::absolute(path, "a protected path")?;
        let followed = self.follow(path)?;
        let effect = |path: &Path| match kind {
            Kind::FixedOutside if path.starts_with(self.workspace) => Effect::Ask,
            Kind::Hidden | Kind::Fixed | Kind::FixedOutside => Effect::Deny,
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
            let rights = if kind == Kind::Hidden { FileRights::ALL } else { FileRights::WRITE };
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
