//! Paths that the agent's commands can write. This process runs no program from them, and does not trust their links.

use std::path::{Path, PathBuf};

use portcullis_decision::GrantPattern;
use portcullis_decision::pattern::FilePattern;
use portcullis_settings::{RealDisk, Resolved, names_and_links_on_the_way};

/// The paths that commands can write in this session, or could in earlier sessions of the project.
#[derive(Debug, Clone)]
pub struct UntrustedPaths {
    trees: Vec<PathBuf>,
    written: Vec<FilePattern>,
}

impl UntrustedPaths {
    /// Returns those of a project alone: its directory, and the repository around it.
    ///
    /// If a home directory lies in the project, the user's own programs do too. They are excluded: commands must ask
    /// before they write in a directory of PATH there.
    pub fn of_project(project: &Path, homes: &[PathBuf]) -> Self {
        let project = project.canonicalize().unwrap_or_else(|_| project.to_owned());
        let homes: Vec<PathBuf> = homes.iter().filter_map(|home| home.canonicalize().ok()).collect();
        let holds_home = |place: &Path| homes.iter().any(|home| home.starts_with(place));
        let around = project.ancestors().skip(1).take_while(|place| !holds_home(place));
        let repository = around.filter(|place| place.join(".git").symlink_metadata().is_ok()).last();
        let trees = std::iter::once(project.as_path()).chain(repository);
        let trees = trees.filter(|tree| !holds_home(tree)).map(Path::to_owned).collect();
        Self { trees, written: Vec::new() }
    }

    /// Returns those of a project with its settings.
    pub fn for_project(resolved: &Resolved, homes: &[PathBuf]) -> Self {
        let granted = resolved.grants.iter().filter_map(|grant| match &grant.pattern {
            GrantPattern::Path(path) => path.rights.write.then(|| path.pattern.clone()),
            GrantPattern::Exact(_)
            | GrantPattern::Command(_)
            | GrantPattern::Network(_)
            | GrantPattern::Tool(_) => None,
        });
        let project = FilePattern::Tree(resolved.workspace.clone());
        // `of_project` below handles the project itself.
        let listed = resolved.allow_write.iter().filter(|pattern| **pattern != project).cloned();
        Self { written: listed.chain(granted).collect(), ..Self::of_project(&resolved.workspace, homes) }
    }

    /// Adds a tree.
    pub fn and(mut self, tree: &Path) -> Self {
        self.trees.push(tree.to_owned());
        self
    }

    /// Returns true if `path`, or any link on it, lies in one of these paths.
    pub fn holds(&self, path: &Path) -> bool {
        // A path that cannot be resolved is not trusted.
        let Ok(names) = names_and_links_on_the_way(path, &RealDisk) else { return true };
        names.iter().any(|name| {
            self.trees.iter().any(|tree| name.starts_with(tree))
                || self.written.iter().any(|pattern| pattern.matcher().matches(name))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_on_the_way_counts() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let at = |path: &str| root.join(path);
        for directory in ["home/p/sub/.venv/bin", "home/p/.git", "home/bin", "home/q", "usr/bin"] {
            std::fs::create_dir_all(at(directory)).unwrap();
        }
        let link = |to: &str, from: &str| std::os::unix::fs::symlink(at(to), at(from)).unwrap();
        link("usr/bin", "home/p/sub/tools");
        link("home/p/sub/tools", "home/through");
        link("home/p/sub/.venv/bin", "home/into");
        let homes = [at("home")];
        let reach = UntrustedPaths::of_project(&at("home/p/sub"), &homes);
        for (path, expected) in [
            ("home/p/sub/.venv/bin/git", true),
            ("home/p/other/git", true),
            ("home/into/git", true),
            ("home/through/git", true),
            ("usr/bin/git", false),
            ("home/bin/git", false),
            ("home/q/git", false),
        ] {
            assert_eq!(reach.holds(&at(path)), expected, "{path}");
        }
        assert!(reach.and(&at("home")).holds(&at("home/q/git")));
        // The home directory as the project: the user's own programs lie in it.
        assert!(!UntrustedPaths::of_project(&at("home"), &homes).holds(&at("home/bin/git")));
    }
}
