//! Notes on operations that were refused to a running command.

use std::path::{Path, PathBuf};

use portcullis_decision::host_rules::{HARD_LINKS, HOST};
use portcullis_decision::profile::FileRight;
use portcullis_decision::request::{Action, Content, FileAccess, FileFacts, FileOperation, Origin, PathKind};
use portcullis_decision::{
    AnsweredBy, Caller, Decision, Effect, Reader, RefusalOrigin, RefusalText, Request, RuleSet, Ruling,
    allow_path, path_text,
};
use portcullis_sandbox::NameAccess;
use portcullis_sandbox_runtime::RefusedCall;
use portcullis_text::escape;

use crate::paths;
use crate::session::Session;

/// Reason for refusing to read a file that a rule hides under another name.
const OTHER_NAME: &str = "it is another name (hard link) of a file that commands may not read";

/// Addition to the reason of a rule that asks, where a running command cannot wait for an answer.
const UNASKED: &str = "there, a running command cannot wait for an answer";

/// Maximum number of refusals of one command to list and to record; further ones are counted.
const TOLD: usize = 8;

/// The components of a top directory: the root, and its name.
const TOP_COMPONENTS: usize = 2;

/// Returns the notes on refusals by rules, without a question.
pub(crate) fn by_rules(
    refusals: &[RefusedCall],
    rules: &RuleSet,
    reader: Reader,
    own: &[PathBuf],
) -> Vec<String> {
    let told = refusals.iter().map(|refused| {
        let ruling = ruling(refused, rules);
        let refusal = RefusalText::by_rule(&ruling.policy, &ruling.rule, &ruling.reason).read_by(reader);
        let is_asked = ruling.effect == Effect::Ask;
        let origin = if is_asked { RefusalOrigin::Unanswered } else { refusal.origin };
        line(refused.attempt, &refused.path, RefusalText { origin, ..refusal }, own)
    });
    shortened(told.collect())
}

/// Records the first refusals by rules in the log, as requests of the command. So `explain` finds them.
///
/// `rules` are the command's own rules, if it has some.
pub(crate) fn record(
    session: &Session,
    command: &Request,
    refusals: &[RefusedCall],
    rules: Option<&RuleSet>,
) {
    for refused in refusals.iter().take(TOLD) {
        let mut request = session.request(Origin::Process, action(session, refused));
        request.parent = Some(command.id.clone());
        let decision = session.decide_under(&request, rules).denied(AnsweredBy::Nothing, UNASKED);
        // The rules may have changed since the call.
        if decision.effect() == Effect::Deny {
            let _denied = session.record(request, decision);
        }
    }
}

/// Returns the ruling on a refused call: of the rule over names, or of the session's rules.
fn ruling(RefusedCall { attempt, path, rule }: &RefusedCall, rules: &RuleSet) -> Ruling {
    let by_host = |rule: &str, reason: &str| Ruling {
        effect: Effect::Deny,
        policy: HOST.to_owned(),
        rule: rule.to_owned(),
        reason: reason.to_owned(),
        setting: String::new(),
        conceal: false,
    };
    match portcullis_exec_surface::rule(rule) {
        Some(rule) => by_host(rule.id, rule.reason),
        None if rule == HARD_LINKS => by_host(HARD_LINKS, OTHER_NAME),
        None => {
            let right = if *attempt == NameAccess::Read { FileRight::Read } else { FileRight::Write };
            rules.file(path, right, Caller::Command)
        }
    }
}

fn action(session: &Session, refused: &RefusedCall) -> Action {
    let path = &refused.path;
    let shown = path_text::encode(path);
    let kind = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => PathKind::Directory,
        Ok(found) if found.is_file() => PathKind::File,
        Ok(_) => PathKind::Other,
        Err(_) => PathKind::Missing,
    };
    let path = paths::reference(&session.setup.context, &shown, path, path, kind);
    let operation = match refused.attempt {
        NameAccess::Read => FileOperation::Read,
        NameAccess::Write => FileOperation::Write(Content::Unknown),
        NameAccess::MakeDirectory => FileOperation::CreateDirectory,
        NameAccess::Remove => FileOperation::Delete,
    };
    Action::File(FileAccess { path, operation, facts: FileFacts::default() })
}

/// Returns the note on a refusal after a question.
pub(crate) fn after_question(
    session: &Session,
    attempt: NameAccess,
    path: &Path,
    decision: &Decision,
) -> String {
    let refusal = RefusalText::for_decision(decision).read_by(session.setup.reader);
    line(attempt, path, refusal, &session.own_places())
}

