//! A policy's project: a folder with a manifest, or a component with an embedded pack.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use portcullis_packs::{Manifest, Pack};
use portcullis_policy_runtime::read_component;
use portcullis_text::escape;

use super::confined_dir::{Bounds, TEXT_MAX};
use super::source::check_fresh;
use crate::exit::say;
use crate::manifest::MANIFEST;

/// The folder of a policy.
#[derive(Debug)]
pub(super) struct Project {
    pub(super) folder: PathBuf,
    pub(super) manifest: Manifest,
    pub(super) bounds: Bounds,
}

/// A component with its pack.
#[derive(Debug)]
pub(super) struct Component {
    /// Its path.
    pub(super) file: PathBuf,
    pub(super) bytes: Vec<u8>,
    pub(super) pack: Option<Pack>,
    /// The folder that it was built in, if the user named the folder.
    pub(super) project: Option<Project>,
}

impl Project {
    /// Reads the manifest in a folder.
    pub(super) fn open(folder: &Path) -> anyhow::Result<Self> {
        let missing =
            || format!("there is no policy in `{}`; `portcullis policy new` begins one", folder.display());
        let bounds = Bounds::around(folder).with_context(missing)?;
        let text = bounds.text(Path::new(MANIFEST)).with_context(missing)?;
        let file = folder.join(MANIFEST);
        let manifest = Manifest::parse(&text).with_context(|| format!("reading `{}`", file.display()))?;
        Ok(Self { folder: folder.to_owned(), manifest, bounds })
    }

    /// Returns the output path of `policy build`, relative to the folder.
    pub(super) fn built(&self) -> PathBuf {
        let id = self.manifest.policy.id.as_str();
        let name = id.split_once(':').map_or(id, |(_, name)| name);
        Path::new("build").join(name).with_extension("wasm")
    }

    /// Returns the output path of `policy build`.
    pub(super) fn output(&self) -> PathBuf {
        self.folder.join(self.built())
    }

    /// Returns the folder of the source, which must lie in the same repository.
    pub(super) fn source(&self) -> anyhow::Result<PathBuf> {
        self.bounds.inside(Path::new(&self.manifest.build.source))
    }

    /// Returns the cases that the manifest names, by file name.
    pub(super) fn cases(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let mut cases = BTreeMap::new();
        let mut take = |file: &Path| -> anyhow::Result<()> {
            cases.insert(name_of(file), self.bounds.text(file)?);
            Ok(())
        };
        for pattern in &self.manifest.tests.files {
            match pattern.strip_suffix("*.toml") {
                Some(folder) => {
                    let folder = Path::new(folder);
                    let names = self.bounds.names(folder)?;
                    let cases = names.iter().map(|name| folder.join(name)).filter(|file| is_case(file));
                    cases.into_iter().try_for_each(|file| take(&file))?;
                }
                None => take(Path::new(pattern))?,
            }
        }
        Ok(cases)
    }

    /// Returns the schema of the configuration; empty if the manifest names none.
    pub(super) fn schema(&self) -> anyhow::Result<String> {
        match self.manifest.config.schema.as_str() {
            "" => Ok(String::new()),
            file => self.bounds.text(Path::new(file)),
        }
    }

    /// Returns the text of an optional file; empty if it does not exist.
    pub(super) fn optional(&self, name: &str) -> anyhow::Result<String> {
        Ok(self.bounds.text_if_there(Path::new(name))?.unwrap_or_default())
    }
}

impl Component {
    /// Reads a component, or the one that was built in a folder, which must match the source there.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let (file, project) = if path.is_dir() {
            let project = Project::open(path)?;
            let (built, kept) = (project.output(), project.folder.join("policy.wasm"));
            let file = match (built.exists(), kept.exists()) {
                (true, _) => built,
                (false, true) => {
                    let folder = escape(&path.to_string_lossy());
                    say(&format!(
                        "portcullis: nothing is built in `{folder}`, so its `policy.wasm` is taken"
                    ));
                    kept
                }
                (false, false) => bail!(
                    "`{}` is not built; run `portcullis policy build {}`",
                    built.display(),
                    path.display()
                ),
            };
            (file, Some(project))
        } else {
            (path.to_owned(), None)
        };
        let bytes = read_component(&file)?;
        let pack =
            Pack::read(&bytes).with_context(|| format!("reading what `{}` carries", file.display()))?;
        if let Some(project) = project.as_ref().filter(|project| file == project.output()) {
            check_fresh(project, &file, pack.as_ref())?;
        }
        Ok(Self { file, bytes, pack, project })
    }

    /// Returns its cases: those in the folder, or those in its pack.
    pub(super) fn cases(&self) -> anyhow::Result<BTreeMap<String, String>> {
        match (&self.project, &self.pack) {
            (Some(project), _) => project.cases(),
            (None, Some(pack)) => Ok(pack.cases.clone()),
            (None, None) => Ok(BTreeMap::new()),
        }
    }

    /// Returns the name of its file, without the extension.
    pub(super) fn name(&self) -> String {
        self.file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

/// Returns the cases in a file, or in all `.toml` files of a folder.
pub(super) fn cases_at(path: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    if path.is_dir() { cases_in(path) } else { Ok(BTreeMap::from([(name_of(path), read_text(path)?)])) }
}

fn cases_in(folder: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut cases = BTreeMap::new();
    let entries =
        fs::read_dir(folder).with_context(|| format!("listing the cases in `{}`", folder.display()))?;
    for entry in entries {
        let file = entry?.path();
        if is_case(&file) {
            cases.insert(name_of(&file), read_text(&file)?);
        }
    }
    Ok(cases)
}

fn is_case(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ending == "toml")
}

fn name_of(file: &Path) -> String {
    file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn read_text(file: &Path) -> anyhow::Result<String> {
    let context = || format!("reading `{}`", file.display());
    let size = fs::metadata(file).with_context(context)?.len();
    if size > TEXT_MAX {
        bail!("`{}` is larger than 512 KiB", file.display());
    }
    fs::read_to_string(file).with_context(context)
}
