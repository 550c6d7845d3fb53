//! The self-test of a sandbox under a profile, on systems without Linux' sandbox.

use std::net::TcpListener;
use std::path::Path;

use anyhow::Context as _;
use portcullis_bootstrap::confiner::directory_for_commands;
use portcullis_bootstrap::process_env::{ProcessEnv, random_name};
use portcullis_bootstrap::scratch::Scratch;
use portcullis_decision::{Base, RuleSet};
use portcullis_profile_runtime::self_test::{Findings, Outcome, Scene};
use portcullis_profile_runtime::{Host, ProfileError, ProfileSandbox};
use portcullis_sandbox::{Limits, Tier};
use portcullis_seatbelt::{Wanted, compile};
use portcullis_session::with_causes;

use super::self_test::{AttackResult, Attacked, Tested};

/// The names that the test attacks: one that no setting lifts, and a hook of git.
const PROTECTED: [&str; 2] = [".portcullis-self-test.tmp", ".git/hooks/pre-commit"];

/// What the test found: the results, and why there is no sandbox if it failed.
#[derive(Debug)]
pub(super) struct ProfileTested {
    pub(super) tested: Tested,
    pub(super) failed: Option<String>,
}

/// Tests a sandbox under a profile that is written for this test.
pub(super) fn run(around: &ProcessEnv, confiner: &Path) -> anyhow::Result<ProfileTested> {
    let making = |place: &Path| format!("making a directory in `{}`", place.display());
    let (closed_in, open_in) = (around.state.join("doctor"), directory_for_commands(around).join("doctor"));
    let closed = Scratch::make(&closed_in, &random_name()?).with_context(|| making(&closed_in))?;
    let open = Scratch::make(&open_in, &random_name()?).with_context(|| making(&open_in))?;
    let gate = TcpListener::bind("127.0.0.1:0").context("listening as the gate would")?;
    let port = gate.local_addr()?.port();
    let scene = Scene::make((closed.directory(), &open.temp()), "doctor", PROTECTED, port)
        .context("making files to attack")?;
    let base = Base {
        workspace: vec![scene.project.clone()],
        temp: open.temp(),
        closed: vec![closed.directory().to_owned()],
        ..Base::default()
    };
    let rules = RuleSet::compile(Vec::new(), base, &[]);
    let text =
        compile(&Wanted { ports: &[port], ..Wanted::of_rules(&rules) }).context("writing a profile")?;
    let host = Host { executable: around.executable.clone(), confiner: confiner.to_owned() };
    let file = closed.directory().join("profile");
    Ok(match ProfileSandbox::start(host, (&text, file), Limits::default(), &scene) {
        Ok(sandbox) => ProfileTested { tested: tested(Tier::Profile, sandbox.findings()), failed: None },
        Err(ProfileError::Failed(findings)) => {
            ProfileTested { tested: tested(Tier::None, &findings), failed: Some(findings.to_string()) }
        }
        Err(error) => ProfileTested {
            tested: Tested { tier: Tier::None, sees_caches: false, attacked: Vec::new() },
            failed: Some(with_causes(&error)),
        },
    })
}

fn tested(tier: Tier, findings: &Findings) -> Tested {
    let attacked = findings.list.iter().map(|finding| Attacked {
        attack: finding.what,
        came: match finding.outcome {
            Outcome::Good if finding.is_attack => AttackResult::Blocked,
            Outcome::Good => AttackResult::Works,
            Outcome::CameThrough => AttackResult::Through,
            Outcome::Untried => AttackResult::Untried,
            Outcome::NotWorking => AttackResult::NotWorking,
        },
    });
    Tested { tier, sees_caches: false, attacked: attacked.collect() }
}
