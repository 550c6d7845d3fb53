//! Builds a component and embeds its pack.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use portcullis_packs::{Pack, Provenance};

use super::folder::Project;
use super::source::source_digest;
use super::toolchain;
use crate::runtime::runtime;

/// A component that was built.
#[derive(Debug)]
pub struct Built {
    /// Its file.
    pub output: PathBuf,
    /// Its bytes, with the pack.
    pub bytes: Vec<u8>,
}

/// Builds the policy in a folder, into `output` or the usual file.
///
/// # Errors
/// If the toolchain fails, or the component and the manifest disagree.
pub fn build(folder: &Path, output: Option<&Path>) -> anyhow::Result<Built> {
    let project = Project::open(folder)?;
    let bytes = match made(&project) {
        Err(error) if output.is_none() && project.output().exists() => {
            let output = project.output();
            return Err(
                error.context(format!("nothing was built, `{}` is of an earlier build", output.display()))
            );
        }
        made => made?,
    };
    let output = match output {
        Some(output) => write(output, &bytes).map(|()| output.to_owned())?,
        None => project.directory.replace(&project.built(), &bytes).map(|()| project.output())?,
    };
    Ok(Built { output, bytes })
}

/// Returns the component with its pack.
fn made(project: &Project) -> anyhow::Result<Vec<u8>> {
    let component = toolchain::compile(project)?;
    let packed = pack(project)?.embed(&component).context("putting the manifest into the component")?;
    check(project, &packed)?;
    Ok(packed)
}

fn pack(project: &Project) -> anyhow::Result<Pack> {
    let language = toml_name(project);
    Ok(Pack {
        manifest: project.manifest.clone(),
        schema: project.schema()?,
        cases: project.cases()?,
        readme: project.optional("README.md")?,
        licence: project.optional("LICENSE")?,
        provenance: Provenance {
            builder: concat!("portcullis ", env!("CARGO_PKG_VERSION")).to_owned(),
            language,
            source: source_digest(&project.source()?)?,
        },
    })
}

fn toml_name(project: &Project) -> String {
    serde_json::to_value(project.manifest.build.language)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Checks that the component is a policy that this host can load, and that it agrees with the manifest.
fn check(project: &Project, component: &[u8]) -> anyhow::Result<()> {
    let said = runtime()?.describe(component).context("loading the built component")?;
    let about = &project.manifest.policy;
    for (what, manifest, own) in [("id", &about.id, &said.id), ("version", &about.version, &said.version)] {
        if manifest != own {
            bail!("the {what} is `{manifest}` in `policy.toml` and `{own}` in the policy's own description");
        }
    }
    Ok(())
}

/// Writes the output file atomically.
fn write(output: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        fs::create_dir_all(folder).with_context(|| format!("making `{}`", folder.display()))?;
    }
    Ok(portcullis_packs::write(output, bytes)?)
}
