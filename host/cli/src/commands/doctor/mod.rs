//! `portcullis doctor`: reports the sandbox mechanisms of this machine, and tests a sandbox.
//!
//! For each missing mechanism it gives the cause and a remedy.

mod installation;
mod profile_test;
mod self_test;
mod sources;

use std::path::Path;

use anyhow::Context as _;
use portcullis_bootstrap::confiner::confiner;
use portcullis_bootstrap::in_force::{self, InForce};
use portcullis_bootstrap::loaded_settings::{self, Wanted};
use portcullis_bootstrap::process_env::{OWN_PROGRAM, ProcessEnv};
use portcullis_sandbox::{Advice, Facts, Finding, Tier, advice, apparmor_profile};
use portcullis_sandbox_runtime::{probe, read_facts};
use portcullis_settings::RealDisk;
use portcullis_settings_format::Warning;
use serde::Serialize;

use installation::Installation;
use portcullis_command_line::args::doctor::Doctor;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::human::path;
use portcullis_command_line::output::{self, Page, Tint, cell, tinted};
use profile_test::ProfileTested;
use self_test::{AttackResult, Attacked, Tested};

/// The results.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Findings {
    system: String,
    mechanisms: Vec<Mechanism>,
    tier: &'static str,
    required_tier: &'static str,
    does_not_stop: &'static [&'static str],
    /// Why there is no sandbox although every mechanism works.
    sandbox_error: Option<String>,
    /// Whether commands find the user's caches; `None` where commands have no private home.
    sees_caches: Option<bool>,
    self_test: Vec<Attacked>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Mechanism {
    name: &'static str,
    purpose: &'static str,
    needed: bool,
    works: bool,
    /// Details of a working mechanism, or the kernel's error.
    detail: String,
    cause: Option<String>,
    remedy: Option<String>,
}

/// What commands do without the user's caches, and the remedy.
const NO_CACHES: &str = "not found: tools fetch their packages again, once for each project, because overlay mounts do \
     not work below the state directory; XDG_STATE_HOME can name a directory on another file system";

/// Runs the checks.
pub(crate) fn run(doctor: &Doctor) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    if let Some(file) = &doctor.write_apparmor {
        return write_profile(&around, file);
    }
    let project = doctor.place.project.clone().unwrap_or_else(|| around.cwd.clone());
    let settings = doctor.place.settings.clone();
    let loaded = loaded_settings::load(&around, &Wanted::judging(project.clone(), settings.clone()))?;
    let required = portcullis_session::required_tier(&loaded.resolved);
    let (tier, findings) = examine(&around, required)?;
    // If the settings require a higher tier, no commands run.
    let given = if meets(tier, required) { tier } else { Tier::None };
    let in_force = in_force::in_force(&around, &project, settings.as_deref(), &RealDisk, given);
    let installation = Installation::find(&around, &loaded.places);
    let settings = sources::Sources::read(&around, &doctor.place)?;
    let mut page = Page::new(&around);
    if doctor.json {
        let mut value = serde_json::to_value(&findings)?;
        if let Some(members) = value.as_object_mut() {
            members.insert("installation".to_owned(), serde_json::to_value(&installation)?);
            members.insert("settings".to_owned(), serde_json::to_value(&settings)?);
            members.insert("inForce".to_owned(), in_force.as_ref().map(InForce::to_json).ok().into());
            members.insert("warnings".to_owned(), serde_json::to_value(&loaded.resolved.warnings)?);
        }
        page.json(&value);
    } else {
        human(&mut page, &findings);
        installation.print(&mut page, &around);
        settings.print(&mut page, &around);
        match &in_force {
            Ok(in_force) => crate::in_force::print(&mut page, in_force, "in force here"),
            Err(error) => page.line(&format!("\nnothing is allowed here: {error:#}")),
        }
        warnings(&mut page, &around, &loaded.resolved.warnings);
    }
    page.print()?;
    Ok(exit(tier, required, &findings.self_test))
}

