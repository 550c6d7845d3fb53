//! The table of names.

/// A group of names that the user's other programs execute.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Id under which it appears in decisions and can be lifted.
    pub id: &'static str,
    /// One sentence for the user.
    pub reason: &'static str,
    /// Names at any depth below a root, each with everything below it; empty for the rules on git directories.
    pub names: &'static [&'static str],
    /// What holds for them.
    pub anywhere: Anywhere,
}

/// What holds for a name at any depth of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anywhere {
    /// It is not changed.
    Denied,
    /// It asks, but is free in a directory that the running command itself made.
    Asked,
    /// It depends on the name within a git directory and on the content.
    Judged,
}

/// Every rule on names.
pub static RULES: &[&Rule] = &[
    &PROJECT_AGENT_SETTINGS,
    &GIT_HOOKS,
    &GIT_CONFIG,
    &GIT_POINTERS,
    &GIT_REBASE,
    &GIT_INDEX,
    &GIT_ATTRIBUTES,
    &SHELL_FILES,
    &TOOL_FILES,
    &EDITOR_FILES,
    &AGENT_FILES,
    &HOOK_MANAGERS,
    &CI_FILES,
];

/// Files of a project that decide about the agent in it.
pub static PROJECT_AGENT_SETTINGS: Rule = Rule {
    id: "host.project-agent-settings",
    reason: "it decides what the agent is and may do in this project",
    names: &[
        ".pi/APPEND_SYSTEM.md",
        ".pi/SYSTEM.md",
        ".pi/extensions",
        ".pi/git",
        ".pi/mcp.json",
        ".pi/node_modules",
        ".pi/npm",
        ".pi/portcullis.json",
        ".pi/sandbox.json",
        ".pi/settings.json",
    ],
    anywhere: Anywhere::Denied,
};

/// Hooks of git directories.
pub static GIT_HOOKS: Rule = Rule {
    id: "host.git-hooks",
    reason: "your own git runs programs from it",
    names: &[],
    anywhere: Anywhere::Judged,
};

/// Git's settings.
pub static GIT_CONFIG: Rule = Rule {
    id: "host.git-config",
    reason: "your own git takes settings from it, which can name programs to run",
    names: &[],
    anywhere: Anywhere::Judged,
};

/// Files that say where a repository lies.
pub static GIT_POINTERS: Rule = Rule {
    id: "host.git-pointers",
    reason: "it tells your own git where a repository lies",
    names: &[],
    anywhere: Anywhere::Judged,
};

/// Files of a rebase, or of a series of picks, that has stopped.
pub static GIT_REBASE: Rule = Rule {
    id: "host.git-rebase",
    reason: "it says what your own git does when a rebase or a series of picks goes on",
    names: &[],
    anywhere: Anywhere::Judged,
};

/// `index`, and the list of the conflicts whose resolutions are remembered.
pub static GIT_INDEX: Rule = Rule {
    id: "host.git-index",
    reason: "it names the files that your own git reads and writes",
    names: &[],
    anywhere: Anywhere::Judged,
};

/// `info/attributes`.
pub static GIT_ATTRIBUTES: Rule = Rule {
    id: "host.git-attributes",
    reason: "it chooses programs that your own git runs on files",
    names: &[],
    anywhere: Anywhere::Judged,
};

/// Start-up files of shells.
pub static SHELL_FILES: Rule = Rule {
    id: "host.shell-files",
    reason: "a shell executes it",
    names: &[
        ".bash_aliases",
        ".bash_login",
        ".bash_logout",
        ".bash_profile",
        ".bashrc",
        ".inputrc",
        ".profile",
        ".zlogin",
        ".zlogout",
        ".zprofile",
        ".zshenv",
        ".zshrc",
    ],
    anywhere: Anywhere::Asked,
};

/// Settings of tools that are started in the project. They run programs, or choose the tool itself, where nothing is
/// built and nothing of the project is run: `rustc --version` is enough. What else a build does is the project's own.
pub static TOOL_FILES: Rule = Rule {
    id: "host.tool-files",
    reason: "a tool that you start in this directory takes settings from it, which can name programs to run",
    names: &[
        ".RData",
        ".Renviron",
        ".Rprofile",
        ".autoenv.zsh",
        ".bazeliskrc",
        ".bazelversion",
        ".byebugrc",
        ".cargo/config",
        ".cargo/config.toml",
        ".config/mise",
        ".config/mise.toml",
        ".direnv",
        ".envrc",
        ".erlang",
        ".gclient",
        ".ghci",
        ".hg/hgrc",
        ".hg/hgrc-not-shared",
        ".hg/sharedpath",
        ".iex.exs",
        ".irbrc",
        ".jj/repo/config.toml",
        ".jj/repo/workspace-config.toml",
        ".lazygit.yml",
        ".mise",
        ".mise.local.toml",
        ".mise.toml",
        ".mvn/jvm.config",
        ".npmrc",
        ".nvmrc",
        ".ocamlinit",
        ".octaverc",
        ".pdbrc",
        ".perldb",
        ".pijul/config",
        ".pnpmfile.cjs",
        ".pnpmfile.mjs",
        ".prototools",
        ".pryrc",
        ".psysh.php",
        ".pypirc",
        ".repo/repo",
        ".rvmrc",
        ".shadowenv.d",
        ".sl/config",
        ".sl/sharedpath",
        ".tool-versions",
        ".yarn/plugins",
        ".yarn/releases",
        ".yarnrc",
        ".yarnrc.yml",
        "_darcs/prefs/defaults",
        "lazygit.yml",
        "mise.local.toml",
        "mise.toml",
        "mise/config.local.toml",
        "mise/config.toml",
        "rust-toolchain",
        "rust-toolchain.toml",
        "sl/config",
    ],
    anywhere: Anywhere::Asked,
};

