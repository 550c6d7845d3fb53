//! Names that the user's other programs execute, as conditions.
//!
//! On Linux the broker looks at each change: it asks, judges the content of git's files, and knows which directories are
//! repositories. A profile knows names only, so whatever the broker would ask about or judge is refused.

use std::path::Path;

use portcullis_exec_surface::{
    GIT_ATTRIBUTES, GIT_CONFIG, GIT_HOOKS, GIT_INDEX, GIT_POINTERS, GIT_REBASE, HOME_FILES, NEW_DOT_FILES,
    PACKAGES, RULES, Rule, TOOL_FILES, Treatment, table,
};

use crate::Wanted;
use crate::error::CompileError;
use crate::filter::Filter;
use crate::pattern::{below, text};
use crate::regex::{ANYTHING, Case, literal_text};
use crate::statement::{CONTENT, CREATES, NAMES, Statement};

/// Returns the statements on protected names.
pub(crate) fn statements(wanted: &Wanted<'_>) -> Result<Vec<Statement>, CompileError> {
    let mut statements = Vec::new();
    if !wanted.roots.is_empty() {
        let names = Names { root: one_of(wanted.roots)?, wanted };
        names.listed(&mut statements);
        names.git(&mut statements)?;
        names.dot_files(&mut statements)?;
    }
    let mut targets = Vec::new();
    for target in wanted.link_targets {
        targets.push(below(target).map_err(|_| CompileError::Path { path: target.clone() })?);
    }
    statements.push(Statement::deny("targets of your links at such names", CONTENT, Filter::any(targets)));
    statements.push(Statement::deny(
        "the temporary files of Portcullis' own tools",
        CREATES,
        Filter::Regex(format!("/{}$", folded(".portcullis-*.tmp"))),
    ));
    Ok(statements)
}

/// Files directly in a git directory, or in one directory of it, that are judged by content, by rule.
const IN_GIT: [(&Rule, &[&str]); 6] = [
    (&GIT_HOOKS, &["hooks"]),
    (&GIT_CONFIG, &["config", "config.worktree", "remotes", "branches"]),
    (
        &GIT_REBASE,
        &[
            "rebase-merge/strategy",
            "rebase-merge/strategy_opts",
            "rebase-merge/apply-opt",
            "rebase-apply/strategy",
            "rebase-apply/strategy_opts",
            "rebase-apply/apply-opt",
            "sequencer/opts",
        ],
    ),
    (&GIT_INDEX, &["index", "sharedindex.*", "MERGE_RR"]),
    (&GIT_ATTRIBUTES, &["info/attributes"]),
    (&GIT_POINTERS, &["worktrees/*/gitdir"]),
];

/// Names that matter to git anywhere, by rule.
const ANYWHERE: [(&Rule, &[&str]); 3] = [
    (&GIT_POINTERS, &["objects/info/alternates", "commondir"]),
    (&GIT_CONFIG, &[".gitmodules"]),
    (&GIT_REBASE, &["git-rebase-todo"]),
];

/// Directories in a git directory that may not be replaced by others.
const CONTAINERS: [&str; 5] = ["info", "modules", "rebase-apply", "rebase-merge", "sequencer"];

struct Names<'a> {
    /// An expression for the roots.
    root: String,
    wanted: &'a Wanted<'a>,
}

