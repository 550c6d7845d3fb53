//! The choices of questions, and the effects of answers.

use super::*;

/// Returns the index of the first choice that fits.
fn chosen(scene: &Scene, path: &Path, fits: impl Fn(&portcullis_session::Choice) -> bool) -> usize {
    let refused = read(scene, path).unwrap_err();
    assert!(matches!(refused, FileFailure::Denied(_)), "{refused}");
    let seen = scene.prompter.seen.lock().unwrap();
    seen.last().unwrap().choices.iter().position(fits).unwrap()
}

#[test]
fn the_choices_go_from_once_to_every_project_the_narrowest_first() {
    let scene = scene(Some(Answer::Refused(Refusal::User)), Recorded::default(), true);
    let outside = scene.project.parent().unwrap().join("outside.txt");
    read(&scene, &outside).unwrap_err();
    let seen = scene.prompter.seen.lock().unwrap();
    let choices: Vec<_> = seen[0]
        .choices
        .iter()
        .map(|choice| {
            format!("{} {} {}", choice.code(), choice.label, choice.target.as_deref().unwrap_or(""))
        })
        .collect();
    assert_eq!(
        choices,
        [
            "o Once ",
            "s For this session ",
            "s2 For this session ",
            "P Allow for project project.json",
            "P2 Allow for project project.json",
            "A Allow for all all.json",
            "A2 Allow for all all.json",
            "d No, for this session ",
        ]
    );
    let covers = |index: usize| seen[0].choices[index].covers.clone().unwrap();
    assert_eq!(covers(1), "reading ~/outside.txt");
    assert_eq!(covers(2), "reading everything below ~, unless denied");
}

#[test]
fn an_answer_for_the_project_is_kept_and_holds_at_once() {
    for (scope, place) in [(GrantScope::Project, "project"), (GrantScope::User, "all")] {
        let probe = scene(Some(Answer::Refused(Refusal::User)), Recorded::default(), true);
        let outside = probe.project.parent().unwrap().join("outside.txt");
        let index = chosen(&probe, &outside, |choice| choice.scope == scope);

        let scene = scene(Some(Answer::Choice(index)), Recorded::default(), true);
        let outside = scene.project.parent().unwrap().join("outside.txt");
        for _ in 0..2 {
            assert_eq!(read(&scene, &outside).unwrap(), "outside");
        }
        assert_eq!(scene.prompter.shown.load(Ordering::SeqCst), 1, "{place}");
        let kept = scene.keeper.kept.lock().unwrap();
        assert_eq!((kept.len(), kept[0].0.as_str(), kept[0].1.scope), (1, place, scope));
    }
}

#[test]
fn an_answer_that_cannot_be_kept_holds_for_the_session_and_says_so() {
    let probe = scene(Some(Answer::Refused(Refusal::User)), Recorded::default(), true);
    let find = |scene: &Scene| scene.project.parent().unwrap().join("outside.txt");
    let index = chosen(&probe, &find(&probe), |choice| choice.scope == GrantScope::User);
    let scene = scene(Some(Answer::Choice(index)), Recorded::default(), true);
    scene.keeper.full.store(true, Ordering::SeqCst);
    assert_eq!(read(&scene, &find(&scene)).unwrap(), "outside");
    assert!(scene.prompter.notices.lock().unwrap()[0].contains("the disk is full"));
    // A reload removes answers that files should contain by now; this answer is not one of them.
    scene.session.reload(basis(&scene)).unwrap();
    assert_eq!(read(&scene, &find(&scene)).unwrap(), "outside");
    assert_eq!(scene.prompter.shown.load(Ordering::SeqCst), 1);
}

#[test]
fn a_refusal_for_the_session_is_remembered_for_that_right_alone() {
    let probe = scene(Some(Answer::Refused(Refusal::User)), Recorded::default(), true);
    let find = |scene: &Scene| scene.project.parent().unwrap().join("outside.txt");
    let index = chosen(&probe, &find(&probe), |choice| choice.kind == ChoiceKind::Deny);
    let scene = scene(Some(Answer::Choice(index)), Recorded::default(), true);
    for _ in 0..3 {
        let refused = read(&scene, &find(&scene)).unwrap_err();
        assert!(refused.to_string().contains("you said no for this session"), "{refused}");
    }
    assert_eq!(scene.prompter.shown.load(Ordering::SeqCst), 1, "it is asked once");
    let path = find(&scene);
    let given = path.display().to_string();
    let call = FileCall { path: &path, given: &given, call: None, cancel: &Cancel::default() };
    files::write(&scene.session, call, "x").unwrap_err();
    assert_eq!(scene.prompter.shown.load(Ordering::SeqCst), 2, "writing is another question");

    for remembered in scene.session.remembered() {
        assert!(scene.session.forget(remembered.id));
    }
    read(&scene, &find(&scene)).unwrap_err();
    assert_eq!(scene.prompter.shown.load(Ordering::SeqCst), 3, "what was taken back is asked again");
}

#[test]
fn a_question_is_answered_from_elsewhere_once() {
    let scene = scene(None, Recorded::default(), true);
    let session = Arc::clone(&scene.session);
    let waiting = std::thread::spawn(move || {
        let request = tool(&session, "t");
        session.authorize(request, None, &Cancel::default()).decision.effect()
    });
    until(|| scene.session.questions().len() == 1);
    let id = scene.session.questions()[0].id;
    assert!(!scene.session.answer_question(id + 1, Answer::Choice(0)), "there is no such question");
    assert!(scene.session.answer_question(id, Answer::Choice(0)));
    assert_eq!(waiting.join().unwrap(), Effect::Allow);
    assert!(!scene.session.answer_question(id, Answer::Choice(0)), "it is answered");
    assert_eq!(*scene.prompter.withdrawn.lock().unwrap(), [id]);
}
