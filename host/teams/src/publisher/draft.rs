//! The content of a bundle, from the files of a publisher's folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use portcullis_packs::{COMPONENT_MAX, Pack, Seconds, TRUST_MAX, read, read_text};
use semver::Version;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::error::FolderError;
use crate::bundle::{BUNDLE, Bundle, BundlePack};
use crate::stage::Stage;

/// The file that describes a bundle.
pub(super) const BUNDLE_FILE: &str = "bundle.toml";
/// Largest file of settings or of a preset, in bytes.
const TEXT_LIMIT: usize = 256 << 10;
/// How long a bundle is valid, unless its file says otherwise.
const VALID_DAYS: u32 = 90;
pub(super) const DAY: Seconds = 24 * 60 * 60;

/// The text of a new `bundle.toml`.
pub(super) const TEMPLATE: &str = "\
# What the members of the team get. Beside this file may lie:
#   settings.json   settings that only tighten, as in /etc/portcullis/settings.json
#   trust.toml      publishers and revocations, as in `portcullis policy trust`
#   presets/        presets, as NAME.preset
valid-days = 90
# minimum-program = \"0.1.0\"

# [[pack]]
# file = \"guard.wasm\"
# stage = { enforce = 0, observe = 10 }   # percent of the machines; without it, all enforce it
";

/// The content of a bundle that is not published yet.
#[derive(Debug, Clone)]
pub struct BundleDraft {
    /// The bundle, without version and expiry.
    pub(super) bundle: Bundle,
    /// How long it will be valid.
    pub(super) valid: Seconds,
    /// The components of its packs, by digest.
    pub packs: Vec<PackFile>,
}

/// A pack of a draft.
#[derive(Debug, Clone)]
pub struct PackFile {
    /// The digest.
    pub digest: String,
    /// The component.
    pub bytes: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    #[serde(default)]
    valid_days: Option<u32>,
    #[serde(default)]
    minimum_program: Option<Version>,
    #[serde(default)]
    pack: Vec<PackEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PackEntry {
    file: String,
    #[serde(default)]
    stage: Stage,
    #[serde(default)]
    config: Map<String, Value>,
}

impl BundleDraft {
    /// Returns the bundle.
    #[must_use]
    pub fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    /// Reads the content from the files of a folder.
    pub(super) fn read(folder: &Path, team: &str) -> Result<Self, FolderError> {
        let path = folder.join(BUNDLE_FILE);
        let wrong = |reason: String| FolderError::Content { path: path.clone(), reason };
        let file: File =
            toml::from_str(&read_text(&path, TEXT_LIMIT)?).map_err(|error| wrong(error.to_string()))?;
        let days = file.valid_days.unwrap_or(VALID_DAYS);
        if !(1..=730).contains(&days) {
            return Err(wrong("`valid-days` is a number from 1 to 730".to_owned()));
        }
        let (mut entries, mut packs) = (Vec::new(), Vec::new());
        for entry in file.pack {
            let (pack, component) = pack(folder, entry)?;
            entries.push(pack);
            packs.push(component);
        }
        let bundle = Bundle {
            role: BUNDLE.to_owned(),
            team: team.to_owned(),
            version: 0,
            expires_at: 0,
            minimum_program: file.minimum_program,
            settings: settings(&folder.join("settings.json"))?,
            presets: presets(&folder.join("presets"))?,
            packs: entries,
            trust: optional(&folder.join("trust.toml"), TRUST_MAX)?,
            yanked: Vec::new(),
        };
        bundle.check().map_err(wrong)?;
        Ok(Self { bundle, valid: Seconds::from(days) * DAY, packs })
    }
}

fn pack(folder: &Path, entry: PackEntry) -> Result<(BundlePack, PackFile), FolderError> {
    let path = folder.join(&entry.file);
    let bytes = read(&path, COMPONENT_MAX)?;
    let wrong = |reason: String| FolderError::Content { path: path.clone(), reason };
    let read = Pack::read(&bytes).map_err(|error| wrong(error.to_string()))?;
    let about = read.ok_or_else(|| wrong("it is no pack; `portcullis policy build` makes one".to_owned()))?;
    let about = about.manifest.policy;
    let version = about.version.parse().map_err(|_| wrong(format!("`{}` is no version", about.version)))?;
    let digest = format!("sha256:{}", portcullis_packs::digest(&bytes));
    let size = bytes.len() as u64;
    let (config, stage) = (entry.config, entry.stage);
    let pack = BundlePack { id: about.id, version, digest: digest.clone(), size, config, stage };
    Ok((pack, PackFile { digest, bytes }))
}

fn optional(path: &Path, max: usize) -> Result<String, FolderError> {
    if path.exists() { Ok(read_text(path, max)?) } else { Ok(String::new()) }
}

fn settings(path: &Path) -> Result<Map<String, Value>, FolderError> {
    let text = optional(path, TEXT_LIMIT)?;
    if text.is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(&text).map_err(|error| {
        let (path, reason) = (path.to_owned(), error.to_string());
        FolderError::Content { path, reason }
    })
}

fn presets(directory: &Path) -> Result<BTreeMap<String, String>, FolderError> {
    let mut presets = BTreeMap::new();
    if !directory.exists() {
        return Ok(presets);
    }
    let entries = fs::read_dir(directory);
    for entry in entries.map_err(|source| FolderError::Directory(directory.to_owned(), source))? {
        let path = entry.map_err(|source| FolderError::Directory(directory.to_owned(), source))?.path();
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        if path.extension().is_some_and(|ending| ending == "preset") {
            presets.insert(name, read_text(&path, TEXT_LIMIT)?);
        }
    }
    Ok(presets)
}
