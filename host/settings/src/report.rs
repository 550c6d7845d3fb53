//! The report on the values in force and their origins.

use std::path::PathBuf;

use portcullis_decision::profile::Limits;
use portcullis_decision::rules::BUDGET_KIB;
use portcullis_decision::verdict::Effect;
use portcullis_settings_format::json::{Member, Node, Value};
use portcullis_settings_format::pointer::step;
use portcullis_settings_format::{FIELDS, Field, Layer, Origin, Shape, Status, Warning};
use serde::Serialize;
use serde_json::Value as Json;
use serde_json::json;

use crate::found::{Document, FoundSettings, Source};
use crate::resolved::Resolved;

/// All values in force, with their origins.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The source of the user's settings.
    pub source: SourceReport,
    /// The canonical working directory.
    pub workspace: PathBuf,
    /// All values, in the order of the table of fields.
    pub values: Vec<Setting>,
    /// Directories that commands cannot see and tools ask about, unless a rule allows them.
    pub closed: Vec<PathBuf>,
    /// The file of the user's text for this agent, if there is one.
    pub agent_text: Option<PathBuf>,
    /// Fields that are set and have no effect.
    pub unused: Vec<Unused>,
    /// Warnings for the user.
    pub warnings: Vec<Warning>,
}

/// The source of the user's settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceReport {
    /// `named`, `project`, `default`, `layered` or `builtIn`.
    pub kind: &'static str,
    /// The file, if there is one.
    pub file: Option<PathBuf>,
    /// The key of the entry that applies, in `projects.json` or `layered.json`.
    pub key: Option<String>,
}

/// One value, or one item of a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Setting {
    /// Field name, as in the table of fields.
    pub field: &'static str,
    /// The value; null for the host's own default.
    pub value: Json,
    /// The effect of the value.
    pub standing: Standing,
    /// The layer that sets it.
    pub layer: Layer,
    /// Where it was written; `None` for a default.
    pub origin: Option<Origin>,
}

/// The effect of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Standing {
    /// It is in force.
    InForce,
    /// The settings have no value, and this default is in force.
    Default,
    /// It closes a region: commands cannot see it, and tools ask, unless a rule allows it.
    ClosedRegion,
    /// It denies, whatever policies and grants say.
    ExplicitDeny,
    /// Another layer has a stricter value.
    Overruled,
}

/// A field that is set and has no effect.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unused {
    /// Field name, as in the table of fields.
    pub field: &'static str,
    /// The value.
    pub value: Json,
    /// Why it has no effect.
    pub reason: &'static str,
    /// Where it was written.
    pub origin: Origin,
}

/// Returns all values in force with their origins.
///
/// `resolved` must be made from `found`. `defaults` are the host's own limits for one command, for limits that the user
/// does not set.
///
/// ```
/// use portcullis_settings::{Places, RealDisk, Standing, discover, report, resolve};
/// use portcullis_decision::profile::Limits;
/// let dir = tempfile::tempdir().unwrap();
/// let places = Places::usual(&dir.path().join("project"), &dir.path().join("home"));
/// let found = discover(&places, &RealDisk).unwrap();
/// let resolved = resolve(&found, &places, &RealDisk).unwrap();
/// let report = report(&found, &resolved, &Limits::default());
/// assert_eq!(report.source.kind, "builtIn");
/// let combine = report.values.iter().find(|value| value.field == "combine").unwrap();
/// assert_eq!((&combine.value, combine.standing), (&"strictest".into(), Standing::Default));
/// ```
#[must_use]
pub fn report(found: &FoundSettings, resolved: &Resolved, defaults: &Limits) -> Report {
    let mut values = Vec::new();
    let mut unused = Vec::new();
    for field in FIELDS {
        let written: Vec<(Layer, Written<'_>)> = found
            .documents
            .iter()
            .filter_map(|document| Some((document.layer, at(document, field)?)))
            .collect();
        match field.status {
            Status::NoEffect(reason) => {
                // Name a whole object once.
                if !is_inside_unused(field) {
                    unused.extend(written.into_iter().map(|(_, value)| Unused {
                        field: field.name,
                        value: value.node.to_json(),
                        reason,
                        origin: value.origin(),
                    }));
                }
            }
            Status::Honoured if is_shown(field) => {
                values.extend(settings(field, &written, resolved, defaults));
            }
            Status::Honoured | Status::Refused(_) => {}
        }
    }
    Report {
        source: source(&found.source),
        workspace: resolved.workspace.clone(),
        values,
        closed: resolved.closed.clone(),
        agent_text: found.definition.as_ref().map(|definition| definition.file.clone()),
        unused,
        warnings: resolved.warnings.clone(),
    }
}

/// Returns the first place where the field `name` has this value, the user's settings first.
pub(crate) fn first_that_is(found: &FoundSettings, name: &str, value: &Json) -> Option<Origin> {
    let field = portcullis_settings_format::field(name)?;
    let mut written = found.documents.iter().filter_map(|document| at(document, field));
    written.find(|written| written.node.to_json() == *value).map(|written| written.origin())
}

/// A value in a document.
struct Written<'a> {
    document: &'a Document,
    node: &'a Node,
    pointer: String,
}

