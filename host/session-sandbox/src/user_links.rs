//! The user's symbolic links at the start of a session.
//!
//! The target of a link at a protected name is protected like the name itself. The missing target of a dangling link
//! counts as the user's: a directory that a command creates there is not the command's own.

use std::path::{Path, PathBuf};

use portcullis_decision::pattern::FilePattern;
use portcullis_exec_surface::{PACKAGES, Site, UserLink};
use portcullis_file_gate::symbolic_links;
use portcullis_settings::{RealDisk, Resolved, names_on_the_way};

use crate::error::OpenError;

/// Maximum number of names to examine; most projects have fewer.
const LOOKED_AT: usize = 200_000;

/// The links in the directories where the user's programs work.
#[derive(Debug, Default)]
pub struct UserLinks {
    /// The directories that were searched.
    roots: Vec<PathBuf>,
    /// Links at protected names.
    pub named: Vec<UserLink>,
    /// Targets of dangling links.
    pub nowhere: Vec<PathBuf>,
}

impl UserLinks {
    /// Searches `roots`, one of which is `workspace`.
    ///
    /// # Errors
    /// If the user owns a directory there that he cannot search.
    pub fn find(workspace: &Path, homes: &[PathBuf], roots: Vec<PathBuf>) -> Result<Self, OpenError> {
        let (exists, is_link) =
            (|path: &Path| path.symlink_metadata().is_ok(), |path: &Path| path.is_symlink());
        let site =
            Site { homes, exists: &exists, is_link: &is_link, ..Site::without_files(workspace, &roots) };
        let (mut named, mut nowhere) = (Vec::new(), Vec::new());
        let links = symbolic_links(&roots, PACKAGES, LOOKED_AT);
        for name in links.map_err(|directory| OpenError::Closed { directory })? {
            let Some(target) = end(&name) else { continue };
            if !roots.iter().any(|root| target.starts_with(root))
                || target.iter().any(|part| part == PACKAGES)
            {
                continue;
            }
            if !exists(&target) {
                nowhere.push(target.clone());
            }
            let link = UserLink { name, target };
            if link.matters(&site) {
                named.push(link);
            }
        }
        nowhere.sort();
        nowhere.dedup();
        Ok(Self { roots, named, nowhere })
    }

    /// Returns the directories in which the user's programs work.
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Returns true if these directories were searched.
    pub fn are_below(&self, roots: &[PathBuf]) -> bool {
        self.roots == roots
    }
}

/// Returns the directories in which the user's programs work: the workspace, and the paths that settings make writable.
pub fn roots(resolved: &Resolved) -> Vec<PathBuf> {
    let written = resolved.allow_write.iter().filter_map(|pattern| match pattern {
        FilePattern::Exact(path) | FilePattern::Tree(path) => Some(path.clone()),
        FilePattern::Glob(_) | FilePattern::Name { .. } => None,
    });
    std::iter::once(resolved.workspace.clone()).chain(written).collect()
}

/// Returns the target of a link, whether it exists or not.
fn end(link: &Path) -> Option<PathBuf> {
    names_on_the_way(link, &RealDisk).ok()?.into_iter().next()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_found_with_what_they_lead_to() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().canonicalize().unwrap();
        for directory in ["env", "tools/editor", "deep/a/b", "node_modules/x"] {
            std::fs::create_dir_all(top.join(directory)).unwrap();
        }
        std::fs::write(top.join("env/rc"), "").unwrap();
        for (name, target) in [
            (".envrc", "env/rc"),
            (".vscode", "tools/editor"),
            ("deep/a/b/.envrc", "../../../env/new"),
            ("node_modules/x/.envrc", "../../env/rc"),
            ("out", "build/out"),
            ("python", "/usr/bin/python-that-is-not-there"),
            ("other", "env"),
        ] {
            symlink(target, top.join(name)).unwrap();
        }
        let found = UserLinks::find(&top, &[], vec![top.clone()]).unwrap();
        let link = |name: &str, target: &str| UserLink { name: top.join(name), target: top.join(target) };
        let named =
            [link(".envrc", "env/rc"), link(".vscode", "tools/editor"), link("deep/a/b/.envrc", "env/new")];
        assert_eq!(found.named, named);
        assert_eq!(found.nowhere, [top.join("build/out"), top.join("env/new")]);
        assert!(found.are_below(&[top]) && !found.are_below(&[]));
    }
}
