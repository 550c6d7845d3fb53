//! Settings of the machine and of a project: layers that can only tighten.

use std::path::{Path, PathBuf};

use portcullis_decision::pattern::NetworkPattern;
use portcullis_decision::profile::Limits;

use crate::check::{Completeness, check};
use crate::decode;
use crate::document_value::DocumentValue;
use crate::entry::{Entry, Origin, PathEntry};
use crate::error::{ConfigError, Problem};
use crate::fault::{Fault, invalid};
use crate::field_lookup::field;
use crate::json::{Member, Node, Value};
use crate::layer::Layer;
use crate::name_globs::names_at_every_depth;
use crate::schema::Status;
use crate::settings::{Network, RequiredTier};
use crate::warning::Warning;

/// The settings of a layer that can only tighten.
#[derive(Debug, Clone, PartialEq)]
pub struct Tightening {
    /// The layer.
    pub layer: Layer,
    /// The file it came from.
    pub file: PathBuf,
    /// Connections; the hosts that it allows are in `narrowing`.
    pub network: Network,
    /// Paths that are never read.
    pub deny_read: Vec<Entry<PathEntry>>,
    /// Paths that are never written.
    pub deny_write: Vec<Entry<PathEntry>>,
    /// The minimum tier of the sandbox; the stricter of this and the user's applies.
    pub required_tier: Option<RequiredTier>,
    /// Limits; the stricter of these and the user's apply.
    pub limits: Limits,
    /// Globs over names of variables that commands do not get.
    pub drop: Vec<String>,
    /// Lists that narrow the user's allow lists; only in the layered layout.
    pub narrowing: Narrowing,
    /// Warnings on settings that would loosen and have no effect.
    pub vain: Vec<Warning>,
}

/// Allow lists that narrow those of the user; `None` if the file has no such list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Narrowing {
    /// Hosts to connect to without a question.
    pub domains: Option<Vec<Entry<NetworkPattern>>>,
    /// Unix sockets that commands may use.
    pub sockets: Option<Vec<Entry<PathEntry>>>,
    /// Paths to read without a question.
    pub read: Option<Vec<Entry<PathEntry>>>,
    /// Paths to read and write without a question.
    pub write: Option<Vec<Entry<PathEntry>>>,
}

/// The fields that a tightening layer may set. Each can only take away.
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

/// Allow lists that the project's file may have in the layered layout.
///
/// Only access that both the user and the project allow is allowed.
pub(crate) const NARROWING_FIELDS: &[&str] =
    &["network.allowedDomains", "network.allowUnixSockets", "filesystem.allowRead", "filesystem.allowWrite"];

/// Fields of `@sysid/pi-sandbox` project files that have no effect in a project.
///
/// Each has the value that requests nothing, and the reason.
const VAIN_FIELDS: &[(&str, Option<bool>, &str)] = &[
    ("enabled", Some(true), "a project cannot turn the sandbox off"),
    ("ignoreViolations", None, "a project cannot silence reports"),
];

impl Tightening {
    /// Parses the text of a machine's or a project's settings file.
    ///
    /// # Errors
    /// As for [`crate::Settings::parse`], and when the file sets a field that could loosen. In the layered layout,
    /// fields that such files usually have give a warning instead.
    pub fn parse(text: &str, file: &Path, layer: Layer) -> Result<Self, ConfigError> {
        Self::read(text, file, layer).map_err(|fault| invalid(file, fault))
    }

    fn read(text: &str, file: &Path, layer: Layer) -> Result<Self, Fault> {
        let document = crate::json::read(text)?;
        check(&document, "", Completeness::Part)?;
        let vain = only_tightens(&document, "", &DocumentValue::top(&document, file), layer)?;
        let top = DocumentValue::top(&document, file);
        let filesystem = top.child("filesystem");
        let mut tightening = Self {
            layer,
            file: file.to_owned(),
            network: decode::network(&top.child("network"))?,
            deny_read: decode::paths(&filesystem.child("denyRead"))?,
            deny_write: decode::paths(&filesystem.child("denyWrite"))?,
            required_tier: decode::required_tier(&top.child("requiredTier")),
            limits: decode::limits(&top.child("limits")),
            drop: top.child("environment").child("drop").texts(),
            narrowing: Narrowing::read(&top)?,
            vain,
        };
        match layer {
            Layer::Machine | Layer::Team => tightening.has_rooted_paths()?,
            Layer::Sandbox => names_at_every_depth(&mut tightening.deny_write),
            Layer::Host | Layer::User | Layer::Project => {}
        }
        Ok(tightening)
    }

    /// Checks that paths are not relative: the machine's settings have no working directory.
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
                    reason: "in the settings of a machine or a team a path starts with `/` or `~`".to_owned(),
                },
            }),
        }
    }
}

impl Narrowing {
    fn read(top: &DocumentValue<'_>) -> Result<Self, Fault> {
        let (network, filesystem) = (top.child("network"), top.child("filesystem"));
        let paths =
            |place: DocumentValue<'_>| place.node.is_some().then(|| decode::paths(&place)).transpose();
        let domains = network.child("allowedDomains");
        Ok(Self {
            domains: domains.node.is_some().then(|| decode::domains(&domains)).transpose()?,
            sockets: paths(network.child("allowUnixSockets"))?,
            read: paths(filesystem.child("allowRead"))?,
            write: paths(filesystem.child("allowWrite"))?,
        })
    }
}

/// Refuses fields that could loosen, and returns warnings on those that are known and have no effect.
fn only_tightens(
    node: &Node,
    parent: &str,
    place: &DocumentValue<'_>,
    layer: Layer,
) -> Result<Vec<Warning>, Fault> {
    let Value::Object(members) = &node.value else { return Ok(Vec::new()) };
    let mut vain = Vec::new();
    for member in members {
        let name = if parent.is_empty() { member.key.clone() } else { format!("{parent}.{}", member.key) };
        let inside = place.child(&member.key);
        if TIGHTENING_FIELDS.contains(&name.as_str()) {
            if crate::field_lookup::children(&name).next().is_some() {
                vain.extend(only_tightens(&member.node, &name, &inside, layer)?);
            }
        } else if layer != Layer::Sandbox || !is_harmless(&name) {
            let reason = "this file can only tighten; set it in the user's settings";
            let problem = Problem::OnlyTightens { field: inside.pointer.clone(), reason };
            return Err(Fault { at: member.key_at, pointer: inside.pointer, problem });
        } else {
            vain.extend(in_vain(&name, member, &inside));
        }
    }
    Ok(vain)
}

/// Returns true if the project's file of the layered layout may have a field because it narrows or has no effect.
pub(crate) fn is_harmless(name: &str) -> bool {
    let has_no_effect = || field(name).is_some_and(|field| matches!(field.status, Status::NoEffect(_)));
    NARROWING_FIELDS.contains(&name)
        || VAIN_FIELDS.iter().any(|(known, ..)| *known == name)
        || has_no_effect()
}

fn in_vain(name: &str, member: &Member, place: &DocumentValue<'_>) -> Option<Warning> {
    let (_, nothing, why) = VAIN_FIELDS.iter().find(|(known, ..)| *known == name)?;
    if nothing.is_some_and(|nothing| member.node.value == Value::Bool(nothing)) {
        return None;
    }
    let origin = Origin { file: place.file.to_owned(), pointer: place.pointer.clone(), at: member.node.at };
    Some(Warning {
        text: format!("`{name}` has no effect here: {why}, only you can, in your own settings"),
        origin,
    })
}