impl<'a> Written<'a> {
    fn origin(&self) -> Origin {
        let (file, pointer) = match &self.node.home {
            Some(home) => (&home.file, &home.pointer),
            None => (&self.document.file, &self.pointer),
        };
        Origin { file: file.clone(), pointer: pointer.clone(), at: self.node.at }
    }

    fn inside(&self, key: &str, node: &'a Node) -> Self {
        Written { document: self.document, node, pointer: step(&self.pointer, key) }
    }

    /// Returns the items of a list, or the members of an object with free keys, each as a value of its own.
    fn parts(self, shape: Shape) -> Vec<Self> {
        let member = |member: &'a Member| self.inside(&member.key, &member.node);
        match (shape, &self.node.value) {
            (Shape::List(_) | Shape::Objects, Value::List(items)) if !items.is_empty() => {
                let item = |(index, node): (usize, &'a Node)| self.inside(&index.to_string(), node);
                items.iter().enumerate().map(item).collect()
            }
            (Shape::Map(_), Value::Object(members)) if !members.is_empty() => {
                members.iter().map(member).collect()
            }
            _ => vec![self],
        }
    }
}

fn at<'a>(document: &'a Document, field: &Field) -> Option<Written<'a>> {
    let mut written = Written { document, node: &document.node, pointer: document.pointer.clone() };
    for key in field.name.split('.') {
        written = written.inside(key, written.node.member(key)?);
    }
    Some(written)
}

/// Returns true for fields with values of their own.
///
/// Objects appear by their fields, and fields of list items by the items.
fn is_shown(field: &Field) -> bool {
    field.shape != Shape::Object && !field.name.contains("[]")
}

fn is_inside_unused(field: &Field) -> bool {
    let parent =
        field.name.rsplit_once('.').and_then(|(parent, _)| portcullis_settings_format::field(parent));
    parent.is_some_and(|parent| matches!(parent.status, Status::NoEffect(_)))
}