/// Settings of editors.
pub static EDITOR_FILES: Rule = Rule {
    id: "host.editor-files",
    reason: "an editor that you open here takes settings and tasks from it",
    names: &[
        ".devcontainer",
        ".devcontainer.json",
        ".dir-locals-2.el",
        ".dir-locals.el",
        ".exrc",
        ".fleet",
        ".gdbinit",
        ".gvimrc",
        ".helix",
        ".idea",
        ".lazy.lua",
        ".lldbinit",
        ".nvim",
        ".nvim.lua",
        ".nvimrc",
        ".run",
        ".vim/coc-settings.json",
        ".vimrc",
        ".vscode",
        ".zed",
    ],
    anywhere: Anywhere::Asked,
};

/// Settings and instructions of agents.
pub static AGENT_FILES: Rule = Rule {
    id: "host.agent-files",
    reason: "an agent that works here is told by it what to do and which programs to start",
    names: &[
        ".agents",
        ".aider.conf.yml",
        ".amazonq",
        ".augment",
        ".claude",
        ".clinerules",
        ".codex",
        ".continue",
        ".crush.json",
        ".cursor",
        ".cursorrules",
        ".factory",
        ".gemini",
        ".github/agents",
        ".github/chatmodes",
        ".github/copilot-instructions.md",
        ".github/instructions",
        ".github/prompts",
        ".goosehints",
        ".junie",
        ".kilocode",
        ".kiro",
        ".mcp.json",
        ".opencode",
        ".pi/commands",
        ".pi/prompts",
        ".pi/skills",
        ".qwen",
        ".roo",
        ".rules",
        ".trae",
        ".windsurf",
        ".windsurfrules",
        "AGENT.md",
        "AGENTS.md",
        "AGENTS.override.md",
        "CLAUDE.local.md",
        "CLAUDE.md",
        "GEMINI.md",
        "QWEN.md",
        "WARP.md",
        "crush.json",
        "opencode.json",
        "opencode.jsonc",
    ],
    anywhere: Anywhere::Asked,
};

/// Settings of programs that manage hooks.
pub static HOOK_MANAGERS: Rule = Rule {
    id: "host.hook-managers",
    reason: "it says which programs run when you commit",
    names: &[
        ".config/lefthook-local.json",
        ".config/lefthook-local.jsonc",
        ".config/lefthook-local.toml",
        ".config/lefthook-local.yaml",
        ".config/lefthook-local.yml",
        ".config/lefthook.json",
        ".config/lefthook.jsonc",
        ".config/lefthook.toml",
        ".config/lefthook.yaml",
        ".config/lefthook.yml",
        ".githooks",
        ".husky",
        ".huskyrc",
        ".huskyrc.json",
        ".lefthook",
        ".lefthook-local",
        ".lefthook-local.json",
        ".lefthook-local.jsonc",
        ".lefthook-local.toml",
        ".lefthook-local.yaml",
        ".lefthook-local.yml",
        ".lefthook.json",
        ".lefthook.jsonc",
        ".lefthook.toml",
        ".lefthook.yaml",
        ".lefthook.yml",
        ".overcommit.yml",
        ".pre-commit-config.yaml",
        "lefthook-local.json",
        "lefthook-local.jsonc",
        "lefthook-local.toml",
        "lefthook-local.yaml",
        "lefthook-local.yml",
        "lefthook.json",
        "lefthook.jsonc",
        "lefthook.toml",
        "lefthook.yaml",
        "lefthook.yml",
    ],
    anywhere: Anywhere::Asked,
};

/// What machines that build the project do.
pub static CI_FILES: Rule = Rule {
    id: "host.ci-files",
    reason: "machines that build the project do what it says, with their own secrets",
    names: &[
        ".appveyor.yml",
        ".build.yml",
        ".buildkite",
        ".builds",
        ".circleci",
        ".cirrus.yml",
        ".drone.yml",
        ".forgejo/workflows",
        ".gitea/workflows",
        ".github/actions",
        ".github/workflows",
        ".gitlab-ci.yml",
        ".gitpod.yml",
        ".semaphore",
        ".tekton",
        ".travis.yml",
        ".woodpecker",
        ".woodpecker.yml",
        "Jenkinsfile",
        "appveyor.yml",
        "azure-pipelines.yml",
        "bitbucket-pipelines.yml",
        "buildspec.yml",
        "cloudbuild.yaml",
    ],
    anywhere: Anywhere::Asked,
};

/// Returns the rule with this id.
#[must_use]
pub fn rule(id: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_names_are_there_once() {
        let mut ids: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), RULES.len());
        let mut names: Vec<&str> = RULES.iter().flat_map(|rule| rule.names).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn only_rules_on_git_directories_have_no_names() {
        for rule in RULES {
            assert_eq!(rule.names.is_empty(), rule.anywhere == Anywhere::Judged, "{}", rule.id);
        }
    }
}
