//! `policy.toml`: what a policy is, what it wants, and how it is built.

use serde::{Deserialize, Serialize};

use crate::error::PackError;

/// Longest manifest, in bytes.
pub const MANIFEST_MAX: usize = 64 << 10;

/// The manifest of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Manifest {
    /// What it is.
    pub policy: About,
    /// What it was written for.
    pub contract: Contract,
    /// How it is built; a pack that was built elsewhere need not say.
    #[serde(default)]
    pub build: Build,
    /// What it wants of the host.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// Its configuration.
    #[serde(default)]
    pub config: Config,
    /// Its cases.
    #[serde(default)]
    pub tests: Tests,
}

/// What a policy is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct About {
    /// `namespace:name`, as in the component's own description.
    pub id: String,
    /// Semantic version, as in the component's own description.
    pub version: String,
    /// A few words.
    pub title: String,
    /// A sentence.
    #[serde(default)]
    pub description: String,
    /// SPDX expression.
    #[serde(default)]
    pub license: String,
    /// Names, with addresses if they like.
    #[serde(default)]
    pub authors: Vec<String>,
    /// Where its source lies.
    #[serde(default)]
    pub repository: String,
}

/// What a policy was written for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Contract {
    /// Name of the contract.
    #[serde(default = "contract")]
    pub package: String,
    /// Its track, for example `0.1`.
    pub version: String,
}

impl Default for Contract {
    fn default() -> Self {
        Self { package: contract(), version: String::new() }
    }
}

fn contract() -> String {
    "portcullis:policy".to_owned()
}

/// How a policy is built.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Build {
    /// The toolchain.
    #[serde(default)]
    pub language: Language,
    /// Where the source lies, seen from the manifest; the manifest's own folder by default.
    #[serde(default)]
    pub source: String,
}

/// The toolchain of a policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Cargo.
    Rust,
    /// JavaScript or TypeScript, by componentize-js.
    Js,
    /// Python, by componentize-py.
    Python,
    /// C, by clang or Zig's clang.
    C,
    /// It is not built by us: `component.wasm` lies beside the manifest.
    #[default]
    None,
}

/// What a policy wants of the host. What is not named here it does not get.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Capabilities {
    /// Interfaces that it imports, for information.
    #[serde(default)]
    pub imports: Vec<String>,
    /// Whether it looks at the workspace.
    #[serde(default)]
    pub workspace_view: bool,
    /// What it remembers, and for how long.
    #[serde(default)]
    pub state: StateScope,
    /// Whether it changes what is run.
    #[serde(default)]
    pub rewrites: bool,
    /// Whether it sees, and changes, what tools bring back.
    #[serde(default)]
    pub output: bool,
}

/// How long a policy remembers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StateScope {
    /// Not at all.
    #[default]
    None,
    /// For a session.
    Session,
    /// For a project.
    Project,
}

/// The configuration of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// File with its JSON Schema, seen from the manifest.
    #[serde(default)]
    pub schema: String,
}

/// The cases of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Tests {
    /// Files of cases, seen from the manifest; `*` for any name in a folder.
    #[serde(default)]
    pub files: Vec<String>,
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// When it is malformed, holds an unknown key, or a value that cannot be used.
    pub fn parse(text: &str) -> Result<Self, PackError> {
        if text.len() > MANIFEST_MAX {
            return Err(value("policy", "the manifest is larger than 64 KiB"));
        }
        let manifest: Self = toml::from_str(text).map_err(|error| PackError::Manifest(Box::new(error)))?;
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), PackError> {
        let About { id, version, title, .. } = &self.policy;
        if !is_id(id) {
            return Err(value(
                "policy.id",
                &format!("`{id}` is not `namespace:name`, in lower-case letters, digits and `-`"),
            ));
        }
        if !is_version(version) {
            return Err(value("policy.version", &format!("`{version}` is not a version like `1.2.0`")));
        }
        if title.trim().is_empty() {
            return Err(value("policy.title", "it is empty; say in a few words what the policy does"));
        }
        if self.contract.package != contract() {
            return Err(value(
                "contract.package",
                &format!("`{}` is another contract", self.contract.package),
            ));
        }
        Ok(())
    }
}

fn value(key: &'static str, detail: &str) -> PackError {
    PackError::Value { key, detail: detail.to_owned() }
}

/// Whether a text is `namespace:name`.
pub(crate) fn is_id(id: &str) -> bool {
    id.split_once(':').is_some_and(|(namespace, name)| is_word(namespace) && is_word(name))
}

/// Whether a text is one half of an id.
pub(crate) fn is_word(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !word.is_empty() && word.len() <= 64 && !word.starts_with('-') && word.bytes().all(plain)
}

/// Three numbers, and something behind `-` or `+` if it likes.
fn is_version(version: &str) -> bool {
    let plain = version.split(['-', '+']).next().unwrap_or_default();
    let numbers: Vec<&str> = plain.split('.').collect();
    let number =
        |text: &&str| !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.len() == 3 && numbers.iter().all(number) && version.len() <= 64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(id: &str, version: &str, more: &str) -> Result<Manifest, PackError> {
        Manifest::parse(&format!(
            "[policy]\nid = '{id}'\nversion = '{version}'\ntitle = 'T'\n{more}\n[contract]\nversion = '0.1'"
        ))
    }

    #[test]
    fn the_least_and_the_most() {
        let least = parse("a:b", "1.0.0", "").unwrap();
        assert_eq!((least.build.language, least.capabilities.state), (Language::None, StateScope::None));
        let most = include_str!("../../../policies/workspace/policy.toml");
        assert_eq!(Manifest::parse(most).unwrap().policy.id, "portcullis:workspace");
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for (id, version) in [
            ("b", "1.0.0"),
            ("A:b", "1.0.0"),
            ("a:", "1.0.0"),
            ("a:../b", "1.0.0"),
            ("a:b", "1"),
            ("a:b", "1.0.x"),
        ] {
            assert!(matches!(parse(id, version, ""), Err(PackError::Value { .. })), "{id} {version}");
        }
        assert!(matches!(parse("a:b", "1.0.0", "colour = 'red'"), Err(PackError::Manifest(_))));
        assert!(parse("a:b", "1.0.0-rc.1+x", "").is_ok());
    }
}
