//! A component with its pack, and its cases.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use portcullis_bootstrap::streams::say;
use portcullis_packs::{Capabilities, Pack};
use portcullis_policy_runtime::{ComponentPolicy, Runtime, read_component};
use portcullis_text::escape;

use super::confined_dir::TEXT_MAX;
use super::folder::{Project, is_case, name_of};
use super::source::check_fresh;
use crate::corpus::{Item, of_cases};
use crate::policy_text::PolicyText;

/// A component with its pack.
#[derive(Debug)]
pub struct Component {
    /// Its path.
    pub file: PathBuf,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The pack that it carries.
    pub pack: Option<Pack>,
    /// The folder that it was built in, if the user named the folder.
    pub project: Option<Project>,
    /// The text that the component runs, if the user named a text.
    pub text: Option<PolicyText>,
}

impl Component {
    /// Reads a component, or the one that was built in a folder, which must match the source there. For a text, it is
    /// the shipped component of the language.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        if let Some((text, bytes)) = PolicyText::open(path)? {
            return Ok(Self { file: path.to_owned(), bytes, pack: None, project: None, text: Some(text) });
        }
        let (file, project) = if path.is_dir() {
            let project = Project::open(path)?;
            let (built, kept) = (project.output(), project.folder.join("policy.wasm"));
            let file = match (built.exists(), kept.exists()) {
                (true, _) => built,
                (false, true) => {
                    let folder = escape(&path.to_string_lossy());
                    say(&format!("portcullis: nothing is built in `{folder}`, so its `policy.wasm` is used"));
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
            Pack::read(&bytes).with_context(|| format!("reading the metadata of `{}`", file.display()))?;
        if let Some(project) = project.as_ref().filter(|project| file == project.output()) {
            check_fresh(project, &file, pack.as_ref())?;
        }
        Ok(Self { file, bytes, pack, project, text: None })
    }

    /// Returns its cases: those in the folder, or those in its pack.
    pub fn cases(&self) -> anyhow::Result<BTreeMap<String, String>> {
        match (&self.project, &self.pack) {
            (Some(project), _) => project.cases(),
            (None, Some(pack)) => Ok(pack.cases.clone()),
            (None, None) => Ok(BTreeMap::new()),
        }
    }

    /// Loads it as a policy with this configuration, and with the capabilities that its manifest asks for.
    ///
    /// # Errors
    /// If it is no policy that this host can run, or refuses the configuration.
    pub fn load(&self, runtime: &Runtime, config: &str) -> anyhow::Result<ComponentPolicy> {
        Ok(with_capabilities(self.load_whole(runtime, config)?, self.capabilities()))
    }

    /// Loads it with every capability, for tests that call all its functions many times.
    ///
    /// # Errors
    /// As for [`Component::load`].
    pub fn load_whole(&self, runtime: &Runtime, config: &str) -> anyhow::Result<ComponentPolicy> {
        let config = match &self.text {
            Some(text) => text.in_config(config)?,
            None => config.to_owned(),
        };
        let policy = runtime
            .load(&self.name(), &self.bytes, &config)
            .map(ComponentPolicy::rewriting)
            .with_context(|| format!("loading `{}`", self.file.display()))?;
        if self.text.is_some()
            && let Some(job) = policy.snapshot_job()
        {
            // Without a snapshot, the engine reads its text again in each of more than a thousand calls.
            job.run().with_context(|| format!("preparing `{}`", self.file.display()))?;
        }
        Ok(policy)
    }

    /// Returns the capabilities that its manifest asks for; `None` without a manifest.
    pub fn capabilities(&self) -> Option<&Capabilities> {
        self.pack.as_ref().map(|pack| &pack.manifest.capabilities)
    }

    /// Returns the name of its file, without the extension.
    pub fn name(&self) -> String {
        self.file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

/// Leaves a policy only the capabilities that its manifest asks for, as a session does with a pack. A component without
/// a manifest sees outputs, as a file does.
pub(crate) fn with_capabilities(policy: ComponentPolicy, asked: Option<&Capabilities>) -> ComponentPolicy {
    let policy = if asked.is_none_or(|asked| asked.output) { policy } else { policy.without_output() };
    if asked.is_some_and(|asked| asked.rewrites) { policy.rewriting() } else { policy.without_rewrites() }
}

/// Returns the requests of the cases of several components, each once.
///
/// # Errors
/// If cases cannot be read.
pub fn requests_of(components: &[&Component]) -> anyhow::Result<Vec<Item>> {
    let mut corpus = Vec::new();
    for component in components {
        for (file, text) in component.cases()? {
            let items = of_cases(&file, &text).with_context(|| format!("reading the cases `{file}`"))?;
            // Two versions of a policy mostly have the same cases.
            corpus.extend(items.into_iter().filter(|item| !corpus.contains(item)).collect::<Vec<_>>());
        }
    }
    Ok(corpus)
}

/// Returns the cases in a file, or in all `.toml` files of a folder.
pub fn cases_at(path: &Path) -> anyhow::Result<BTreeMap<String, String>> {
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

fn read_text(file: &Path) -> anyhow::Result<String> {
    let context = || format!("reading `{}`", file.display());
    let size = fs::metadata(file).with_context(context)?.len();
    if size > TEXT_MAX {
        bail!("`{}` is larger than 512 KiB", file.display());
    }
    fs::read_to_string(file).with_context(context)
}