fn settings(
    field: &'static Field,
    written: &[(Layer, Written<'_>)],
    resolved: &Resolved,
    defaults: &Limits,
) -> Vec<Setting> {
    let mut settings = Vec::new();
    for (layer, value) in written {
        let value = Written { document: value.document, node: value.node, pointer: value.pointer.clone() };
        for (index, part) in value.parts(field.shape).into_iter().enumerate() {
            settings.push(Setting {
                field: field.name,
                value: shown(field, &part),
                standing: standing(field, *layer, index, &part, resolved),
                layer: *layer,
                origin: Some(part.origin()),
            });
        }
    }
    let has_users = written.iter().any(|(layer, _)| *layer == Layer::User);
    let mut has_default = !has_users && (settings.is_empty() || !is_single(field));
    if is_single(field) && !settings.is_empty() {
        // If the user has no value, that of another layer applies where it is stricter than the host's default.
        let held = held_by_default(field.name, defaults).filter(|_| !has_users);
        has_default = overrule(&mut settings, held.as_ref().map(strength));
    }
    if has_default {
        let value = default_value(field.name);
        let default = Setting {
            field: field.name,
            value,
            standing: Standing::Default,
            layer: Layer::User,
            origin: None,
        };
        settings.insert(0, default);
    }
    settings
}

/// Marks all values but the strictest as overruled. Returns true if the default is stricter than all of them.
fn overrule(settings: &mut [Setting], default: Option<u64>) -> bool {
    let written = settings.iter().map(|setting| strength(&setting.value)).min();
    let strictest = written.into_iter().chain(default).min();
    for setting in settings.iter_mut().filter(|setting| Some(strength(&setting.value)) != strictest) {
        setting.standing = Standing::Overruled;
    }
    written != strictest
}

/// Returns the value to show. A member of an object with free keys includes its key.
fn shown(field: &Field, part: &Written<'_>) -> Json {
    match (field.shape, part.pointer.rsplit_once('/')) {
        (Shape::Map(_), Some((_, key))) if !matches!(part.node.value, Value::Object(_)) => {
            json!({ key.replace("~1", "/").replace("~0", "~"): part.node.to_json() })
        }
        _ => part.node.to_json(),
    }
}

fn standing(field: &Field, layer: Layer, index: usize, part: &Written<'_>, resolved: &Resolved) -> Standing {
    let has_items = part.node.value != Value::List(Vec::new());
    match field.name {
        "filesystem.denyRead" if has_items => {
            let id = format!("{}[{index}]", field.name);
            let denies = |rule: &crate::rule::Rule| {
                rule.layer == layer && rule.id == id && rule.effect == Effect::Deny
            };
            if resolved.rules.iter().any(denies) { Standing::ExplicitDeny } else { Standing::ClosedRegion }
        }
        "filesystem.denyWrite" if has_items => Standing::ExplicitDeny,
        _ if resolved.is_narrowed_away(&part.origin()) => Standing::Overruled,
        _ => Standing::InForce,
    }
}

/// Returns true if a single value applies across all layers. For other fields the entries of all layers apply.
fn is_single(field: &Field) -> bool {
    field.name.starts_with("limits.")
        || field.name == "network.strictAllowlist"
        || field.name == "network.uploadBudgetMib"
        || field.name == "requiredTier"
}

/// Returns a number that is lower for stricter values: low numbers, `true`, and the highest tiers are strict.
fn strength(value: &Json) -> u64 {
    match value {
        Json::Bool(is_strict) => u64::from(!is_strict),
        Json::String(tier) => {
            ["full", "namespaces"].iter().position(|known| known == tier).map_or(2, as_number)
        }
        other @ (Json::Null | Json::Number(_) | Json::Array(_) | Json::Object(_)) => {
            other.as_u64().unwrap_or(u64::MAX)
        }
    }
}

fn as_number(place: usize) -> u64 {
    u64::try_from(place).unwrap_or(u64::MAX)
}

/// Returns the host's default limit as a value for comparison, or `None` if there is no limit.
fn held_by_default(field: &str, defaults: &Limits) -> Option<Json> {
    let limit = match field {
        "limits.wallMs" => defaults.wall_ms,
        "limits.cpuMs" => defaults.cpu_ms,
        "limits.memoryMib" => defaults.memory_mib,
        "limits.processes" => defaults.processes,
        "limits.openFiles" => defaults.open_files,
        "limits.fileMib" => defaults.file_mib,
        "limits.outputKib" => defaults.output_kib,
        "network.uploadBudgetMib" => Some(BUDGET_KIB / 1024),
        _ => return Some(default_value(field)).filter(|value| !value.is_null()),
    };
    limit.map(Json::from)
}

/// Returns the default value of a field; null for the host's own default.
fn default_value(field: &str) -> Json {
    match field {
        "enabled" => json!(true),
        "network.strictAllowlist" => json!(false),
        "policies" => json!({ "use": "workspace" }),
        "combine" => json!("strictest"),
        "layout" => json!("projects"),
        "ask.hold" => json!("connect"),
        "ask.ports" => json!("asked"),
        "network.unlistedHosts" => json!("ask"),
        "filesystem.elsewhere" => json!("open"),
        "filesystem.tmp" => json!("session"),
        "requiredTier" => json!("full"),
        "escalation" => json!("off"),
        "unattendedRefusals" => json!("fail"),
        // Without a key there is nothing to sign.
        "credentials.signing.for" => Json::Null,
        _ => match portcullis_settings_format::field(field).map(|field| field.shape) {
            Some(Shape::List(_) | Shape::Objects) => json!([]),
            Some(Shape::Map(_)) => json!({}),
            _ => Json::Null,
        },
    }
}

fn source(source: &Source) -> SourceReport {
    let (kind, key) = match source {
        Source::Named(_) => ("named", None),
        Source::Project { key, .. } => ("project", Some(key.clone())),
        Source::Default(_) => ("default", None),
        Source::Layered { key, .. } => ("layered", key.clone()),
        Source::BuiltIn => ("builtIn", None),
    };
    SourceReport { kind, file: source.file().map(PathBuf::from), key }
}
