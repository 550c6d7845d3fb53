//! `policy.toml`: the manifest of a policy.

use serde::{Deserialize, Serialize};

use crate::error::PackError;

/// Largest manifest, in bytes.
pub const MANIFEST_MAX: usize = 64 << 10;

/// The manifest of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Manifest {
    /// Name, version and description.
    pub policy: About,
    /// The contract that the policy implements.
    pub contract: Contract,
    /// Build instructions. Optional for a pack that was built elsewhere.
    #[serde(default)]
    pub build: Build,
    /// The requested capabilities.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// The configuration.
    #[serde(default)]
    pub config: Config,
    /// The cases.
    #[serde(default)]
    pub tests: Tests,
}

/// Name, version and description of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct About {
    /// The id, `namespace:name`, as in the component's own description.
    pub id: String,
    /// The semantic version, as in the component's own description.
    pub version: String,
    /// A short title.
    pub title: String,
    /// A sentence.
    #[serde(default)]
    pub description: String,
    /// An SPDX licence expression.
    #[serde(default)]
    pub license: String,
    /// Names, optionally with addresses.
    #[serde(default)]
    pub authors: Vec<String>,
    /// The location of the source code.
    #[serde(default)]
    pub repository: String,
}

/// The contract that a policy implements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Contract {
    /// The name of the contract.
    #[serde(default = "contract")]
    pub package: String,
    /// The track of the contract, for example `0.1`.
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

/// Build instructions of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Build {
    /// The toolchain.
    #[serde(default)]
    pub language: Language,
    /// The source directory, relative to the manifest. The manifest's own directory by default.
    #[serde(default)]
    pub source: String,
}

/// The toolchain of a policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Rust, built by cargo.
    Rust,
    /// JavaScript or TypeScript, built by componentize-js.
    Js,
    /// Python, built by componentize-py.
    Python,
    /// C, built by clang or Zig's clang.
    C,
    /// Go, built by its own compiler.
    Go,
    /// No toolchain: a finished `component.wasm` is beside the manifest.
    #[default]
    None,
}

/// The capabilities that a policy asks for. The host grants no others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Capabilities {
    /// The imported interfaces, for information.
    #[serde(default)]
    pub imports: Vec<String>,
    /// Access to a view of the workspace.
    #[serde(default)]
    pub workspace_view: bool,
    /// The scope of stored state.
    #[serde(default)]
    pub state: StateScope,
    /// Permission to change the input of tools.
    #[serde(default)]
    pub rewrites: bool,
    /// Permission to see and change the output of tools.
    #[serde(default)]
    pub output: bool,
}

/// The scope of a policy's stored state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StateScope {
    /// No state.
    #[default]
    None,
    /// SignatureState for a session.
    Session,
    /// SignatureState for a project.
    Project,
}

/// The configuration of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// The file with its JSON Schema, relative to the manifest.
    #[serde(default)]
    pub schema: String,
}

/// The cases of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Tests {
    /// Files of cases, relative to the manifest. `*` matches any name in a directory.
    #[serde(default)]
    pub files: Vec<String>,
}

impl Manifest {
    /// Parses a manifest.
    ///
    /// # Errors
    /// Fails when the text is malformed, or has an unknown key or an invalid value.
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

/// Returns true if a text is `namespace:name`.
#[must_use]
pub fn is_id(id: &str) -> bool {
    id.split_once(':').is_some_and(|(namespace, name)| is_word(namespace) && is_word(name))
}

/// Returns true if a text is a valid half of an id.
pub(crate) fn is_word(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !word.is_empty() && word.len() <= 64 && !word.starts_with('-') && word.bytes().all(plain)
}

/// Returns true if a text is three numbers, optionally followed by `-` or `+` and more.
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
