//! The rules over names. The names themselves are data, see [`crate::table`].

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::table;

/// A group of names that the user's other programs execute.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Id of the rule in decisions; the user disables it by this id.
    pub id: &'static str,
    /// One sentence for the user.
    pub reason: &'static str,
    /// How changes of its names are treated.
    pub anywhere: Treatment,
}

/// How changes of a name are treated, at any depth of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// They are refused.
    Denied,
    /// The user is asked, except in a directory that the running command itself made.
    Asked,
    /// It depends on the name within a git directory and on the content.
    Judged,
}

/// The directory in which names under [`Treatment::Asked`] are free: packages contain such files by the hundred, and the
/// user does not work in there.
pub const PACKAGES: &str = "node_modules";

/// All rules over names.
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
    &NEW_DOT_FILES,
    &HOME_FILES,
];

/// The names of [`PROJECT_AGENT_SETTINGS`].
pub const PROJECT_AGENT_NAMES: &[&str] = &[
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
];

/// Files of a project that determine the agent in it.
pub static PROJECT_AGENT_SETTINGS: Rule = Rule {
    id: "host.project-agent-settings",
    reason: "it decides what the agent is and may do in this project",
    anywhere: Treatment::Denied,
};

/// Hooks of git directories.
pub static GIT_HOOKS: Rule =
    Rule { id: "host.git-hooks", reason: "your own git runs programs from it", anywhere: Treatment::Judged };

/// Git's settings.
pub static GIT_CONFIG: Rule = Rule {
    id: "host.git-config",
    reason: "your own git reads settings from it, which can name programs to run",
    anywhere: Treatment::Judged,
};

/// Files that give the location of a repository.
pub static GIT_POINTERS: Rule = Rule {
    id: "host.git-pointers",
    reason: "it tells your own git where a repository lies",
    anywhere: Treatment::Judged,
};

/// Files of an interrupted rebase or series of picks.
pub static GIT_REBASE: Rule = Rule {
    id: "host.git-rebase",
    reason: "it says what your own git does when a rebase or cherry-pick continues",
    anywhere: Treatment::Judged,
};

/// `index`, and the list of conflicts whose resolutions are recorded.
pub static GIT_INDEX: Rule = Rule {
    id: "host.git-index",
    reason: "it names the files that your own git reads and writes",
    anywhere: Treatment::Judged,
};

/// `info/attributes`.
pub static GIT_ATTRIBUTES: Rule = Rule {
    id: "host.git-attributes",
    reason: "it chooses programs that your own git runs on files",
    anywhere: Treatment::Judged,
};

/// Startup files of shells.
pub static SHELL_FILES: Rule =
    Rule { id: "host.shell-files", reason: "a shell executes it", anywhere: Treatment::Asked };

/// Settings of tools that are started in the project.
///
/// They run programs, or select the tool itself, even if nothing is built and no code of the project runs: `rustc
/// --version` suffices. What else a build executes is the project's own.
pub static TOOL_FILES: Rule = Rule {
    id: "host.tool-files",
    reason: "a tool that you start in this directory may run programs that it names",
    anywhere: Treatment::Asked,
};

/// Settings of editors.
pub static EDITOR_FILES: Rule = Rule {
    id: "host.editor-files",
    reason: "an editor that you open here reads settings and tasks from it",
    anywhere: Treatment::Asked,
};

/// Settings and instructions of agents.
pub static AGENT_FILES: Rule = Rule {
    id: "host.agent-files",
    reason: "agents that work here follow it, and start programs that it names",
    anywhere: Treatment::Asked,
};

/// Settings of programs that manage hooks.
pub static HOOK_MANAGERS: Rule = Rule {
    id: "host.hook-managers",
    reason: "it says which programs run when you commit",
    anywhere: Treatment::Asked,
};

/// Instructions for machines that build the project.
pub static CI_FILES: Rule = Rule {
    id: "host.ci-files",
    reason: "build machines run what it says, with their secrets",
    anywhere: Treatment::Asked,
};

/// Dot files that appear at the root of a project.
///
/// Tools look for their settings there, and no list of them is complete; `data/harmless.txt` has the exceptions.
pub static NEW_DOT_FILES: Rule = Rule {
    id: "host.new-dot-files",
    reason: "a tool that you start in this directory may read it and run programs that it names",
    anywhere: Treatment::Asked,
};

/// Dot files of a home directory, existing or not, and other names from which a login starts programs.
pub static HOME_FILES: Rule = Rule {
    id: "host.home-files",
    reason: "your shell, desktop or tools may start programs from it",
    anywhere: Treatment::Asked,
};

impl Rule {
    /// Returns the names of this rule, which apply at any depth of a project, each with everything below it. Empty for
    /// the rules on git directories, and for those that depend on a name's position.
    #[must_use]
    pub fn names(&self) -> &'static [&'static str] {
        static BY_RULE: LazyLock<HashMap<&str, Vec<&str>>> = LazyLock::new(|| {
            let mut by_rule: HashMap<&str, Vec<&str>> = HashMap::new();
            by_rule.insert(PROJECT_AGENT_SETTINGS.id, PROJECT_AGENT_NAMES.to_vec());
            for entry in table::executed() {
                by_rule.entry(entry.section).or_default().push(entry.name);
            }
            by_rule
        });
        BY_RULE.get(self.id).map_or(&[], Vec::as_slice)
    }
}

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
        let mut names: Vec<&str> = RULES.iter().flat_map(|rule| rule.names()).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn every_section_of_the_table_is_a_rule_with_names() {
        for entry in table::executed() {
            assert!(rule(entry.section).is_some_and(|rule| rule.anywhere == Treatment::Asked), "{entry:?}");
        }
        let by_place = [&NEW_DOT_FILES, &HOME_FILES];
        for rule in RULES {
            let has_none = rule.anywhere == Treatment::Judged || by_place.contains(rule);
            assert_eq!(rule.names().is_empty(), has_none, "{}", rule.id);
        }
    }
}
