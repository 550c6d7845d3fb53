//! Compares the settings of commands in two profiles: environment, limits, and what cannot be ordered.

use portcullis_decision::Effect;
use portcullis_decision::pattern::name_matches;
use portcullis_decision::profile::{EnvironmentRule, Limits, Profile};

use super::classes::{TooIntricate, examples, parse};
use super::witness::{Loosening, lacks_rule};
use crate::contribution::{Beside, Contribution};
use crate::corpus::PolicyAnswer;

/// Returns the settings of commands in which the new profile is milder.
///
/// Variables and attributes have no order, so a changed or missing one counts as milder.
pub(super) fn loosened(old: &Profile, new: &Profile) -> Result<Vec<Loosening>, TooIntricate> {
    let mut found = environment(&old.environment, &new.environment)?;
    found.extend(limits(old.limits, new.limits));
    let lost = old
        .variables
        .iter()
        .filter(|variable| new.variables.iter().rfind(|(name, _)| *name == variable.0) != Some(variable));
    found.extend(lost.map(|(name, _)| {
        let answers = [PolicyAnswer::new("set", "", ""), PolicyAnswer::new("not set so", "", "")];
        loosening(&format!("the variable `{name}` of commands"), answers, Beside::Nothing)
    }));
    let lost = old.attributes.iter().filter(|attribute| !new.attributes.contains(attribute));
    found.extend(lost.map(|attribute| {
        let answers = [PolicyAnswer::new("present", "", ""), PolicyAnswer::new("missing", "", "")];
        loosening(&format!("the attribute `{}`", attribute.name), answers, Beside::Nothing)
    }));
    Ok(found)
}

fn environment(old: &[EnvironmentRule], new: &[EnvironmentRule]) -> Result<Vec<Loosening>, TooIntricate> {
    if old == new {
        return Ok(Vec::new());
    }
    let patterns = old.iter().chain(new).map(|rule| parse(&expression(&rule.name)));
    let names = examples(parse(r"(?-u)^[^=\x00]+$")?, patterns.collect::<Result<_, _>>()?)?;
    let mut found: Vec<Loosening> = Vec::new();
    for name in names.into_iter().filter_map(|name| String::from_utf8(name).ok()) {
        let [old, new] = [old, new].map(|rules| rules.iter().rfind(|rule| name_matches(&rule.name, &name)));
        // Every effect but `allow` drops the variable. The host may keep or drop those that no rule names.
        let part = |rule: Option<&EnvironmentRule>, base| {
            let effect = |rule: &EnvironmentRule| {
                if rule.effect == Effect::Allow { Effect::Allow } else { Effect::Deny }
            };
            Contribution { verdict: None, rule: rule.map(effect), base: Some(base) }
        };
        let beside = [Effect::Deny, Effect::Allow]
            .into_iter()
            .find_map(|base| part(old, base).loosened_by(part(new, base)));
        let Some(beside) = beside else { continue };
        let answers = [old, new].map(|rule| {
            rule.map_or_else(lacks_rule, |rule| {
                PolicyAnswer::new(&rule.effect.to_string(), &rule.id, &rule.reason)
            })
        });
        let loosening = loosening(&format!("commands see the variable `{name}`"), answers, beside);
        if !found.iter().any(|known| (&known.old, &known.new) == (&loosening.old, &loosening.new)) {
            found.push(loosening);
        }
    }
    Ok(found)
}

/// Returns an expression for a wildcard over names.
fn expression(name: &str) -> String {
    let part = |byte: u8| match byte {
        b'*' => "(?s-u:.*)".to_owned(),
        b'?' => "(?s-u:.)".to_owned(),
        byte => format!("(?-u:\\x{byte:02X})"),
    };
    format!("^{}$", name.bytes().map(part).collect::<String>())
}

/// Returns one limit.
type Field = fn(&Limits) -> Option<u32>;

fn limits(old: Limits, new: Limits) -> Vec<Loosening> {
    let defaults = portcullis_session::default_limits();
    let fields: [(&str, Field); 7] = [
        ("time (ms)", |limits| limits.wall_ms),
        ("processor time (ms)", |limits| limits.cpu_ms),
        ("memory (MiB)", |limits| limits.memory_mib),
        ("processes", |limits| limits.processes),
        ("open files", |limits| limits.open_files),
        ("file size (MiB)", |limits| limits.file_mib),
        ("output (KiB)", |limits| limits.output_kib),
    ];
    let mut found = Vec::new();
    for (name, field) in fields {
        // Alone, the host's default applies where there is no limit; beside others, theirs.
        let most = |limits: &Limits, other: Option<u32>| {
            field(limits).into_iter().chain(other).min().or(field(&defaults)).unwrap_or(u32::MAX)
        };
        let beside = [(Beside::Nothing, None), (Beside::Allowing, Some(u32::MAX))];
        let milder = beside.into_iter().find(|(_, other)| most(&new, *other) > most(&old, *other));
        let Some((beside, other)) = milder else { continue };
        let answers = [&old, &new].map(|limits| PolicyAnswer::new(&most(limits, other).to_string(), "", ""));
        found.push(loosening(&format!("the limit of a command on {name}"), answers, beside));
    }
    found
}

fn loosening(what: &str, [old, new]: [PolicyAnswer; 2], beside: Beside) -> Loosening {
    Loosening { name: format!("standing rules: {what}"), old, new, beside: Some(beside), right: None }
}
