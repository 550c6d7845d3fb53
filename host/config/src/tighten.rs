//! Settings of the machine and of a project: layers that can only tighten.

use std::path::{Path, PathBuf};

use portcullis_decision::profile::Limits;

use crate::check::{Completeness, check, step};
use crate::decode::{self, Place};
use crate::error::{ConfigError, Problem};
use crate::json::{Fault, Node, Value};
use crate::settings::{Entry, Network, PathEntry, RequiredTier, invalid};

/// What a layer that can only tighten adds to the user's settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Tightening {
    /// Whose it is.
    pub layer: Layer,
    /// The file it came from.
    pub file: PathBuf,
    /// Connections; `allowed_domains` is always empty.
    pub network: Network,
    /// Paths that are not read.
    pub deny_read: Vec<Entry<PathEntry>>,
    /// Paths that are not written.
    pub deny_write: Vec<Entry<PathEntry>>,
    /// The least that the sandbox must be; the stricter of this and the user's holds.
    pub required_tier: Option<RequiredTier>,
    /// Limits; the stricter of these and the user's holds.
    pub limits: Limits,
    /// Globs over names of variables that commands do not see.
    pub drop: Vec<String>,
}

/// Whose settings a layer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Layer {
    /// What Portcullis protects in any case.
    Host,
    /// The user's settings.
    User,
    /// The machine's.
    Machine,
    /// The project's.
    Project,
}

impl Layer {
    /// Returns the name that decisions and logs show.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::User => "settings",
            Self::Machine => "machine-settings",
            Self::Project => "project-settings",
        }
    }
}

/// The fields that a tightening layer may set: each of them can only take away.
pub const TIGHTENING_FIELDS: &[&str] = &[
    "$schema",
    "network",
    "network.deniedDomains",
    "network.deniedDomainReasons",
    "network.strictAllowlist",
    "network.deniedResolvedAddresses",
    "network.uploadBudgetMib",
    "filesystem",
    "filesystem.denyRead",
    "filesystem.denyWrite",
    "requiredTier",
    "limits",
    "limits.wallMs",
    "limits.cpuMs",
    "limits.memoryMib",
    "limits.processes",
    "limits.openFiles",
    "limits.fileMib",
    "limits.outputKib",
    "environment",
    "environment.drop",
];

impl Tightening {
    /// Reads the text of a machine's or a project's settings file.
    ///
    /// # Errors
    /// As for [`crate::Settings::parse`], and when the file sets anything that could loosen.
    pub fn parse(text: &str, file: &Path, layer: Layer) -> Result<Self, ConfigError> {
        Self::read(text, file, layer).map_err(|fault| invalid(file, fault))
    }

    fn read(text: &str, file: &Path, layer: Layer) -> Result<Self, Fault> {
        let document = crate::json::read(text)?;
        check(&document, "", Completeness::Part)?;
        only_tightens(&document, "", "")?;
        let top = Place::top(&document, file);
        let filesystem = top.child("filesystem");
        let tightening = Self {
            layer,
            file: file.to_owned(),
            network: decode::network(&top.child("network"))?,
            deny_read: decode::paths(&filesystem.child("denyRead"))?,
            deny_write: decode::paths(&filesystem.child("denyWrite"))?,
            required_tier: decode::required_tier(&top.child("requiredTier")),
            limits: decode::limits(&top.child("limits")),
            drop: top.child("environment").child("drop").texts(),
        };
        if layer == Layer::Machine {
            tightening.has_rooted_paths()?;
        }
        Ok(tightening)
    }

    /// A machine has no working directory that a relative path could start from.
    fn has_rooted_paths(&self) -> Result<(), Fault> {
        let mut entries = self.deny_read.iter().chain(&self.deny_write);
        let rooted = |entry: &&Entry<PathEntry>| entry.text.starts_with('/') || entry.text.starts_with('~');
        match entries.find(|entry| !rooted(entry)) {
            None => Ok(()),
            Some(entry) => Err(Fault {
                at: entry.origin.at,
                pointer: entry.origin.pointer.clone(),
                problem: Problem::BadValue {
                    field: entry.origin.pointer.clone(),
                    reason: "in the machine's settings a path starts with `/` or `~`".to_owned(),
                },
            }),
        }
    }
}

fn only_tightens(node: &Node, parent: &str, pointer: &str) -> Result<(), Fault> {
    let Value::Object(members) = &node.value else { return Ok(()) };
    for member in members {
        let name = if parent.is_empty() { member.key.clone() } else { format!("{parent}.{}", member.key) };
        let pointer = step(pointer, &member.key);
        if !TIGHTENING_FIELDS.contains(&name.as_str()) {
            let reason = "this file can only tighten; set it in the user's settings";
            let problem = Problem::OnlyTightens { field: pointer.clone(), reason };
            return Err(Fault { at: member.key_at, pointer, problem });
        }
        if crate::schema::children(&name).next().is_some() {
            only_tightens(&member.node, &name, &pointer)?;
        }
    }
    Ok(())
}
