//! The names that Portcullis protects and that are known in advance.

use portcullis_exec_surface::{PROJECT_AGENT_NAMES, PROJECT_AGENT_SETTINGS};

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
    pub kind: ProtectedAccess,
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
pub enum ProtectedAccess {
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
        kind: ProtectedAccess::Hidden,
        reason: "it holds the agent's credentials",
    },
    Protection {
        id: "host.agent-sessions",
        anchor: Anchor::Agent,
        names: &["crashes.json", "mcp.log", "pi-debug.log", "sessions"],
        kind: ProtectedAccess::Hidden,
        reason: "it contains the sessions of other projects",
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
        kind: ProtectedAccess::Hidden,
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
        kind: ProtectedAccess::Fixed,
        reason: "it decides what the agent is and may do",
    },
    Protection {
        id: PROJECT_AGENT_SETTINGS.id,
        anchor: Anchor::Workspace,
        names: PROJECT_AGENT_NAMES,
        kind: ProtectedAccess::Fixed,
        reason: PROJECT_AGENT_SETTINGS.reason,
    },
    // The rule of the same id over names covers the hooks of any repository at any depth, except git's samples, but
    // needs a broker that checks each name. Without a broker, a mount makes this one path read-only. The broker does
    // not get this rule, or git could not create its samples.
    Protection {
        id: GIT_HOOKS,
        anchor: Anchor::Workspace,
        names: &[".git/hooks"],
        kind: ProtectedAccess::Fixed,
        reason: "your own git runs programs from it",
    },
    Protection {
        id: "host.keys",
        anchor: Anchor::Home,
        names: &[".gnupg", ".ssh"],
        kind: ProtectedAccess::Fixed,
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
        kind: ProtectedAccess::Fixed,
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
        kind: ProtectedAccess::Fixed,
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
        kind: ProtectedAccess::FixedOutside,
        reason: "your shell and tools execute it",
    },
];

/// Rule id for hook directories.
pub(crate) const GIT_HOOKS: &str = "host.git-hooks";

/// Rule id for credentials of toolchains.
pub(crate) const TOOLCHAIN_CREDENTIALS: &str = "host.toolchain-credentials";

/// Names in the root of a toolchain that hold credentials.
pub(crate) const TOOLCHAIN_SECRETS: [&str; 2] = ["credentials", "credentials.toml"];