/// Returns the note on one refusal. It does not advise to allow a top directory such as `/etc` for a file in it, or one
/// that contains one of the `own` directories: the home directories and the project.
fn line(attempt: NameAccess, path: &Path, refusal: RefusalText<'_>, own: &[PathBuf]) -> String {
    let what = match attempt {
        NameAccess::Read => "reading",
        NameAccess::Write => "writing",
        NameAccess::MakeDirectory => "making the directory",
        NameAccess::Remove => "removing",
    };
    // Only what exists can be allowed, and the whole machine cannot.
    let known = path.ancestors().find(|path| path.symlink_metadata().is_ok());
    let is_top = |known: &Path| known != path && known.components().count() == TOP_COMPONENTS;
    let is_wide = known.is_some_and(|known| is_top(known) || own.iter().any(|own| own.starts_with(known)));
    let known = known.filter(|known| known.parent().is_some() && !is_wide);
    let allow = |path: &Path| allow_path(path, attempt != NameAccess::Read);
    let create = match refusal.reader {
        Reader::Model => format!("have the user create it, then run `portcullis allow {}`", allow(path)),
        Reader::User => format!("create it, then run `portcullis allow {}`", allow(path)),
    };
    let is_unasked = refusal.origin == RefusalOrigin::Unanswered && refusal.hint.is_none();
    let hint = if is_wide && is_unasked { Some(create.as_str()) } else { refusal.hint };
    let refusal = RefusalText { hint, ..refusal };
    let path = escape(&path.to_string_lossy());
    format!("The sandbox refused {what} `{path}`: {}", refusal.with_next_step(known.map(allow).as_deref()))
}

fn shortened(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(TOLD);
    lines.truncate(TOLD);
    if more > 0 {
        lines.push(format!("The sandbox refused {more} more of the command's calls by rules."));
    }
    lines
}

#[cfg(test)]
mod tests {
    use portcullis_decision::Base;

    use super::*;

    #[test]
    fn rule_and_reason_are_told() {
        let rules = RuleSet::compile(Vec::new(), Base::default(), &[]);
        let refusal = |path: &str, rule: &str| RefusedCall {
            attempt: NameAccess::Write,
            path: path.into(),
            rule: rule.to_owned(),
        };
        let told = by_rules(&[refusal("/w/hard", HARD_LINKS)], &rules, Reader::Model, &[]);
        assert!(told[0].contains("another name (hard link)"), "{told:?}");
        let told = by_rules(
            &[refusal("/w/a\u{202e}b", ""), refusal("/w/.git/hooks/x", "host.git-hooks")],
            &rules,
            Reader::Model,
            &[],
        );
        assert!(
            told[0].contains("(rule `base.outside` of `base`)") && !told[0].contains('\u{202e}'),
            "{told:?}"
        );
        assert!(told[0].ends_with("The user can allow it when asked."), "{told:?}");
        assert!(told[1].contains("(rule `host.git-hooks` of `host`)"), "{told:?}");
        assert!(told[1].ends_with("only the user's `protections.lift` opens it."), "{told:?}");
        let many: Vec<_> = (0..20).map(|number| refusal(&format!("/w/{number}"), "")).collect();
        let told = by_rules(&many, &rules, Reader::Model, &[]);
        assert_eq!(told.len(), TOLD + 1);
        assert!(told[TOLD].contains("12 more"), "{told:?}");
    }

    #[test]
    fn no_advice_opens_a_top_directory_a_home_or_the_project() {
        let rules = RuleSet::compile(Vec::new(), Base::default(), &[]);
        let in_etc = RefusedCall {
            attempt: NameAccess::Write,
            path: "/etc/portcullis-test-made".into(),
            rule: String::new(),
        };
        let told = by_rules(std::slice::from_ref(&in_etc), &rules, Reader::User, &[]).concat();
        assert!(told.ends_with("run `portcullis allow /etc/portcullis-test-made --write`."), "{told}");
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().canonicalize().unwrap();
        let path = home.join("made.txt");
        let refusal = RefusedCall { attempt: NameAccess::Write, path: path.clone(), rule: String::new() };
        let told =
            |own: &[PathBuf]| by_rules(std::slice::from_ref(&refusal), &rules, Reader::Model, own).concat();
        // Control.
        let opens = format!("portcullis allow {} --write", home.display());
        assert!(told(&[]).ends_with(&opens), "{}", told(&[]));
        for own in [home.clone(), home.join("project")] {
            let told = told(&[own]);
            assert!(!told.contains(&opens) && told.contains("create it"), "{told}");
            assert!(told.ends_with(&format!("portcullis allow {} --write`.", path.display())), "{told}");
        }
    }
}
