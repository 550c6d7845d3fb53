//! New entries of the user's trust file, in which none is ever removed.
//!
//! Entries are appended, so that the user's own text in the file stays. Revocations override all other entries.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::trust_files;
use portcullis_packs::{
    COMPONENT_MAX, Key, Store, StoreError, TRUST_MAX, digest, is_digest, read, read_text, write,
};
use serde::Serialize;

/// What to add to the trust file.
#[derive(Debug)]
pub enum TrustChange {
    /// A publisher with its keys.
    Publisher(NewPublisher),
    /// More keys of a publisher.
    Keys {
        /// The publisher.
        publisher: String,
        /// The keys, or files with them.
        keys: Vec<String>,
        /// When they count.
        dates: KeyDates,
    },
    /// A revoked key or digest.
    Revocation {
        /// The key, a file with it, or a digest.
        what: String,
        /// Why it is revoked.
        reason: String,
    },
    /// A file that is trusted by its digest.
    File(PathBuf),
}

/// The days on which a key begins and ceases to count.
#[derive(Debug, Clone, Default)]
pub struct KeyDates {
    /// The first day.
    pub valid_after: Option<String>,
    /// The last day.
    pub valid_before: Option<String>,
}

/// A publisher to add.
#[derive(Debug)]
pub struct NewPublisher {
    /// Its name.
    pub name: String,
    /// Its namespaces; without any, its name.
    pub namespaces: Vec<String>,
    /// Its registry: HOST/PATH.
    pub registry: Option<String>,
    /// Its keys, or files with them.
    pub keys: Vec<String>,
    /// Its `allowed_signers` file.
    pub signers: Option<PathBuf>,
    /// The number of keys that must have signed.
    pub threshold: u32,
    /// When its keys count.
    pub dates: KeyDates,
}

/// The entries that were appended.
#[derive(Debug, Default, Serialize)]
pub struct TrustEntries {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    publisher: Vec<PublisherEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    key: Vec<KeyEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    revoked: Vec<RevokedEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    trusted: Vec<TrustedEntry>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct PublisherEntry {
    name: String,
    namespaces: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    registry: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_signers: Option<String>,
    threshold: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct KeyEntry {
    publisher: String,
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_before: Option<String>,
}

#[derive(Debug, Serialize)]
struct RevokedEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    reason: String,
}

#[derive(Debug, Serialize)]
struct TrustedEntry {
    digest: String,
    note: String,
}

/// Adds entries to the user's trust file and returns them.
///
/// # Errors
/// If a key cannot be read, or the file is invalid or cannot be written.
pub fn add_trust(around: &ProcessEnv, change: TrustChange) -> anyhow::Result<TrustEntries> {
    let entries = match change {
        TrustChange::Publisher(publisher) => publisher_entries(around, &publisher)?,
        TrustChange::Keys { publisher, keys, dates } => {
            let key = keys.iter().map(|key| key_entry(around, &publisher, key, &dates));
            let key = key.collect::<anyhow::Result<_>>()?;
            TrustEntries { key, ..TrustEntries::default() }
        }
        TrustChange::Revocation { what, reason } => {
            let revoked = vec![revoked_entry(around, &what, reason)?];
            TrustEntries { revoked, ..TrustEntries::default() }
        }
        TrustChange::File(file) => {
            let bytes = read(&around.absolute(&file), COMPONENT_MAX)?;
            let note = file.display().to_string();
            let digest = format!("sha256:{}", digest(&bytes));
            TrustEntries { trusted: vec![TrustedEntry { digest, note }], ..TrustEntries::default() }
        }
    };
    append(&trust_files::user_file(&around.agent_directory), &entries)?;
    Ok(entries)
}

/// Appends entries. The new text is parsed before it is written, so that an invalid file is never written.
fn append(file: &Path, entries: &TrustEntries) -> anyhow::Result<()> {
    let store = Store::new(file.parent().unwrap_or_else(|| Path::new("/")));
    let _alone = store.begin()?;
    let before = match read_text(file, TRUST_MAX) {
        Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            "# Trusted publishers: see `portcullis policy trust --help`.\n".to_owned()
        }
        text => text?,
    };
    trust_files::parse(file, &before).context("fix this file first")?;
    let added = toml::to_string(entries).context("writing the entry")?;
    let text = format!("{}\n\n{added}", before.trim_end());
    trust_files::parse(file, &text).context("nothing was written")?;
    Ok(write(file, text.as_bytes())?)
}

