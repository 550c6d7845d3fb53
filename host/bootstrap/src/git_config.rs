//! Reads files of git's configuration, without includes and without git.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::process_env::ProcessEnv;

/// The most bytes that are read of a file.
const FILE_MAX: u64 = 256 * 1024;
/// The flag of open(2) for files that could block.
const NO_BLOCKING: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

/// Returns the key with which the user's own git signs: the path of a public key, or a key of `gpg`.
#[must_use]
pub fn signing_key(around: &ProcessEnv) -> Option<String> {
    let files = [around.home.join(".gitconfig"), around.home.join(".config/git/config")];
    let configs: Vec<Config> =
        files.iter().filter_map(|file| small_text(file)).map(|text| Config::parse(&text)).collect();
    let value = |section, key| configs.iter().find_map(|config| config.value(section, "", key));
    let key = value("user", "signingkey").filter(|key| !key.is_empty())?;
    match value("gpg", "format").as_deref() {
        Some("ssh") => {
            let public = if key.ends_with(".pub") { key } else { format!("{key}.pub") };
            (public.starts_with('/') || public.starts_with("~/")).then_some(public)
        }
        Some("x509") => None,
        Some(_) | None => Some(key),
    }
}

/// Reads a text file of limited size; `None` if there is none.
pub(crate) fn small_text(file: &Path) -> Option<String> {
    let opened = OpenOptions::new().read(true).custom_flags(NO_BLOCKING).open(file).ok()?;
    opened.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut text = String::new();
    opened.take(FILE_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The values in a configuration of git: section, subsection, key and value.
pub(crate) struct Config(Vec<(String, String, String, String)>);

impl Config {
    /// Reads a text. Lines that are none of git's are left out.
    pub(crate) fn parse(text: &str) -> Self {
        let (mut section, mut sub) = (String::new(), String::new());
        let mut values = Vec::new();
        for line in text.lines().map(str::trim) {
            if let Some(header) =
                line.strip_prefix('[').and_then(|line| line.split_once(']')).map(|(in_it, _)| in_it)
            {
                let (name, rest) = header.split_once(char::is_whitespace).unwrap_or((header, ""));
                section = name.to_ascii_lowercase();
                rest.trim().trim_matches('"').clone_into(&mut sub);
            } else if let Some((key, value)) = line.split_once('=') {
                let key = key.trim().to_ascii_lowercase();
                values.push((section.clone(), sub.clone(), key, value.trim().trim_matches('"').to_owned()));
            }
        }
        Self(values)
    }

    /// Returns the last value, as git does.
    pub(crate) fn value(&self, section: &str, sub: &str, key: &str) -> Option<String> {
        let is_it = |known: &&(String, String, String, String)| {
            known.0 == section && known.1 == sub && known.2 == key
        };
        self.0.iter().rfind(is_it).map(|known| known.3.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_that_of_the_users_git() {
        let directory = tempfile::tempdir().unwrap();
        let around = ProcessEnv { home: directory.path().to_owned(), ..ProcessEnv::read().unwrap() };
        assert_eq!(signing_key(&around), None);
        let key = |text: &str| {
            std::fs::write(directory.path().join(".gitconfig"), text).unwrap();
            signing_key(&around)
        };
        assert_eq!(key("[user]\n\tsigningKey = 0xABCD\n").as_deref(), Some("0xABCD"));
        let of_ssh = "[gpg]\nformat = ssh\n[user]\n\tsigningkey = ~/.ssh/id_ed25519\n";
        assert_eq!(key(of_ssh).as_deref(), Some("~/.ssh/id_ed25519.pub"));
        assert_eq!(key("[gpg]\nformat = ssh\n[user]\nsigningkey = key::ssh-ed25519 AAAA\n"), None);
        assert_eq!(key("[gpg]\nformat = x509\n[user]\nsigningkey = 0xABCD\n"), None);
    }
}
