//! Notes on operations that were refused to a running command, for the model.

use std::path::Path;

use portcullis_decision::host_rules::{HARD_LINKS, HOST};
use portcullis_decision::profile::FileRight;
use portcullis_decision::{Caller, Decision, Effect, RefusalOrigin, RefusalText, RuleSet, allow_path};
use portcullis_sandbox::NameAccess;
use portcullis_sandbox_runtime::RefusedCall;
use portcullis_text::escape;

/// Reason for refusing to read a file that a rule hides under another name.
const OTHER_NAME: &str = "it is another name (hard link) of a file that commands may not read";

/// Maximum number of refusals to list; further ones are counted.
const TOLD: usize = 8;

/// Returns the notes on refusals by rules, without a question.
pub(crate) fn by_rules(refusals: &[RefusedCall], rules: &RuleSet) -> Vec<String> {
    let told =
        refusals.iter().map(|RefusedCall { attempt, path, rule }| {
            match portcullis_exec_surface::rule(rule) {
                Some(rule) => line(*attempt, path, RefusalText::by_rule(HOST, rule.id, rule.reason)),
                None if rule == HARD_LINKS => {
                    line(*attempt, path, RefusalText::by_rule(HOST, HARD_LINKS, OTHER_NAME))
                }
                None => {
                    let right = if *attempt == NameAccess::Read { FileRight::Read } else { FileRight::Write };
                    let ruling = rules.file(path, right, Caller::Command);
                    let refusal = RefusalText::by_rule(&ruling.policy, &ruling.rule, &ruling.reason);
                    let is_asked = ruling.effect == Effect::Ask;
                    let origin = if is_asked { RefusalOrigin::Unanswered } else { refusal.origin };
                    line(*attempt, path, RefusalText { origin, ..refusal })
                }
            }
        });
    shortened(told.collect())
}

/// Returns the note on a refusal after a question.
pub(crate) fn after_question(attempt: NameAccess, path: &Path, decision: &Decision) -> String {
    line(attempt, path, RefusalText::of(decision))
}

fn line(attempt: NameAccess, path: &Path, refusal: RefusalText<'_>) -> String {
    let what = match attempt {
        NameAccess::Read => "reading",
        NameAccess::Write => "writing",
        NameAccess::MakeDirectory => "making the directory",
        NameAccess::Remove => "removing",
    };
    // Only what exists can be allowed, and the whole machine cannot.
    let known = path.ancestors().find(|path| path.symlink_metadata().is_ok());
    let known = known.filter(|known| known.parent().is_some());
    let allow = known.map(|known| allow_path(known, attempt != NameAccess::Read));
    let path = escape(&path.to_string_lossy());
    format!("The sandbox refused {what} `{path}`: {}", refusal.with_next_step(allow.as_deref()))
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
        let told = by_rules(&[refusal("/w/hard", HARD_LINKS)], &rules);
        assert!(told[0].contains("another name (hard link)"), "{told:?}");
        let told =
            by_rules(&[refusal("/w/a\u{202e}b", ""), refusal("/w/.git/hooks/x", "host.git-hooks")], &rules);
        assert!(
            told[0].contains("(rule `base.outside` of `base`)") && !told[0].contains('\u{202e}'),
            "{told:?}"
        );
        assert!(told[0].ends_with("The user can allow it when asked."), "{told:?}");
        assert!(told[1].contains("(rule `host.git-hooks` of `host`)"), "{told:?}");
        assert!(told[1].ends_with("only the user's `protections.lift` opens it."), "{told:?}");
        let many: Vec<_> = (0..20).map(|number| refusal(&format!("/w/{number}"), "")).collect();
        let told = by_rules(&many, &rules);
        assert_eq!(told.len(), TOLD + 1);
        assert!(told[TOLD].contains("12 more"), "{told:?}");
    }
}