fn publisher_entries(around: &ProcessEnv, publisher: &NewPublisher) -> anyhow::Result<TrustEntries> {
    if publisher.keys.is_empty() && publisher.signers.is_none() {
        bail!("a publisher needs a key; give `--key` or `--signers`");
    }
    let name = publisher.name.clone();
    let namespaces = match publisher.namespaces.as_slice() {
        [] => vec![name.clone()],
        namespaces => namespaces.to_vec(),
    };
    let registry =
        publisher.registry.as_deref().map(|text| text.trim_start_matches("oci://").trim_end_matches('/'));
    if let Some(registry) = registry {
        portcullis_packs::Reference::parse(&format!("{registry}/x"))?;
    }
    let keys = publisher.keys.iter().map(|key| key_entry(around, &name, key, &publisher.dates));
    Ok(TrustEntries {
        key: keys.collect::<anyhow::Result<_>>()?,
        publisher: vec![PublisherEntry {
            allowed_signers: publisher
                .signers
                .as_deref()
                .map(|file| copied(around, &name, file))
                .transpose()?,
            namespaces,
            registry: registry.map(str::to_owned),
            threshold: publisher.threshold,
            name,
        }],
        ..TrustEntries::default()
    })
}

/// Copies a signers file beside the trust file, where the agent cannot write.
fn copied(around: &ProcessEnv, name: &str, file: &Path) -> anyhow::Result<String> {
    let text = read_text(&around.absolute(file), TRUST_MAX)?;
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.is_empty() || !name.bytes().all(is_word) {
        bail!("`{name}` cannot be the name of a file; name the publisher with letters, digits, `-` and `_`");
    }
    let copy = format!("{name}.allowed_signers");
    let to = trust_files::user_file(&around.agent_directory).with_file_name(&copy);
    if to.exists() {
        bail!("`{}` is there already; the publisher is known", to.display());
    }
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("making `{}`", folder.display()))?;
    }
    write(&to, text.as_bytes())?;
    Ok(copy)
}

fn key_entry(around: &ProcessEnv, publisher: &str, text: &str, dates: &KeyDates) -> anyhow::Result<KeyEntry> {
    Ok(KeyEntry {
        publisher: publisher.to_owned(),
        key: key_text(around, text)?,
        valid_after: dates.valid_after.clone(),
        valid_before: dates.valid_before.clone(),
    })
}

/// Returns the line of a key, from the argument itself or from a file.
fn key_text(around: &ProcessEnv, text: &str) -> anyhow::Result<String> {
    let text = match Key::parse(text) {
        Ok(_) => text.to_owned(),
        Err(error) => {
            let file: PathBuf = around.absolute(Path::new(text));
            if !file.exists() {
                return Err(error).with_context(|| format!("`{text}` is neither a key nor a file with one"));
            }
            read_text(&file, TRUST_MAX)?
        }
    };
    Key::parse(&text).context("reading the key")?;
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.rfind(|line| !line.starts_with("untrusted comment:"));
    Ok(line.unwrap_or_default().to_owned())
}

fn revoked_entry(around: &ProcessEnv, what: &str, reason: String) -> anyhow::Result<RevokedEntry> {
    if is_digest(what) {
        return Ok(RevokedEntry { key: None, digest: Some(what.to_owned()), reason });
    }
    let key = if what.starts_with("SHA256:") { what.to_owned() } else { key_text(around, what)? };
    Ok(RevokedEntry { key: Some(key), digest: None, reason })
}
