//! The self-test under each confiner.

use portcullis_each_user::Test;
use portcullis_profile_runtime::ProfileError;
use portcullis_profile_runtime::self_test::{Findings, Outcome};
use portcullis_sandbox::{Limits, Tier};

use crate::kit::{CONFINES, CONFINES_EVERYTHING, CONFINES_NOTHING, Ground};

pub(crate) const TESTS: &[Test] = &[
    ("a_sandbox_that_confines_passes", a_sandbox_that_confines_passes),
    ("one_that_does_not_confine_is_none", one_that_does_not_confine_is_none),
    ("one_in_which_nothing_runs_is_none", one_in_which_nothing_runs_is_none),
    ("one_hole_is_enough", one_hole_is_enough),
    ("a_confiner_that_is_not_there_is_none", a_confiner_that_is_not_there_is_none),
];

fn failed(ground: &Ground) -> Findings {
    match ground.start(Limits::default()) {
        Err(ProfileError::Failed(findings)) => findings,
        other => panic!("{other:?}"),
    }
}

fn a_sandbox_that_confines_passes() {
    let ground = Ground::new(CONFINES);
    let sandbox = ground.sandbox();
    assert!(sandbox.findings().are_good());
    assert!(sandbox.findings().list.len() > 10);
    assert_eq!(sandbox.report().tier(), Tier::Profile);
    let left = std::fs::read_dir(ground.at("open")).expect("a directory").count();
    assert_eq!(left, 0, "the test leaves nothing");
}

fn one_that_does_not_confine_is_none() {
    let findings = failed(&Ground::new(CONFINES_NOTHING));
    let outcome = |is_attack| findings.list.iter().filter(move |finding| finding.is_attack == is_attack);
    assert!(outcome(true).all(|finding| finding.outcome == Outcome::CameThrough), "{findings:?}");
    assert!(outcome(false).all(|finding| finding.outcome == Outcome::Good), "{findings:?}");
    let text = findings.to_string();
    assert!(text.contains("not stopped: reading a hidden file") && text.contains("past the gate"), "{text}");
}

fn one_in_which_nothing_runs_is_none() {
    let findings = failed(&Ground::new(CONFINES_EVERYTHING));
    let attacks = findings.list.iter().filter(|finding| finding.is_attack);
    // Nothing came through, and that is not enough.
    assert!(attacks.clone().all(|finding| finding.outcome == Outcome::Good), "{findings:?}");
    let controls = findings.list.iter().filter(|finding| !finding.is_attack);
    assert!(controls.clone().all(|finding| finding.outcome == Outcome::NotWorking), "{findings:?}");
    assert!(findings.to_string().contains("not possible in it: "), "{findings}");
}

/// Each hole in the confiner is found by its attack.
fn one_hole_is_enough() {
    for (intact, hole, attack) in [
        (
            "struct.pack(\"QQQ\", WRITES, CONNECTS, SIGNALS)",
            "struct.pack(\"QQQ\", WRITES, CONNECTS, 0)",
            "signalling",
        ),
        (
            "struct.pack(\"QQQ\", WRITES, CONNECTS, SIGNALS)",
            "struct.pack(\"QQQ\", WRITES, 0, SIGNALS)",
            "connecting past",
        ),
        ("\"tmpfs\", RDONLY)", "None, BIND) if False else None", "reading a hidden file"),
        ("if project:", "if False:", "protected name"),
    ] {
        assert!(CONFINES.contains(intact), "{intact}");
        let mut holed = CONFINES.replacen(intact, hole, 1);
        if attack == "connecting past" {
            holed = holed.replacen("for port in ports:", "for port in []:", 1);
        }
        let findings = failed(&Ground::new(&holed));
        let through = findings.list.iter().filter(|finding| finding.outcome == Outcome::CameThrough);
        let names: Vec<&str> = through.map(|finding| finding.what).collect();
        assert!(names.iter().any(|name| name.contains(attack)), "{attack}: {findings}");
    }
}

fn a_confiner_that_is_not_there_is_none() {
    let ground = Ground::new(CONFINES);
    std::fs::remove_file(ground.at("confiner")).expect("removed");
    let findings = failed(&ground);
    assert!(!findings.are_good());
}
