//! `portcullis config show`: prints every value in force with its origin.

use anyhow::Context as _;
use portcullis_bootstrap::in_force::{self, InForce};
use portcullis_bootstrap::policies::Shown;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::streams::say;
use portcullis_command_line::args::config::SettingsChoice;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::human::{path, value};
use portcullis_command_line::output::{Cell, Page, Tint, cell, tinted};
use portcullis_decision::Mode;
use portcullis_sandbox::Tier;
use portcullis_settings::{RealDisk, Report, Setting, Standing, discover, report, resolve};
use portcullis_settings_format::{BUILT_IN, Field, Origin, field};
use portcullis_text::escape;
use serde_json::{Value, json};

use super::{in_use, kept_back};

/// The largest width of the column of values; a longer value takes the space it needs.
const VALUE_WIDTH: usize = 20;

pub(super) fn run(
    around: &ProcessEnv,
    place: &SettingsChoice,
    only_changed: bool,
    as_json: bool,
) -> exit::Outcome {
    let places = &in_use::places(around, place)?;
    let found = discover(places, &RealDisk)
        .context("the settings cannot be used; tools are blocked until you fix them")?;
    let resolved = resolve(&found, places, &RealDisk)?;
    let chain = in_use::chain(around, &resolved)?;
    // If a policy cannot be used, there is no session, and commands get no variables.
    let can_begin = chain.iter().all(|policy| policy.problem.is_none());
    let project = place.project.as_deref().unwrap_or(&around.cwd);
    let session = match can_begin {
        true => in_force::judging(around, project, place.settings.as_deref(), &RealDisk)?,
        false => None,
    };
    let kept_back = match &session {
        Some(wired) => kept_back::variables(around, &wired.session),
        None => Vec::new(),
    };
    let mut report = report(&found, &resolved, &portcullis_session::default_limits());
    if only_changed {
        let defaults: Value = serde_json::from_str(BUILT_IN).context("reading the built-in settings")?;
        retain_changed(&mut report.values, &defaults);
    }
    // The tier is measured, not read from system settings: `requiredTier` is compared with the result.
    let tier = in_force::tier_here(around);
    let in_force =
        can_begin.then(|| InForce::for_session(session.as_ref().map(|wired| wired.session.as_ref()), tier));
    let mut page = Page::new(around);
    if as_json {
        let mut value = serde_json::to_value(&report)?;
        if let Some(members) = value.as_object_mut() {
            members.insert("sandboxTier".to_owned(), tier.name().into());
            members.insert("inForce".to_owned(), in_force.as_ref().map(InForce::to_json).into());
            members.insert("chain".to_owned(), serde_json::to_value(&chain)?);
            members.insert("keptBackVariables".to_owned(), kept_back::json(&kept_back));
        }
        page.json(&value);
    } else {
        human(&mut page, around, &report, tier);
        if !only_changed {
            policies(&mut page, &chain);
            if let Some(in_force) = &in_force {
                crate::in_force::print(&mut page, in_force, "in force");
            }
            kept_back::human(&mut page, &kept_back);
        }
    }
    page.print()?;
    let mut problems = chain.iter().filter_map(|policy| policy.problem.as_ref());
    Ok(match problems.next() {
        None => Exit::Done,
        Some(problem) => {
            say(&format!("portcullis: Tools are blocked until you fix this: {}", escape(problem)));
            Exit::Bad
        }
    })
}

/// Removes the fields that no file sets, and those whose values are all defaults.
fn retain_changed(values: &mut Vec<Setting>, defaults: &Value) {
    let is_written = |setting: &Setting| setting.origin.as_ref().is_some_and(|origin| !origin.is_built_in());
    let is_changed = |name: &str| {
        let own: Vec<&Value> = values.iter().filter(|one| one.field == name).map(|one| &one.value).collect();
        let default = defaults.pointer(&format!("/{}", name.replace('.', "/")));
        match default {
            Some(Value::Array(items)) if items.is_empty() => own.iter().any(|value| *value != &json!([])),
            Some(Value::Array(items)) => !items.iter().eq(own),
            default => own.into_iter().any(|value| Some(value) != default),
        }
    };
    let changed: Vec<&str> = values.iter().map(|one| one.field).filter(|name| is_changed(name)).collect();
    values.retain(|setting| is_written(setting) && changed.contains(&setting.field));
}

