//! A home directory and a project in a temporary directory.

use std::path::{Path, PathBuf};

use portcullis_settings::{FoundSettings, Places, RealDisk, Resolved, discover, resolve};
use portcullis_settings_format::ConfigError;

pub(crate) struct World {
    pub(crate) places: Places,
    pub(crate) root: PathBuf,
    _directory: tempfile::TempDir,
}

impl World {
    /// Creates `home/u` with `work/foo` in it, and places for all other paths in the same directory.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let home = root.join("home/u");
        let workspace = home.join("work/foo");
        std::fs::create_dir_all(&workspace).unwrap();
        std::fs::create_dir_all(home.join(".pi/agent/sandbox")).unwrap();
        let mut places = Places::usual(&workspace, &home);
        places.machine_directory = root.join("etc/portcullis");
        places.temp = root.join("tmp");
        Self { places, root, _directory: directory }
    }

    pub(crate) fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn link(&self, link: &str, target: &Path) {
        let link = self.root.join(link);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, link).unwrap();
    }

    pub(crate) fn discover(&self) -> Result<FoundSettings, ConfigError> {
        discover(&self.places, &RealDisk)
    }

    pub(crate) fn resolve(&self) -> Result<Resolved, ConfigError> {
        self.discover().and_then(|found| resolve(&found, &self.places, &RealDisk))
    }
}

/// Returns settings that are recognizable by their only denied host.
pub(crate) fn marked(mark: &str) -> String {
    format!(
        r#"{{ "network": {{ "allowedDomains": [], "deniedDomains": ["{mark}.example"] }},
             "filesystem": {{ "denyRead": [], "allowWrite": ["."], "denyWrite": [] }} }}"#
    )
}