impl Names<'_> {
    fn holds(&self, rule: &Rule) -> bool {
        !self.wanted.lifted.iter().any(|lifted| lifted == rule.id)
    }

    /// Returns the condition that a path is a name at any depth, or below it.
    fn at(&self, name: &str) -> Filter {
        Filter::Regex(format!("^{}/({ANYTHING}/)?{name}(/{ANYTHING})?$", self.root))
    }

    /// Returns the condition that a path is a name at any depth.
    fn exactly(&self, name: &str) -> Filter {
        Filter::Regex(format!("^{}/({ANYTHING}/)?{name}$", self.root))
    }

    /// Names of the tables.
    fn listed(&self, statements: &mut Vec<Statement>) {
        let in_package = || self.at(&literal_text(PACKAGES, Case::Counts));
        // Packages contain such files by the hundred; what begins outside of them counts all the same.
        let outside = |name: &str, filter: Filter| {
            let around = self.at(&format!("{name}/({ANYTHING}/)?{}", literal_text(PACKAGES, Case::Counts)));
            Filter::any([Filter::all([filter, Filter::not(in_package())]), around])
        };
        let (mut names, mut holders) = (Vec::new(), Vec::new());
        for rule in RULES.iter().filter(|rule| self.holds(rule)) {
            for name in rule.names() {
                let own = folded(name);
                let is_asked = rule.anywhere == Treatment::Asked;
                let filter = self.at(&own);
                names.push(if is_asked { outside(&own, filter) } else { filter });
                for (end, _) in name.match_indices('/') {
                    let holder = folded(name.get(..end).unwrap_or_default());
                    let filter = self.exactly(&holder);
                    holders.push(if is_asked {
                        Filter::all([filter, Filter::not(in_package())])
                    } else {
                        filter
                    });
                }
            }
        }
        if self.holds(&TOOL_FILES) {
            names.push(self.at(&folded(".jj/repo")));
            holders.push(self.exactly(&folded(".jj")));
        }
        holders.dedup();
        statements.push(Statement::deny(
            "names that your other programs execute",
            CONTENT,
            Filter::any(names),
        ));
        statements.push(Statement::deny("directories of such names", NAMES, Filter::any(holders)));
    }

    /// Git directories: those called `.git`, and those that were found under other names.
    fn git(&self, statements: &mut Vec<Statement>) -> Result<(), CompileError> {
        let nested = format!("({}/[^/]*/)*({}/({ANYTHING}/)?)?", folded("worktrees"), folded("modules"));
        let mut tops = vec![format!("^{}/({ANYTHING}/)?{}/{nested}", self.root, folded(".git"))];
        if !self.wanted.repositories.is_empty() {
            tops.push(format!("^{}/{nested}", one_of(self.wanted.repositories)?));
        }
        let inside = |name: &str, end: &str| {
            let name = folded(name);
            Filter::any(tops.iter().map(|top| Filter::Regex(format!("{top}{name}{end}"))))
        };
        let and_below = format!("(/{ANYTHING})?$");
        let of_held = |table: &[(&Rule, &'static [&'static str])]| -> Vec<&'static str> {
            table.iter().filter(|(rule, _)| self.holds(rule)).flat_map(|(_, names)| *names).copied().collect()
        };
        let judged = of_held(&IN_GIT).into_iter().map(|name| inside(name, &and_below));
        let anywhere = of_held(&ANYWHERE).into_iter().map(|name| self.at(&folded(name)));
        // As a file it leads to a repository.
        let pointer = self.holds(&GIT_POINTERS).then(|| self.exactly(&folded(".git")));
        statements.push(Statement::deny(
            "files that git reads programs and places from",
            CONTENT,
            Filter::any(judged.chain(anywhere).chain(pointer)),
        ));
        if self.holds(&GIT_POINTERS) {
            let containers = CONTAINERS.iter().map(|name| inside(name, "$"));
            let outside_git = Filter::not(self.at(&folded(".git")));
            let shape = Filter::all([self.exactly(&folded("refs")), outside_git]);
            let own = [self.exactly(&folded(".git")), shape];
            statements.push(Statement::deny(
                "git directories are neither made nor moved",
                NAMES,
                Filter::any(containers.chain(own)),
            ));
        }
        Ok(())
    }

    /// Dot files in projects and homes.
    fn dot_files(&self, statements: &mut Vec<Statement>) -> Result<(), CompileError> {
        // The first dot name on the way decides.
        let plain = "([^./][^/]*/)*";
        let first = |name: &str| Filter::Regex(format!("^{}/{plain}{name}(/{ANYTHING})?$", self.root));
        let packages = format!("{}/({ANYTHING}/)?[^/]*", literal_text(PACKAGES, Case::Counts));
        if self.holds(&NEW_DOT_FILES) {
            let harmless = table::harmless().iter().map(|entry| first(&folded(entry.name)));
            let harmless = Filter::any(harmless.chain([first(&packages)]));
            statements.push(Statement::deny(
                "new dot files, which a tool may read",
                CREATES,
                Filter::all([first("\\.[^/]*"), Filter::not(harmless)]),
            ));
        }
        if self.holds(&HOME_FILES) && !self.wanted.homes.is_empty() {
            let homes = one_of(self.wanted.homes)?;
            let at = |name: &str| Filter::Regex(format!("^{homes}/{name}(/{ANYTHING})?$"));
            let harmless = table::harmless_at_home().iter().map(|entry| at(&folded(entry.name)));
            let dots = Filter::all([at("\\.[^/]*"), Filter::not(Filter::any(harmless))]);
            let named = table::home().iter().map(|entry| at(&folded(entry.name)));
            statements.push(Statement::deny(
                "files of your home directory, which a login starts",
                CONTENT,
                Filter::any([dots].into_iter().chain(named)),
            ));
        }
        Ok(())
    }
}

/// Returns an expression for a name of a table: without regard to case, `*` for any characters.
fn folded(name: &str) -> String {
    name.split('*').map(|part| literal_text(part, Case::Ignored)).collect::<Vec<_>>().join("[^/]*")
}

/// Returns an expression for one of these directories.
fn one_of<P: AsRef<Path>>(paths: &[P]) -> Result<String, CompileError> {
    let mut choices = Vec::new();
    for path in paths {
        let path = path.as_ref();
        let name = text(path).map_err(|_| CompileError::Path { path: path.to_owned() })?;
        choices.push(literal_text(name.trim_end_matches('/'), Case::Counts));
    }
    Ok(if choices.iter().any(String::is_empty) { String::new() } else { format!("({})", choices.join("|")) })
}
