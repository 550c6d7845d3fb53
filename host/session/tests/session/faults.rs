//! A panic during a decision: the request is denied, the fault is logged, and all later requests are denied.

#![expect(
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "the fault is a panic, in one kind of call"
)]

use super::*;

/// Panics about tools called `fault` and allows all others.
fn faulty() -> Arc<dyn Policy> {
    let handles = ActionKinds { tool: true, file: true, ..ActionKinds::default() };
    let answer = |request: &Request| match &request.action {
        Action::Tool(call) if call.name == "fault" => panic!("as a fault would"),
        _ => Verdict::Allow(Vec::new()),
    };
    Arc::new(Answering { handles, answer })
}

/// Processes a request as the server of a client does.
fn guarded(scene: &Scene, name: &str) -> Result<Effect, String> {
    let authorize = || {
        let request = tool(&scene.session, name);
        Ok(scene.session.authorize(request, None, &Cancel::default()).decision.effect())
    };
    scene.session.guarded("deciding about a tool", authorize, Err)
}

#[test]
fn a_panic_is_a_denial_and_the_last_word() {
    let scene = scene_with(faulty(), None, Recorded::default(), true);
    assert_eq!(guarded(&scene, "t"), Ok(Effect::Allow), "control");
    assert_eq!(read(&scene, &scene.project.join("inside.txt")).unwrap(), "inside", "control");
    let before = scene.journal.lines.lock().unwrap().len();

    let reason = guarded(&scene, "fault").unwrap_err();
    assert!(reason.contains("while deciding about a tool (as a fault would)"), "{reason}");
    let written = scene.journal.lines.lock().unwrap()[before..].to_vec();
    assert!(matches!(&written[..], [line] if line.ends_with(" deny")), "{written:?}");
    assert_eq!(*scene.prompter.notices.lock().unwrap(), [reason]);

    assert_eq!(guarded(&scene, "t"), Ok(Effect::Deny), "what was allowed before");
    let denied = read(&scene, &scene.project.join("inside.txt")).unwrap_err();
    assert!(denied.to_string().contains("refuses everything in this session"), "{denied}");
    assert_eq!(guarded(&scene, "fault"), Ok(Effect::Deny), "and no policy is asked any more");
    assert_eq!(scene.prompter.notices.lock().unwrap().len(), 1, "it is told once");
}

#[test]
fn other_threads_get_answers_after_a_panic() {
    let scene = scene_with(faulty(), None, Recorded::default(), true);
    let all: Vec<_> = (0..8)
        .map(|at| {
            let session = Arc::clone(&scene.session);
            std::thread::spawn(move || {
                let name = if at % 2 == 0 { "fault" } else { "t" };
                let request = tool(&session, name);
                let decide = || session.authorize(request, None, &Cancel::default()).decision.effect();
                session.guarded("deciding about a tool", decide, |_| Effect::Deny)
            })
        })
        .collect();
    // All of them return, with an answer.
    let answers: Vec<Effect> = all.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert!(answers.iter().step_by(2).all(|effect| *effect == Effect::Deny), "{answers:?}");
    assert_eq!(guarded(&scene, "t"), Ok(Effect::Deny));
}
