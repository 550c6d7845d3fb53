//! The rules of the host that settings can lift.

/// Rule id for hooks outside of directories that are named `hooks`.
pub const HOOK_FILES: &str = "host.git-hook-files";

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
