//! Evaluates ignore files: tells which names a search leaves out.
//!
//! The precedence is that of ripgrep and fd: the search program's own file, `.ignore`, `.gitignore`,
//! `.git/info/exclude`, each from the innermost directory outwards; then the user's own patterns.

use std::path::Path;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::{Error, Match};

use crate::search::{GitRepositories, IgnoreFiles};

/// The ignore rules of one directory.
#[derive(Debug)]
pub(crate) struct Level {
    own: Gitignore,
    ignore: Gitignore,
    git: Gitignore,
    exclude: Gitignore,
    is_repository: bool,
}

/// The content of the ignore files of one directory; `None` for files that are missing or may not be read.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    pub(crate) own: Option<Vec<u8>>,
    pub(crate) ignore: Option<Vec<u8>>,
    pub(crate) git: Option<Vec<u8>>,
    pub(crate) exclude: Option<Vec<u8>>,
    pub(crate) is_repository: bool,
}

/// All ignore rules in force at the current directory of a walk.
#[derive(Debug)]
pub(crate) struct Ignores {
    levels: Vec<Level>,
    of_git: Gitignore,
    of_user: Gitignore,
    repositories: GitRepositories,
}

impl Ignores {
    /// Creates the rules with only the user's own patterns; those with a slash are relative to `root`.
    pub(crate) fn new(files: &IgnoreFiles, root: &Path) -> Self {
        Self {
            levels: Vec::new(),
            of_git: of_lines(root, files.of_git.iter().map(String::as_str)),
            of_user: of_lines(root, files.of_user.iter().map(String::as_str)),
            repositories: files.git,
        }
    }

    /// Enters the directory at the canonical path `directory`.
    pub(crate) fn enter(&mut self, directory: &Path, texts: &Texts) {
        let rules = |text: &Option<Vec<u8>>| of_text(directory, text.as_deref().unwrap_or_default());
        self.levels.push(Level {
            own: rules(&texts.own),
            ignore: rules(&texts.ignore),
            git: rules(&texts.git),
            exclude: rules(&texts.exclude),
            is_repository: texts.is_repository,
        });
    }

    /// Determines whether the search starts in a repository. Called once the starting directory is entered.
    pub(crate) fn started(&mut self) {
        if self.repositories == GitRepositories::RequiredInside {
            let inside = self.levels.iter().any(|level| level.is_repository);
            self.repositories = if inside { GitRepositories::Required } else { GitRepositories::NotRequired };
        }
    }

    /// Leaves the directory that was entered last.
    pub(crate) fn leave(&mut self) {
        self.levels.pop();
    }

    /// Returns true if the canonical path `path` is left out.
    pub(crate) fn is_ignored(&self, path: &Path, is_directory: bool) -> bool {
        let required = self.repositories != GitRepositories::NotRequired;
        let git_counts = !required || self.levels.iter().any(|level| level.is_repository);
        let mut found: [Option<bool>; 4] = [None; 4];
        let [own, ignore, git, exclude] = &mut found;
        let mut left_repository = false;
        for level in self.levels.iter().rev() {
            look(own, &level.own, path, is_directory);
            look(ignore, &level.ignore, path, is_directory);
            if git_counts && !left_repository {
                look(git, &level.git, path, is_directory);
                look(exclude, &level.exclude, path, is_directory);
            }
            left_repository |= required && level.is_repository;
        }
        let mut of_all = None;
        if git_counts {
            look(&mut of_all, &self.of_git, path, is_directory);
        }
        look(&mut of_all, &self.of_user, path, is_directory);
        found.into_iter().flatten().next().or(of_all).unwrap_or(false)
    }
}

/// Records the result of `rules`, unless a rule with higher precedence has matched.
fn look(found: &mut Option<bool>, rules: &Gitignore, path: &Path, is_directory: bool) {
    if found.is_none() && !rules.is_empty() {
        *found = match rules.matched(path, is_directory) {
            Match::None => None,
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
        };
    }
}

/// Parses an ignore file as ripgrep and fd do: up to the first line that is not UTF-8, without invalid patterns.
fn of_text(root: &Path, text: &[u8]) -> Gitignore {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let lines = text.split(|&byte| byte == b'\n').map_while(|line| std::str::from_utf8(line).ok());
    of_lines(root, lines.map(|line| line.strip_suffix('\r').unwrap_or(line)))
}

fn of_lines<'a>(root: &Path, lines: impl Iterator<Item = &'a str>) -> Gitignore {
    let mut builder = GitignoreBuilder::new(root);
    let mut any = false;
    for line in lines.filter(|line| !line.is_empty()) {
        let added: Result<_, Error> = builder.add_line(None, line);
        any |= added.is_ok();
    }
    if any { builder.build().unwrap_or_else(|_| Gitignore::empty()) } else { Gitignore::empty() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(git: &str) -> Texts {
        Texts { git: Some(git.as_bytes().to_vec()), ..Texts::default() }
    }

    #[test]
    fn the_nearest_file_counts_and_repositories_end_the_outer_one() {
        let files = IgnoreFiles { of_git: vec!["*.all".to_owned()], ..IgnoreFiles::default() };
        let mut ignores = Ignores::new(&files, Path::new("/w"));
        ignores.enter(Path::new("/w"), &texts("*.log\nbuild/\n/top"));
        assert!(!ignores.is_ignored(Path::new("/w/a.log"), false), "outside a repository");
        ignores.leave();
        ignores.enter(Path::new("/w"), &Texts { is_repository: true, ..texts("*.log\nbuild/\n/top") });
        for (path, is_directory, expected) in [
            ("/w/a.log", false, true),
            ("/w/a.all", false, true),
            ("/w/build", true, true),
            ("/w/build", false, false),
            ("/w/top", false, true),
            ("/w/x/top", false, false),
        ] {
            assert_eq!(ignores.is_ignored(Path::new(path), is_directory), expected, "{path}");
        }
        ignores.enter(Path::new("/w/in"), &texts("!keep.log"));
        assert!(!ignores.is_ignored(Path::new("/w/in/keep.log"), false));
        assert!(ignores.is_ignored(Path::new("/w/in/b.log"), false));
        ignores.leave();
        ignores.enter(Path::new("/w/sub"), &Texts { is_repository: true, ..Texts::default() });
        assert!(!ignores.is_ignored(Path::new("/w/sub/a.log"), false), "another repository");
        assert!(ignores.is_ignored(Path::new("/w/sub/a.all"), false));
    }

    #[test]
    fn the_programs_own_file_counts_most() {
        let files = IgnoreFiles { git: GitRepositories::NotRequired, ..IgnoreFiles::default() };
        let mut ignores = Ignores::new(&files, Path::new("/w"));
        let own = Texts { own: Some(b"!a.log\r\n\xFF\nb.txt".to_vec()), ..texts("*.log") };
        ignores.enter(Path::new("/w"), &own);
        assert!(!ignores.is_ignored(Path::new("/w/a.log"), false));
        assert!(ignores.is_ignored(Path::new("/w/b.log"), false));
        assert!(!ignores.is_ignored(Path::new("/w/b.txt"), false), "behind a line that is not text");
    }
}
