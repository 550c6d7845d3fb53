//! Converts a guest's profile to the host's types and checks each field.

use portcullis_decision::PolicyError;
use portcullis_decision::profile::{BudgetRule, EnvironmentRule, FileRule, Limits, NetworkRule, Profile};
use portcullis_decision::verdict::Effect;

use super::bindings::exports::portcullis::policy::confinement as guest;
use super::bindings::portcullis::policy::types;
use super::patterns::{attribute, file_pattern, file_rights, network_pattern};
use crate::check::{self, bad};

pub(super) fn profile(profile: guest::Profile) -> Result<Profile, PolicyError> {
    let all = check::PROFILE_ENTRIES;
    refuse_unenforced(&profile)?;
    globs_are_few(&profile.files)?;
    Ok(Profile {
        files: check::list(profile.files, "profile.files", all, file_rule)?,
        network: check::list(profile.network, "profile.network", all, network_rule)?,
        budgets: check::list(profile.budgets, "profile.budgets", all, budget_rule)?,
        environment: check::list(profile.environment, "profile.environment", all, environment_rule)?,
        variables: check::list(profile.variables, "profile.variables", all, variable)?,
        limits: limits(profile.limits),
        attributes: check::list(profile.attributes, "profile.attributes", check::ENTRIES, attribute)?,
    })
}

/// Refuses profile entries that this host does not enforce.
///
/// Silently accepting them would make the policy believe that they are in force.
fn refuse_unenforced(profile: &guest::Profile) -> Result<(), PolicyError> {
    let parts = [
        ("profile.sockets", profile.sockets.is_empty(), "deny reading their paths instead"),
        ("profile.ports", profile.ports.is_empty(), "write a network rule on the loopback instead"),
        ("profile.tracing", matches!(profile.tracing, guest::Choice::NoOpinion), "nobody may trace inside"),
    ];
    for (name, is_empty, hint) in parts {
        if !is_empty {
            return Err(bad(format!("`{name}` is not enforced by this host; {hint}")));
        }
    }
    if profile.budgets.iter().any(|rule| matches!(rule.span, guest::Span::Command)) {
        return Err(bad(
            "`budget-rule.span` is counted over the session by this host, never over one command",
        ));
    }
    Ok(())
}

/// Limits the globs of a profile, because each is compiled while a session waits.
fn globs_are_few(rules: &[guest::FileRule]) -> Result<(), PolicyError> {
    let length = |rule: &guest::FileRule| match &rule.pattern {
        types::FilePattern::Exact(_) | types::FilePattern::Tree(_) => 0,
        types::FilePattern::Glob(glob) => glob.len(),
        types::FilePattern::Name(name) => name.glob.len(),
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
        condition: check::optional_name(rule.condition, "file-rule.condition")?,
        reason: check::line(rule.reason),
        setting: check::line(rule.setting),
    })
}

fn network_rule(rule: guest::NetworkRule) -> Result<NetworkRule, PolicyError> {
    Ok(NetworkRule {
        id: check::name(rule.id, "network-rule.id")?,
        target: network_pattern(rule.target)?,
        program: program(rule.program)?,
        effect: effect(rule.effect),
        reason: check::line(rule.reason),
        setting: check::line(rule.setting),
    })
}

fn budget_rule(rule: guest::BudgetRule) -> Result<BudgetRule, PolicyError> {
    Ok(BudgetRule {
        id: check::name(rule.id, "budget-rule.id")?,
        target: network_pattern(rule.target)?,
        kib: rule.kib,
        effect: effect(rule.effect),
        reason: check::line(rule.reason),
        setting: check::line(rule.setting),
    })
}

fn environment_rule(rule: guest::EnvironmentRule) -> Result<EnvironmentRule, PolicyError> {
    Ok(EnvironmentRule {
        id: check::name(rule.id, "environment-rule.id")?,
        name: check::name(rule.name, "environment-rule.name")?,
        effect: effect(rule.effect),
        reason: check::line(rule.reason),
        setting: check::line(rule.setting),
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

/// Checks a program, given by path or by last component. It may contain spaces.
fn program(program: String) -> Result<String, PolicyError> {
    if program.is_empty() || program.len() > check::LINE || program.contains('\0') {
        return Err(bad("`network-rule.program` is empty, too long or holds a NUL"));
    }
    Ok(program)
}

fn effect(effect: guest::Effect) -> Effect {
    match effect {
        guest::Effect::Allow => Effect::Allow,
        guest::Effect::Ask => Effect::Ask,
        guest::Effect::Deny => Effect::Deny,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> guest::Profile {
        guest::Profile {
            files: Vec::new(),
            network: Vec::new(),
            budgets: Vec::new(),
            sockets: Vec::new(),
            ports: Vec::new(),
            environment: Vec::new(),
            variables: Vec::new(),
            limits: guest::Limits {
                wall_ms: None,
                cpu_ms: None,
                memory_mib: None,
                processes: None,
                open_files: None,
                file_mib: None,
                output_kib: None,
            },
            tracing: guest::Choice::NoOpinion,
            attributes: Vec::new(),
        }
    }

    #[test]
    fn globs_have_a_limit_together() {
        let rule = |pattern: types::FilePattern| guest::FileRule {
            id: "x".to_owned(),
            pattern,
            rights: types::FileRights::WRITE,
            effect: guest::Effect::Deny,
            conceal: false,
            condition: String::new(),
            reason: String::new(),
            setting: String::new(),
        };
        let rules = |count: usize, pattern: fn(String) -> types::FilePattern| {
            (0..count).map(|_| rule(pattern("x".repeat(1024)))).collect::<Vec<_>>()
        };
        globs_are_few(&rules(256, types::FilePattern::Glob)).unwrap();
        assert!(globs_are_few(&rules(257, types::FilePattern::Glob)).is_err());
        globs_are_few(&rules(1000, types::FilePattern::Tree)).unwrap();
    }

    #[test]
    fn what_is_not_enforced_is_not_taken() {
        assert!(profile(empty()).is_ok());
        let port = guest::PortRule {
            id: "port".to_owned(),
            port: 80,
            direction: guest::PortDirection::ToHost,
            effect: guest::Effect::Deny,
            reason: String::new(),
            setting: String::new(),
        };
        for (refused, name) in [
            (guest::Profile { ports: vec![port], ..empty() }, "profile.ports"),
            (guest::Profile { tracing: guest::Choice::Deny, ..empty() }, "profile.tracing"),
        ] {
            let said = profile(refused).unwrap_err().to_string();
            assert!(said.contains(name) && said.contains("not enforced"), "{said}");
        }
    }
}
