//! `policy build`: a component, and what it carries.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use portcullis_packs::{Pack, Provenance, digest};
use serde_json::json;

use super::project::Project;
use super::toolchain;
use crate::args::policy::Build;
use crate::exit::Exit;
use crate::page::{Page, cell};
use crate::surroundings::Surroundings;

/// Folders that hold nothing of the source.
const NOT_SOURCE: [&str; 5] = ["build", "target", "node_modules", ".git", "__pycache__"];

pub(super) fn run(build: &Build) -> crate::Outcome {
    let project = Project::open(&build.folder)?;
    let component = toolchain::compile(&project)?;
    let packed = pack(&project)?.embed(&component).context("putting the manifest into the component")?;
    check(&project, &packed)?;
    let output = match &build.output {
        Some(output) => write(output, &packed).map(|()| output.clone())?,
        None => project.bounds.replace(&project.built(), &packed).map(|()| project.output())?,
    };
    let around = Surroundings::read()?;
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

/// What was built must be a policy that this host loads, and be what the manifest says.
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

/// Where the user wants it; the file appears whole, or not at all.
fn write(output: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        fs::create_dir_all(folder).with_context(|| format!("making `{}`", folder.display()))?;
    }
    Ok(portcullis_packs::write(output, bytes)?)
}

/// SHA-256 over names and contents of the source.
fn source_digest(folder: &Path) -> anyhow::Result<String> {
    let mut files = BTreeMap::new();
    collect(folder, folder, &mut files)?;
    let lines: String = files.iter().map(|(name, digest)| format!("{digest}  {name}\n")).collect();
    Ok(digest(lines.as_bytes()))
}

fn collect(top: &Path, folder: &Path, files: &mut BTreeMap<String, String>) -> anyhow::Result<()> {
    let context = || format!("reading the source in `{}`", folder.display());
    for entry in fs::read_dir(folder).with_context(context)? {
        let entry = entry.with_context(context)?;
        let path: PathBuf = entry.path();
        let name = entry.file_name();
        let kind = entry.file_type().with_context(context)?;
        if kind.is_dir() && !NOT_SOURCE.iter().any(|skipped| name == *skipped) {
            collect(top, &path, files)?;
        } else if kind.is_file() && path.extension().is_none_or(|ending| ending != "wasm") {
            let relative = path.strip_prefix(top).unwrap_or(&path).display().to_string();
            files.insert(relative, digest(&fs::read(&path).with_context(context)?));
        }
    }
    Ok(())
}
