//! Registry credentials that `docker login` has stored.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::store::{StoreError, read_text};

/// Largest file of credentials, in bytes.
const FILE_MAX: usize = 1 << 20;

/// Credentials by registry.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    file: File,
    /// Directories to search for credential helpers.
    path: Vec<PathBuf>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(default)]
    auths: BTreeMap<String, Auth>,
    #[serde(default)]
    creds_store: Option<String>,
    #[serde(default)]
    cred_helpers: BTreeMap<String, String>,
}

#[derive(Clone, Default, Deserialize)]
struct Auth {
    #[serde(default)]
    auth: String,
}

impl std::fmt::Debug for File {
    /// Shows only the names of the registries, never secrets.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("File").field("registries", &self.auths.keys()).finish_non_exhaustive()
    }
}

/// The output of a credential helper.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Helped {
    username: String,
    secret: String,
}

impl Credentials {
    /// Reads docker's `config.json`.
    ///
    /// Without the file there are no credentials. Helpers that it names are searched in the directories of
    /// `path`.
    ///
    /// # Errors
    /// Fails when the file exists but cannot be used.
    pub fn read(file: &Path, path: &[PathBuf]) -> Result<Self, String> {
        let text = match read_text(file, FILE_MAX) {
            Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            text => text.map_err(|error| error.to_string())?,
        };
        let file =
            serde_json::from_str(&text).map_err(|error| format!("reading `{}`: {error}", file.display()))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Returns `name:secret` for a registry, or `None` if there are no credentials for it.
    pub(super) fn find(&self, host: &str) -> Result<Option<String>, String> {
        let helper = self.file.cred_helpers.get(host).or(self.file.creds_store.as_ref());
        if let Some(helper) = helper {
            return ask(helper, host, &self.path);
        }
        let known = [host.to_owned(), format!("https://{host}"), format!("https://{host}/v1/")];
        let Some(auth) = known.iter().find_map(|name| self.file.auths.get(name)) else { return Ok(None) };
        let decoded = STANDARD.decode(&auth.auth).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        match decoded {
            Some(pair) if pair.contains(':') => Ok(Some(pair)),
            Some(_) | None => Err("the entry is no name and secret; log in again".to_owned()),
        }
    }
}

/// Asks one of docker's credential helpers.
fn ask(helper: &str, host: &str, path: &[PathBuf]) -> Result<Option<String>, String> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if helper.is_empty() || !helper.bytes().all(is_word) {
        return Err(format!("`{helper}` is no name of a helper"));
    }
    let program = format!("docker-credential-{helper}");
    let failed = |error: std::io::Error| format!("asking `{program}`: {error}");
    let found = path.iter().map(|folder| folder.join(&program)).find(|file| file.is_file());
    let mut child = Command::new(found.ok_or_else(|| format!("`{program}` is not in PATH"))?)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(host.as_bytes()).map_err(failed)?;
    }
    let output = child.wait_with_output().map_err(failed)?;
    if !output.status.success() {
        // Helpers report missing credentials in this way.
        return Ok(None);
    }
    let helped: Helped =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("reading `{program}`: {error}"))?;
    Ok(Some(format!("{}:{}", helped.username, helped.secret)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_docker_keeps() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.json");
        assert_eq!(Credentials::read(&file, &[]).unwrap().find("a.test").unwrap(), None);
        let text =
            r#"{"auths": {"a.test": {"auth": "bmFtZTpzZWNyZXQ="}, "b.test": {"auth": "xx"}}, "other": 1}"#;
        std::fs::write(&file, text).unwrap();
        let known = Credentials::read(&file, &[]).unwrap();
        assert_eq!(known.find("a.test").unwrap().as_deref(), Some("name:secret"));
        assert_eq!(known.find("c.test").unwrap(), None);
        assert!(known.find("b.test").is_err());
        assert!(!format!("{known:?}").contains("bmFt"));
        std::fs::write(&file, r#"{"credsStore": "../evil"}"#).unwrap();
        assert!(Credentials::read(&file, &[]).unwrap().find("a.test").is_err());
    }
}
