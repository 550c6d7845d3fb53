//! `team.toml`: the team that a machine or a user belongs to, and what the machine requires.

use portcullis_packs::{Reference, ReferenceError, is_digest, is_id};
use serde::{Deserialize, Serialize};

use crate::document::is_team_name;
use crate::stage::Stage;

/// Largest file, in bytes.
const FILE_MAX: usize = 64 << 10;

/// The owner of a membership file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The administrator, in `/etc/portcullis`.
    Machine,
    /// The user, beside the settings.
    User,
}

/// What happens when pi is started with `--no-sandbox`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unprotected {
    /// It starts without the sandbox.
    #[default]
    Allow,
    /// It starts without the sandbox, and the audit log has a record of it.
    Log,
    /// It starts with the sandbox.
    Forbid,
}

/// A membership file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// The team.
    pub team: String,
    /// The repository with the team's documents.
    pub registry: Reference,
    /// The digest of the root to begin with.
    pub root: String,
    /// Whether nothing is allowed without a bundle.
    pub mandatory: bool,
    /// What `--no-sandbox` does.
    pub no_sandbox: Unprotected,
    /// Packs that the bundle must have.
    pub packs: Vec<String>,
    /// The oldest acceptable version of the bundle.
    pub minimum_version: u64,
    /// On which machines the packs run; the weaker of this and the bundle's counts.
    pub stage: Stage,
}

/// The reason why a membership file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MembershipError {
    /// The file is not valid TOML or has the wrong structure.
    #[error("it cannot be read")]
    Shape(#[source] Box<toml::de::Error>),
    /// The registry is no reference.
    #[error("its `registry`")]
    Registry(#[source] ReferenceError),
    /// A value is invalid.
    #[error("{0}")]
    Value(String),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    team: String,
    registry: String,
    root: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    mandatory: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    no_sandbox: Option<Unprotected>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    packs: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    minimum_version: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stage: Option<Stage>,
}

impl Membership {
    /// Parses a membership file.
    ///
    /// # Errors
    /// When the text is malformed, has an invalid value, or the user's file has a key of the machine's.
    pub fn parse(text: &str, owner: Owner) -> Result<Self, MembershipError> {
        let value = |text: String| Err(MembershipError::Value(text));
        if text.len() > FILE_MAX {
            return value("it is longer than 64 KiB".to_owned());
        }
        let file: File = toml::from_str(text).map_err(|error| MembershipError::Shape(Box::new(error)))?;
        let is_users = file.mandatory
            || file.no_sandbox.is_some()
            || !file.packs.is_empty()
            || file.minimum_version.is_some()
            || file.stage.is_some();
        if owner == Owner::User && is_users {
            return value(
                "`mandatory`, `no-sandbox`, `packs`, `minimum-version` and `stage` are for the machine's file".to_owned(),
            );
        }
        if !is_team_name(&file.team) {
            return value(format!(
                "`{}` is no name of a team: lower-case letters, digits and `-`",
                file.team.escape_debug()
            ));
        }
        if !is_digest(&file.root) {
            let root = file.root.escape_debug();
            return value(format!("the root `{root}` is no digest; `portcullis team publish` prints it"));
        }
        if let Some(id) = file.packs.iter().find(|id| !is_id(id)) {
            return value(format!("`{}` in `packs` is no id like `acme:guard`", id.escape_debug()));
        }
        let registry = Reference::parse(&file.registry).map_err(MembershipError::Registry)?;
        if registry.tag.is_some() || registry.digest.is_some() {
            return value("`registry` names a repository, without a tag or digest".to_owned());
        }
        Ok(Self {
            team: file.team,
            registry,
            root: file.root,
            mandatory: file.mandatory,
            no_sandbox: file.no_sandbox.unwrap_or_default(),
            packs: file.packs,
            minimum_version: file.minimum_version.unwrap_or(0),
            stage: file.stage.unwrap_or_default().checked().map_err(MembershipError::Value)?,
        })
    }

    /// Returns the text of a user's membership file.
    #[must_use]
    pub fn user_text(team: &str, registry: &Reference, root: &str) -> String {
        format!(
            "# Written by `portcullis team join`.\nteam = \"{team}\"\nregistry = \"{}\"\nroot = \"{root}\"\n",
            registry.place()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(more: &str) -> String {
        let root = format!("sha256:{}", "ab".repeat(32));
        format!("team = \"acme\"\nregistry = \"oci://localhost:5000/acme/team\"\nroot = \"{root}\"\n{more}")
    }

    #[test]
    fn a_machine_requires_more_than_a_user() {
        let more =
            "mandatory = true\nno-sandbox = \"forbid\"\npacks = [\"acme:guard\"]\nstage = { enforce = 10 }\n";
        let machine = Membership::parse(&text(more), Owner::Machine).unwrap();
        assert!(machine.mandatory && machine.no_sandbox == Unprotected::Forbid);
        assert_eq!((machine.stage.enforce, machine.stage.observe), (10, 100));
        assert!(Membership::parse(&text(more), Owner::User).unwrap_err().to_string().contains("machine's"));
        let user = Membership::parse(&text(""), Owner::User).unwrap();
        assert!(!user.mandatory && user.no_sandbox == Unprotected::Allow);
        let written = Membership::user_text(&user.team, &user.registry, &user.root);
        assert_eq!(Membership::parse(&written, Owner::User).unwrap(), user);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, said) in [
            (text("colour = 1"), "cannot be read"),
            (text("no-sandbox = \"maybe\""), "cannot be read"),
            (text("").replace("sha256:", "sha256:zz"), "no digest"),
            (text("").replace("\"acme\"", "\"Acme Inc\""), "no name of a team"),
            (text("").replace("/team\"", "/team:latest\""), "without a tag"),
            (text("").replace("oci://localhost:5000/acme/team", "acme"), "registry"),
            (text("packs = [\"guard\"]"), "no id"),
            (text("stage = { enforce = 101 }"), "percentages"),
        ] {
            let told = Membership::parse(&text, Owner::Machine).unwrap_err().to_string();
            assert!(told.contains(said), "{text}: {told}");
        }
    }
}
