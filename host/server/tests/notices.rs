//! Every notice of the host, for the page that shows all screens of pi (`docs/screens-pi.md`).
//!
//! After an intended change: `UPDATE_REFERENCE=1` here and in `pi`, then read the difference of the page.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod reference;

use std::fs;
use std::path::Path;

use portcullis_decision::GrantScope;
use portcullis_session::notices;
use serde_json::json;

use reference::is_up_to_date;

const FOR_PI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../pi/test/screens/notices.json");
const HOST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Maximum number of words of a notice, apart from the cause that another program gives.
const WORDS_MAX: usize = 40;
/// What the extension's prompter adds to an answer that was kept.
const UNDO: &str = " · undo: /sandbox";

/// Returns an example of each notice: the function, a name, and the text.
fn all() -> Vec<(&'static str, &'static str, String)> {
    let covers = "reading ~/other/notes.txt";
    let kept = |scope| notices::saved(scope, "session", covers) + UNDO;
    let changes = ["+ reachable registry.example:443".to_owned(), "- readable ~/notes".to_owned()];
    let mistake = "default.json:3:5: `allowRead` is no list";
    let old = "these settings of another sandbox have no effect here; `portcullis config import --from sysid` takes \
               them over, and `\"layout\": \"projects\"` in default.json leaves them unused";
    let no_space = "the disk is full";
    vec![
        ("saved", "an answer for the session", kept(GrantScope::Session)),
        ("saved", "an answer for the project", kept(GrantScope::Project)),
        ("saved", "an answer for every project", kept(GrantScope::User)),
        ("not_saved", "an answer that could not be saved", notices::not_saved(no_space)),
        (
            "credential_added",
            "an offer of a credential was accepted",
            notices::credential_added(
                "git may use your own ssh for me/shop at git.example",
                "git.example-ssh",
            ),
        ),
        ("credential_not_added", "an offer that could not be saved", notices::credential_not_added(no_space)),
        ("not_for_commands", "an answer that commands do not get", notices::not_for_commands(no_space)),
        ("answer_ended", "an answer has ended", notices::answer_ended(no_space)),
        ("no_rules_for_facts", "no rules for a branch", notices::no_rules_for_facts(no_space)),
        ("changed", "edited settings", notices::changed("settings", &changes)),
        ("changed", "another version of a policy", notices::changed("policies", &["team 1.0.1".to_owned()])),
        (
            "edit_not_in_force",
            "an edit with a mistake",
            notices::edit_not_in_force("The edited settings", mistake),
        ),
        ("edit_refuses_commands", "an edit without a sandbox", notices::edit_refuses_commands(no_space)),
        ("blocked", "settings with a mistake at the start", notices::blocked(mistake)),
        (
            "revoked",
            "a publisher that is no longer trusted",
            notices::revoked("`team` is signed by a removed key"),
        ),
        (
            "other_settings",
            "settings of another sandbox",
            notices::other_settings("~/.pi/agent/sandbox.json", old),
        ),
        ("of_policy", "a policy has something to say", notices::of_policy("team", "the model was changed")),
        (
            "network",
            "too many connections",
            notices::network("too many connections are open in this session"),
        ),
        ("still_reserved", "a reservation stays", notices::still_reserved(no_space)),
        ("failed", "a fault of the host", notices::failed("answering for a call", "no message")),
    ]
}

#[test]
fn every_notice_is_shown_and_short() {
    let code = fs::read_to_string(Path::new(HOST).join("session/src/notices.rs")).unwrap();
    let functions: Vec<&str> =
        code.lines().filter_map(|line| line.strip_prefix("pub fn ")?.split('(').next()).collect();
    assert!(functions.len() > 10, "{functions:?}");
    for function in &functions {
        assert!(all().iter().any(|(shown, _, _)| shown == function), "`{function}` is not shown");
    }
    for (_, name, text) in all() {
        let count = text.split_whitespace().count();
        assert!(count <= WORDS_MAX, "{name}: {count} words: {text}");
    }
}

/// The sources send notices of that module only.
#[test]
fn every_notice_is_of_the_module() {
    let mut senders = 0;
    for folder in ["session/src", "server/src/serve"] {
        for entry in fs::read_dir(Path::new(HOST).join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let Ok(text) = fs::read_to_string(&path) else { continue };
            senders += usize::from(text.contains("notices::"));
            let own = text.lines().find(|line| line.contains("notice(&format!"));
            assert_eq!(own, None, "{} writes a notice of its own", path.display());
        }
    }
    assert!(senders >= 6, "{senders} sources send notices");
}

#[test]
fn the_extension_draws_them() {
    let shown: Vec<_> =
        all().into_iter().map(|(_, name, text)| json!({ "name": name, "text": text })).collect();
    let text = format!("{:#}\n", json!(shown));
    is_up_to_date(FOR_PI, &text);
}