fn examine(around: &ProcessEnv, required: Tier) -> anyhow::Result<(Tier, Findings)> {
    if let Some(confiner) = confiner(around) {
        return examine_profile(around, &confiner, required);
    }
    let facts = read_facts();
    let mechanisms = probe(Path::new(OWN_PROGRAM)).iter().map(|one| mechanism(one, &facts)).collect();
    let (tier, sandbox_error, sees_caches, self_test) = match self_test::run(around)? {
        Ok(Tested { tier, sees_caches, attacked }) => {
            (tier, None, (tier == Tier::Full).then_some(sees_caches), attacked)
        }
        Err(why) => (Tier::None, Some(why), None, Vec::new()),
    };
    let findings = Findings {
        system: system(&facts),
        mechanisms,
        tier: tier.name(),
        required_tier: required.name(),
        does_not_stop: tier.lacks(),
        sandbox_error,
        sees_caches,
        self_test,
    };
    Ok((tier, findings))
}

/// Examines a system whose commands run under a profile. Its mechanisms cannot be probed one by one.
fn examine_profile(around: &ProcessEnv, confiner: &Path, required: Tier) -> anyhow::Result<(Tier, Findings)> {
    let ProfileTested { tested, failed } = profile_test::run(around, confiner)?;
    let findings = Findings {
        system: format!("{}: {EXPERIMENTAL}", std::env::consts::OS),
        mechanisms: Vec::new(),
        tier: tested.tier.name(),
        required_tier: required.name(),
        does_not_stop: tested.tier.lacks(),
        sandbox_error: failed,
        sees_caches: None,
        self_test: tested.attacked,
    };
    Ok((tested.tier, findings))
}

/// What is to be known about every system but Linux.
const EXPERIMENTAL: &str = "experimental: not run by its makers";

/// Returns true if commands run in this tier. Required tiers are Linux': a profile has proved itself, or is none.
fn meets(tier: Tier, required: Tier) -> bool {
    tier == Tier::Profile || tier >= required
}

fn mechanism(finding: &Finding, facts: &Facts) -> Mechanism {
    let (cause, remedy) = advice(finding, facts).map(|Advice { cause, remedy }| (cause, remedy)).unzip();
    Mechanism {
        name: finding.primitive.name(),
        purpose: finding.primitive.purpose(),
        needed: finding.primitive.is_needed(),
        works: finding.outcome.is_ok(),
        detail: match &finding.outcome {
            Ok(detail) => detail.clone(),
            Err(refused) => refused.to_string(),
        },
        cause,
        remedy,
    }
}

fn system(facts: &Facts) -> String {
    let container = facts.container.iter().map(|name| format!(", in a container ({name})"));
    let wsl = facts.is_wsl.then(|| ", in the Windows Subsystem for Linux".to_owned());
    let filter = facts.is_filtered.then(|| ", under a filter of system calls".to_owned());
    let label = facts.apparmor_label.iter().map(|label| format!(", AppArmor label `{label}`"));
    let notes: String = container.chain(wsl).chain(filter).chain(label).collect();
    format!("Linux {}{notes}", facts.release)
}

fn exit(tier: Tier, required: Tier, attacked: &[Attacked]) -> Exit {
    if attacked.iter().any(|attack| attack.came == AttackResult::Through) {
        return Exit::Bad;
    }
    match tier {
        tier if !meets(tier, required) || tier == Tier::None => Exit::NoSandbox,
        Tier::Full => Exit::Done,
        Tier::None | Tier::Profile | Tier::Landlock | Tier::Namespaces => Exit::Weaker,
    }
}

