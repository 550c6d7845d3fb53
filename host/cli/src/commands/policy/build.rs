//! `policy build`: builds a component and embeds its pack.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use portcullis_packs::{Pack, Provenance, digest};
use serde_json::json;

use super::project::Project;
use super::source::source_digest;
use super::toolchain;
use crate::args::policy::Build;
use crate::exit::Exit;
use crate::output::{Page, cell};
use crate::process_env::ProcessEnv;

pub(super) fn run(build: &Build) -> crate::Outcome {
    let project = Project::open(&build.folder)?;
    let packed = match made(&project) {
        Err(error) if build.output.is_none() && project.output().exists() => {
            let output = project.output();
            return Err(
                error.context(format!("nothing was built, `{}` is of an earlier build", output.display()))
            );
        }
        made => made?,
    };
    let output = match &build.output {
        Some(output) => write(output, &packed).map(|()| output.clone())?,
        None => project.bounds.replace(&project.built(), &packed).map(|()| project.output())?,
    };
    let around = ProcessEnv::read()?;
    let mut page = Page::new(&around);
    let digest = format!("sha256:{}", digest(&packed));
    if build.json {
        page.json(&json!({ "component": output, "digest": digest, "bytes": packed.len() }));
    } else {
        let size = format!("{} bytes", packed.len());
        page.row("", &[cell(&output.display().to_string()), cell(&size), cell(&digest)], &[]);
    }
    page.print()?;
    Ok(Exit::Done)
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
    let said = super::runtime()?.describe(component).context("loading what was built")?;
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