fn human(page: &mut Page, around: &ProcessEnv, report: &Report, tier: Tier) {
    let mut top = vec![
        vec![cell("settings"), cell(&source(around, report))],
        vec![cell("workspace"), cell(&path(around, &report.workspace))],
        vec![cell("sandbox"), cell(&format!("tier `{tier}`; `portcullis doctor` says more"))],
    ];
    let text = report.agent_text.iter();
    top.extend(text.map(|file| vec![cell("text for the model"), cell(&path(around, file))]));
    page.table("", &top);
    page.line("");
    let mut previous = "";
    let rows: Vec<Vec<Cell>> = report
        .values
        .iter()
        .map(|setting| {
            let name = if setting.field == previous { "" } else { setting.field };
            previous = setting.field;
            row(around, name, setting)
        })
        .collect();
    if rows.is_empty() {
        page.line("no setting differs from its default");
    }
    let widest = rows.iter().filter_map(|row| row.first()).map(Cell::width).max().unwrap_or(0);
    let values = rows.iter().filter_map(|row| row.get(1)).map(Cell::width);
    let value = values.filter(|width| *width <= VALUE_WIDTH).max().unwrap_or(0);
    rows.iter().for_each(|row| page.row("", row, &[widest, value]));
    if !report.unused.is_empty() {
        page.line("\nset, but without effect");
        let row = |unused: &portcullis_settings::Unused| {
            vec![cell(unused.field), cell(&place(around, &unused.origin)), cell(unused.reason)]
        };
        page.table("  ", &report.unused.iter().map(row).collect::<Vec<_>>());
    }
    if !report.warnings.is_empty() {
        page.line("\nwarnings");
        let row = |warning: &portcullis_settings_format::Warning| {
            vec![tinted(&place(around, &warning.origin), Tint::Open), cell(&warning.text)]
        };
        page.table("  ", &report.warnings.iter().map(row).collect::<Vec<_>>());
    }
}

fn policies(page: &mut Page, chain: &[Shown]) {
    page.line("\npolicies");
    let row = |policy: &Shown| {
        let (word, tint) = match (&policy.problem, policy.mode) {
            (Some(_), _) => ("cannot be used", Tint::Bad),
            (None, Mode::Enforce) => ("counts", Tint::Plain),
            (None, Mode::Tighten) => ("can only tighten", Tint::Open),
            (None, Mode::Observe) => ("only observed", Tint::Faint),
        };
        let more = policy.problem.as_ref().unwrap_or(&policy.origin);
        vec![cell(&policy.name), tinted(word, tint), cell(more), cell(&policy.digest)]
    };
    page.table("  ", &chain.iter().map(row).collect::<Vec<_>>());
}

fn source(around: &ProcessEnv, report: &Report) -> String {
    let file = report.source.file.as_ref().map(|file| path(around, file)).unwrap_or_default();
    match (report.source.kind, &report.source.key) {
        ("named", _) => format!("{file} (from the command line)"),
        ("project", Some(key)) => format!("{file}, entry `{key}`"),
        ("layered", Some(key)) => format!("{file} over the defaults, and entry `{key}` of layered.json"),
        ("layered", None) => format!("{file} over the defaults"),
        ("builtIn", _) => "defaults; there is no settings file".to_owned(),
        _ => format!("{file}; no project entry applies here"),
    }
}

fn row(around: &ProcessEnv, name: &str, setting: &Setting) -> Vec<Cell> {
    let shown = match &setting.value {
        Value::Null => unset(name),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Object(members) if members.is_empty() => "none".to_owned(),
        other @ (Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_)) => value(around, other),
    };
    let (standing, tint) = match setting.standing {
        Standing::InForce => ("", Tint::Plain),
        Standing::Default => ("default", Tint::Faint),
        Standing::ClosedRegion => ("closed unless a rule allows it", Tint::Plain),
        Standing::ExplicitDeny => ("explicit deny", Tint::Plain),
        Standing::Overruled => ("overruled", Tint::Open),
    };
    let mut row = vec![cell(name), cell(&shown)];
    row.extend(setting.origin.as_ref().map(|origin| tinted(&place(around, origin), Tint::Faint)));
    row.extend(Some(tinted(standing, tint)).filter(|_| !standing.is_empty()));
    row
}

fn unset(name: &str) -> String {
    // The text after the colon gives the reason.
    let words = field(name).and_then(Field::default_in_words).and_then(|words| words.split(": ").next());
    match words {
        Some(words) => words.replace('`', ""),
        None => "not set".to_owned(),
    }
}

fn place(around: &ProcessEnv, origin: &Origin) -> String {
    if origin.is_built_in() {
        return "default".to_owned();
    }
    format!("{}:{}", path(around, &origin.file), origin.at.line)
}
