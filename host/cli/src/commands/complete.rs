//! `portcullis complete`: the words that completion scripts offer beside commands and options.

use portcullis_audit::{Follower, Placed, Record};
use portcullis_bootstrap::control::{Order, Outcome};
use portcullis_bootstrap::loaded_settings;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::args::Complete;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::Page;
use portcullis_policy_commands::audit::logs;
use portcullis_policy_tools::LockEditor;
use portcullis_server::record_text;
use portcullis_settings::{RealDisk, kept_grants};

use super::asks::ask_all;
use super::{credentials, presets};

/// The number of records among which decisions are offered.
const RECENT: usize = 40;
/// Options whose value is the next word.
const WITH_VALUE: [&str; 7] =
    ["--session", "--project", "--settings", "--policy", "--dir", "--ask", "--registry"];

/// What stands at a position of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CompletionKind {
    Question,
    No,
    Grant,
    Credential,
    Preset,
    Decision,
    Pack,
    Point,
    Branch,
}

/// Prints the words that can follow, each on a line.
pub(crate) fn run(complete: &Complete) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    let mut page = Page::new(&around);
    if let Some(kind) = kind(&complete.words) {
        // A shell would take other characters as more than a word.
        for word in words(&around, kind)?.iter().filter(|word| is_plain(word)) {
            page.line(word);
        }
    }
    page.print()?;
    Ok(Exit::Done)
}

/// Returns what follows `words`, the words before the cursor without the program's name.
fn kind(words: &[String]) -> Option<CompletionKind> {
    if words.last().is_some_and(|last| last == "--allow") && !words.iter().any(|word| word == "--") {
        return Some(CompletionKind::Preset);
    }
    let mut typed = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if WITH_VALUE.contains(&word.as_str()) {
            words.next();
        } else if !word.starts_with('-') {
            typed.push(word.as_str());
        }
    }
    match typed.as_slice() {
        ["asks", "answer"] => Some(CompletionKind::Question),
        ["asks", "answer", _] => Some(CompletionKind::No),
        ["credentials", "test" | "remove"] => Some(CompletionKind::Credential),
        ["grants", "revoke"] => Some(CompletionKind::Grant),
        ["allow" | "deny", ..] | ["presets", "show"] => Some(CompletionKind::Preset),
        ["undo"] => Some(CompletionKind::Point),
        ["branch", "show" | "commit" | "drop"] => Some(CompletionKind::Branch),
        ["explain"] | ["audit", "show"] => Some(CompletionKind::Decision),
        ["policy", "update" | "remove", ..] | ["policy", "save", _, ..] => Some(CompletionKind::Pack),
        _ => None,
    }
}

fn words(around: &ProcessEnv, kind: CompletionKind) -> anyhow::Result<Vec<String>> {
    Ok(match kind {
        CompletionKind::No => vec!["no".to_owned()],
        CompletionKind::Question => {
            let mut ids = Vec::new();
            for (session, outcome) in ask_all(around, &Order::Questions {})?.0 {
                if let Outcome::Questions { questions } = outcome {
                    ids.extend(questions.iter().map(|question| format!("{session}:{}", question.id)));
                }
            }
            ids
        }
        CompletionKind::Grant => {
            let places = loaded_settings::places(around, &around.cwd, None)?;
            let mut ids: Vec<String> =
                kept_grants(&places, &RealDisk, true)?.into_iter().map(|grant| grant.id).collect();
            for (session, outcome) in ask_all(around, &Order::Remembered {})?.0 {
                if let Outcome::Remembered { remembered } = outcome {
                    ids.extend(remembered.iter().map(|kept| format!("{session}:{}", kept.id)));
                }
            }
            ids
        }
        CompletionKind::Credential => credentials::names(around)?,
        CompletionKind::Preset => {
            presets::names(&loaded_settings::places(around, &around.cwd, None)?).into_iter().collect()
        }
        CompletionKind::Decision => {
            let (_, records) = Follower::begin(&logs::directory(around), RECENT)?;
            let decision = |placed: Placed| match placed.line.record {
                Record::Verdict(_) => Some(record_text::id(&placed.log, placed.line.sequence)),
                Record::Outcome(_) => None,
            };
            let ids = records.into_iter().rev().flatten().filter_map(decision);
            std::iter::once("LAST".to_owned()).chain(ids).collect()
        }
        CompletionKind::Point => super::undo::points(around)?,
        CompletionKind::Branch => super::branch::names(around)?,
        CompletionKind::Pack => {
            let lock = LockEditor::open(None)?.store().lock()?;
            lock.policies.iter().map(|locked| locked.id.clone()).collect()
        }
    })
}

fn is_plain(word: &str) -> bool {
    word.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.:/@".contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_position_has_its_kind() {
        for (line, expected) in [
            ("", None),
            ("asks", None),
            ("asks answer", Some(CompletionKind::Question)),
            ("asks answer 3f:1", Some(CompletionKind::No)),
            ("grants revoke --project /p", Some(CompletionKind::Grant)),
            ("grants revoke 1", None),
            ("credentials test", Some(CompletionKind::Credential)),
            ("credentials remove", Some(CompletionKind::Credential)),
            ("credentials add", None),
            ("branch show", Some(CompletionKind::Branch)),
            ("branch commit --all", Some(CompletionKind::Branch)),
            ("branch list", None),
            ("allow", Some(CompletionKind::Preset)),
            ("allow npm --all", Some(CompletionKind::Preset)),
            ("run --allow", Some(CompletionKind::Preset)),
            ("run -- sh --allow", None),
            ("presets show", Some(CompletionKind::Preset)),
            ("explain --json", Some(CompletionKind::Decision)),
            ("audit show", Some(CompletionKind::Decision)),
            ("audit tail", None),
            ("policy remove a:b", Some(CompletionKind::Pack)),
            ("policy save", None),
            ("policy save x.tar", Some(CompletionKind::Pack)),
        ] {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            assert_eq!(kind(&words), expected, "{line}");
        }
    }

    #[test]
    fn a_shell_gets_plain_words_only() {
        assert!(is_plain("acme:no-push") && is_plain("3f2a0000:12"));
        assert!(["a b", "$(x)", "a\nb", "*", "'"].iter().all(|word| !is_plain(word)));
    }
}
