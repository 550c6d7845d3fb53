//! The folder of a policy, with its manifest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use portcullis_bootstrap::manifest::MANIFEST;
use portcullis_packs::Manifest;

use super::confined_dir::ConfinedDir;

/// The folder of a policy.
#[derive(Debug)]
pub struct Project {
    /// Its path, as named.
    pub folder: PathBuf,
    /// Its manifest.
    pub manifest: Manifest,
    pub(crate) directory: ConfinedDir,
}

impl Project {
    /// Reads the manifest in a folder.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let missing =
            || format!("there is no policy in `{}`; `portcullis policy new` begins one", folder.display());
        let directory = ConfinedDir::around(folder).with_context(missing)?;
        let text = directory.text(Path::new(MANIFEST)).with_context(missing)?;
        let file = folder.join(MANIFEST);
        let manifest = Manifest::parse(&text).with_context(|| format!("reading `{}`", file.display()))?;
        Ok(Self { folder: folder.to_owned(), manifest, directory })
    }

    /// Returns the output path of `policy build`, relative to the folder.
    pub fn built(&self) -> PathBuf {
        let id = self.manifest.policy.id.as_str();
        let name = id.split_once(':').map_or(id, |(_, name)| name);
        Path::new("build").join(name).with_extension("wasm")
    }

    /// Returns the output path of `policy build`.
    pub fn output(&self) -> PathBuf {
        self.folder.join(self.built())
    }

    /// Returns the folder of the source, which must lie in the same repository.
    pub fn source(&self) -> anyhow::Result<PathBuf> {
        self.directory.inside(Path::new(&self.manifest.build.source))
    }

    /// Returns the cases that the manifest names, by file name.
    pub fn cases(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let mut cases = BTreeMap::new();
        let mut take = |file: &Path| -> anyhow::Result<()> {
            cases.insert(name_of(file), self.directory.text(file)?);
            Ok(())
        };
        for pattern in &self.manifest.tests.files {
            match pattern.strip_suffix("*.toml") {
                Some(folder) => {
                    let folder = Path::new(folder);
                    let names = self.directory.names(folder)?;
                    let cases = names.iter().map(|name| folder.join(name)).filter(|file| is_case(file));
                    cases.into_iter().try_for_each(|file| take(&file))?;
                }
                None => take(Path::new(pattern))?,
            }
        }
        Ok(cases)
    }

    /// Returns the schema of the configuration; empty if the manifest names none.
    pub fn schema(&self) -> anyhow::Result<String> {
        match self.manifest.config.schema.as_str() {
            "" => Ok(String::new()),
            file => self.directory.text(Path::new(file)),
        }
    }

    /// Returns the text of an optional file; empty if it does not exist.
    pub fn optional(&self, name: &str) -> anyhow::Result<String> {
        Ok(self.directory.text_if_there(Path::new(name))?.unwrap_or_default())
    }
}

/// Returns true if a file holds cases, by its name.
pub(super) fn is_case(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ending == "toml")
}

/// Returns the name of a file without its directory.
pub(super) fn name_of(file: &Path) -> String {
    file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
