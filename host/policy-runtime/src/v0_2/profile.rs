//! Converts a guest's profile to the host's types and checks each field.

use portcullis_decision::PolicyError;
use portcullis_decision::profile::{BudgetRule, EnvironmentRule, FileRule, Limits, NetworkRule, Profile};
use portcullis_decision::request::Attribute;
use portcullis_decision::reservation::RESERVATIONS;
use portcullis_decision::verdict::Effect;

use super::bindings::exports::portcullis::policy::confinement as guest;
use super::bindings::portcullis::policy::{facts, files, verdicts};
use super::patterns::{attribute, file_pattern, file_rights, network_pattern, setting};
use crate::check::{self, bad};

/// The program of a rule for all programs.
const ANY_PROGRAM: &str = "*";

pub(super) fn profile(profile: guest::Profile) -> Result<Profile, PolicyError> {
    let all = check::PROFILE_ENTRIES;
    globs_are_few(&profile.files)?;
    Ok(Profile {
        files: check::list(profile.files, "profile.files", all, file_rule)?,
        network: check::list(profile.network, "profile.network", all, network_rule)?,
        budgets: check::list(profile.budgets, "profile.budgets", all, budget_rule)?,
        environment: check::list(profile.environment, "profile.environment", all, environment_rule)?,
        variables: check::list(profile.variables, "profile.variables", all, variable)?,
        limits: limits(profile.limits),
        attributes: attributes(profile.attributes, profile.reservations)?,
    })
}

fn attributes(extra: Vec<facts::Attribute>, reservations: bool) -> Result<Vec<Attribute>, PolicyError> {
    let mut attributes = check::list(extra, "profile.attributes", check::ENTRIES, attribute)?;
    if reservations {
        attributes.push(Attribute { name: RESERVATIONS.to_owned(), value: "{}".to_owned() });
    }
    Ok(attributes)
}

/// Limits the globs of a profile, because each is compiled while a session waits.
fn globs_are_few(rules: &[guest::FileRule]) -> Result<(), PolicyError> {
    let length = |rule: &guest::FileRule| match &rule.pattern {
        files::FilePattern::Exact(_) | files::FilePattern::Tree(_) => 0,
        files::FilePattern::Glob(glob) => glob.len(),
        files::FilePattern::Name(name) => name.glob.len(),
    };
    if rules.iter().map(length).sum::<usize>() > check::GLOBS {
        return Err(check::too_large("globs in `profile.files`, bytes of all together", check::GLOBS));
    }
    Ok(())
}

fn file_rule(rule: guest::FileRule) -> Result<FileRule, PolicyError> {
    Ok(FileRule {
        id: check::name(rule.id, "file-rule.id")?,
        pattern: file_pattern(rule.pattern)?,
        rights: file_rights(rule.rights),
        effect: effect(rule.effect),
        conceal: rule.conceal,
        condition: String::new(),
        reason: check::line(rule.reason),
        setting: setting(rule.setting),
    })
}

fn network_rule(rule: guest::NetworkRule) -> Result<NetworkRule, PolicyError> {
    Ok(NetworkRule {
        id: check::name(rule.id, "network-rule.id")?,
        target: network_pattern(rule.target)?,
        program: program(rule.program)?,
        effect: effect(rule.effect),
        reason: check::line(rule.reason),
        setting: setting(rule.setting),
    })
}

fn budget_rule(rule: guest::BudgetRule) -> Result<BudgetRule, PolicyError> {
    Ok(BudgetRule {
        id: check::name(rule.id, "budget-rule.id")?,
        target: network_pattern(rule.target)?,
        kib: rule.kib,
        effect: effect(rule.effect),
        reason: check::line(rule.reason),
        setting: setting(rule.setting),
    })
}

fn environment_rule(rule: guest::EnvironmentRule) -> Result<EnvironmentRule, PolicyError> {
    Ok(EnvironmentRule {
        id: check::name(rule.id, "environment-rule.id")?,
        name: check::name(rule.name, "environment-rule.name")?,
        effect: effect(rule.effect),
        reason: check::line(rule.reason),
        setting: setting(rule.setting),
    })
}

/// Checks an environment variable: POSIX forbids `=` in names, and NUL ends names and values.
fn variable((name, value): (String, String)) -> Result<(String, String), PolicyError> {
    let name = check::name(name, "profile.variables")?;
    if name.contains('=') || value.contains('\0') {
        return Err(bad("`profile.variables` contains text that no environment can contain"));
    }
    Ok((name, check::data(value, "profile.variables")?))
}

/// Checks a program; none is any. It is given by path or by last component, and may contain spaces.
fn program(program: Option<String>) -> Result<String, PolicyError> {
    let Some(program) = program else { return Ok(ANY_PROGRAM.to_owned()) };
    if program.is_empty() || program.len() > check::LINE || program.contains('\0') {
        return Err(bad("`network-rule.program` is empty, too long or holds a NUL"));
    }
    Ok(program)
}

fn effect(effect: verdicts::Effect) -> Effect {
    match effect {
        verdicts::Effect::Allow => Effect::Allow,
        verdicts::Effect::Ask => Effect::Ask,
        verdicts::Effect::Deny => Effect::Deny,
    }
}

fn limits(limits: guest::Limits) -> Limits {
    Limits {
        wall_ms: limits.wall_ms,
        cpu_ms: limits.cpu_ms,
        memory_mib: limits.memory_mib,
        processes: limits.processes,
        open_files: limits.open_files,
        file_mib: limits.file_mib,
        output_kib: limits.output_kib,
    }
}