fn human(page: &mut Page, findings: &Findings) {
    page.table("", &[vec![cell("system"), cell(&findings.system)]]);
    if !findings.mechanisms.is_empty() {
        page.line("\nmechanisms");
    }
    for one in &findings.mechanisms {
        let (word, tint) = match (one.works, one.needed) {
            (true, _) => ("works", Tint::Good),
            (false, true) => ("missing", Tint::Bad),
            (false, false) => ("missing", Tint::Open),
        };
        let purpose = match one.works && !one.detail.is_empty() {
            true => format!("{} ({})", one.purpose, one.detail),
            false => one.purpose.to_owned(),
        };
        page.row("  ", &[cell(one.name), tinted(word, tint), cell(&purpose)], &[14, 7]);
        if !one.works {
            page.row("    ", &[tinted("error", Tint::Faint), cell(&one.detail)], &[7]);
        }
        for (title, text) in [("cause", &one.cause), ("remedy", &one.remedy)] {
            if let Some(text) = text {
                page.row("    ", &[tinted(title, Tint::Faint), cell(text)], &[7]);
            }
        }
    }
    let tint = if findings.tier == Tier::Full.name() { Tint::Good } else { Tint::Bad };
    page.line("");
    page.table(
        "",
        &[
            vec![cell("tier"), tinted(findings.tier, tint)],
            vec![cell("required"), cell(findings.required_tier)],
        ],
    );
    if let Some(error) = &findings.sandbox_error {
        page.table("", &[vec![cell("no sandbox"), tinted(error, Tint::Bad)]]);
    }
    if let Some(sees_caches) = findings.sees_caches {
        let (text, tint) = if sees_caches { ("found", Tint::Good) } else { (NO_CACHES, Tint::Open) };
        page.row("", &[cell("your caches"), tinted(text, tint)], &[11]);
    }
    for (index, lack) in findings.does_not_stop.iter().enumerate() {
        let title = if index == 0 { "not stopped" } else { "" };
        page.row("", &[cell(title), cell(lack)], &[11]);
    }
    if !findings.self_test.is_empty() {
        page.line("\nself-test");
        let row = |attacked: &Attacked| {
            let (word, tint) = match attacked.came {
                AttackResult::Blocked => ("blocked", Tint::Good),
                AttackResult::Through => ("CAME THROUGH", Tint::Bad),
                AttackResult::Untried => ("not tried", Tint::Faint),
                AttackResult::Works => ("works", Tint::Good),
                AttackResult::NotWorking => ("NOT POSSIBLE", Tint::Bad),
            };
            vec![tinted(word, tint), cell(attacked.attack)]
        };
        page.table("  ", &findings.self_test.iter().map(row).collect::<Vec<_>>());
    }
}

/// Prints warnings on the settings.
fn warnings(page: &mut Page, around: &ProcessEnv, warnings: &[Warning]) {
    if warnings.is_empty() {
        return;
    }
    page.line("\nwarnings");
    for warning in warnings {
        let place = path(around, warning.origin.to_string());
        page.row("  ", &[tinted(&place, Tint::Open), cell(&warning.text)], &[]);
    }
}

fn write_profile(around: &ProcessEnv, file: &Path) -> exit::Outcome {
    let profile = apparmor_profile(&around.executable)
        .map_err(|reason| anyhow::anyhow!("{reason}: `{}`", around.executable.display()))?;
    if file == Path::new("-") {
        output::print_document(&profile)?;
    } else {
        std::fs::write(file, profile).with_context(|| format!("writing the profile `{}`", file.display()))?;
        portcullis_bootstrap::streams::say(&format!(
            "written; load it with `sudo apparmor_parser -r {}`",
            file.display()
        ));
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_says_what_is_there() {
        let attacked = |came| vec![Attacked { attack: "x", came }];
        for (tier, required, came, expected) in [
            (Tier::Full, Tier::Full, AttackResult::Blocked, Exit::Done),
            (Tier::Full, Tier::Full, AttackResult::Untried, Exit::Done),
            (Tier::Full, Tier::Full, AttackResult::Through, Exit::Bad),
            (Tier::Namespaces, Tier::Namespaces, AttackResult::Blocked, Exit::Weaker),
            (Tier::Namespaces, Tier::Full, AttackResult::Blocked, Exit::NoSandbox),
            (Tier::Landlock, Tier::Landlock, AttackResult::Blocked, Exit::Weaker),
            (Tier::Landlock, Tier::Namespaces, AttackResult::Blocked, Exit::NoSandbox),
            (Tier::None, Tier::Namespaces, AttackResult::Untried, Exit::NoSandbox),
            (Tier::Profile, Tier::Full, AttackResult::Blocked, Exit::Weaker),
            (Tier::Profile, Tier::Full, AttackResult::Through, Exit::Bad),
        ] {
            assert_eq!(exit(tier, required, &attacked(came)), expected, "{tier} {required} {came:?}");
        }
    }
}
