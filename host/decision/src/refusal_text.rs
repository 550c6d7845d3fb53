//! Refusals in words: each says why, names the rule, and says what to do next.

use std::path::Path;

use portcullis_exec_surface::Treatment;
use portcullis_text::escape;

use crate::decision::{AnsweredBy, Decision};
use crate::host_rules::HOST;

/// A refusal, as texts show it.
#[derive(Debug, Clone, Copy)]
pub struct RefusalText<'a> {
    /// The source of the rule: a policy, `settings`, `base` or `host`.
    pub policy: &'a str,
    /// The id of the rule.
    pub rule: &'a str,
    /// The reason, one sentence without a full stop.
    pub reason: &'a str,
    /// The advice of the policy, if it gives any.
    pub hint: Option<&'a str>,
    /// How it came about.
    pub origin: RefusalOrigin,
    /// Who reads it.
    pub reader: Reader,
}

/// The reader of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// The model, which cannot allow anything itself.
    Model,
    /// The user.
    User,
}

/// The origin of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalOrigin {
    /// A rule denies it, whatever the user answers.
    Rule,
    /// The user said no.
    User,
    /// The rule asks, and there was no answer.
    Unanswered,
}

/// Advice after a denial by a rule, if there is no better advice.
const FORBIDDEN: &str = "Do not work around it";

/// What to do after a refusal of one of the host's own rules that no setting lifts. `{you}` and `{You}` stand for the
/// user, as the reader calls them.
const HOST_STEPS: [(&str, &str); 47] = [
    ("host.agent-directory", "No setting opens it: {you} can change it outside the sandbox."),
    ("host.agent-settings", "No setting opens it: {you} can change it outside the sandbox."),
    ("host.ambiguous-path", "Write the path without `.`, `..`, `//` and double encoding."),
    ("host.audit-failed", "Nothing runs until the audit log can be written."),
    ("host.brokered-tls", "Do what the reason says; {you} can change the settings of this host."),
    ("host.brokered-upgrade", "Use plain HTTP/1.1 requests with this host."),
    ("host.closing", "This session refuses everything; start a new one."),
    ("host.command-ended", "Keep the command running until its connections are done."),
    ("host.credential-purpose", "{You} can extend `for` or `fetch` of this credential, in `credentials`."),
    ("host.credential-signature", "Sign the request with the placeholders, as the reason says."),
    ("host.escalation-off", "{You} can switch it on with the setting `escalation`."),
    ("host.failed-lookup", "Try again when names can be looked up, or connect by name."),
    ("host.fault", "This session refuses everything; in pi, /reload starts it again."),
    ("host.git-only", "Use git with this host; {you} can change `credentials.ssh`."),
    ("host.hard-links", "Use the file by its allowed name, or make a copy."),
    ("host.hidden-server-name", "{You} can allow it with the setting `hiddenServerNames`."),
    ("host.malformed", "Have the client send the request in its usual form."),
    ("host.name-not-handed-on", "Rename the file, or use the tool `bash`."),
    ("host.no-answer", "Try again when {you} can answer."),
    ("host.no-branch", "{You} can start pi without a branch; `portcullis doctor` says what is missing."),
    ("host.no-rules", "{You} must repair the policy, or go back to another branch."),
    ("host.no-server-name", "{You} can allow it with the setting `hiddenServerNames`."),
    (
        "host.other-account",
        "Use the credential of the settings; {you} can lift `ownAccountOnly` in `network.requests`.",
    ),
    ("host.other-server", "Connect to that server itself, so that its name is checked."),
    ("host.placeholder", "Send the placeholder only to its own host, in the place that the settings name."),
    ("host.policy-failed", "{You} must repair or remove the policy."),
    ("host.portcullis", "No setting opens it: {you} can change it outside the sandbox."),
    ("host.powershell", "Use the tool `bash`."),
    ("host.private-tmp", "Keep files of your own in the directory that TMPDIR names."),
    ("host.project-agent-settings", "No setting opens it: {you} can change it outside the sandbox."),
    ("host.push-rule", "{You} can change what `network.pushes` permits for this host."),
    ("host.replacements-differ", "Two policies contradict each other; {you} must change one."),
    ("host.request-rule", "{You} can change what `network.requests` allows for this host."),
    ("host.reservation-failed", "{You} must repair the reservations."),
    ("host.reserved", "Work on something else until it is released."),
    ("host.rewrites-differ", "Two policies contradict each other; {you} must change one."),
    ("host.rewrites-endless", "Two policies contradict each other; {you} must change one."),
    ("host.settings-changed", "Connect again."),
    ("host.special-address", "Allow the address itself: portcullis allow ADDRESS:PORT"),
    ("host.too-many-questions", "Run the command again; {you} can allow its hosts first."),
    ("host.too-many-waiting", "Try again when the open questions are answered."),
    ("host.unfiltered-search", "Search with the tool `bash`."),
    (
        "host.unreadable-answer",
        "Ask for UTF-8 without compression; a server that always compresses cannot have a credential.",
    ),
    ("host.unreadable-http", "Use HTTP/1.1, or TLS."),
    ("host.unusable-path", "Check the path, and try again."),
    ("host.unresolved-name", "{You} can change `deniedResolvedAddresses` or `parentProxy`."),
    ("host.wrong-permit", "Try again."),
];

impl<'a> RefusalText<'a> {
    /// Returns the text of a decision that refuses.
    #[must_use]
    pub fn for_decision(decision: &'a Decision) -> Self {
        Self {
            policy: decision.policy(),
            rule: &decision.cause().rule,
            reason: &decision.cause().reason,
            hint: decision.hint(),
            origin: RefusalOrigin::from_answer(decision.answered_by()),
            reader: Reader::Model,
        }
    }

    /// Returns the text of a denial by a rule.
    #[must_use]
    pub fn by_rule(policy: &'a str, rule: &'a str, reason: &'a str) -> Self {
        Self { policy, rule, reason, hint: None, origin: RefusalOrigin::Rule, reader: Reader::Model }
    }

    /// Returns the text for another reader; the first one is the model.
    #[must_use]
    pub fn read_by(self, reader: Reader) -> Self {
        Self { reader, ..self }
    }

    /// Returns the reason and the rule.
    #[must_use]
    pub fn why(&self) -> String {
        let reason = escape(self.reason);
        let (rule, policy) = (escape(self.rule), escape(self.policy));
        format!("{} (rule `{rule}` of `{policy}`)", reason.trim_end_matches('.'))
    }

    /// Returns the reason, the rule, and what to do next. `what` are the words that `portcullis allow` takes for it.
    #[must_use]
    pub fn with_next_step(&self, what: Option<&str>) -> String {
        format!("{}. {}", self.why(), self.next_step(what))
    }

    /// Returns what to do next, in one sentence.
    #[must_use]
    pub fn next_step(&self, what: Option<&str>) -> String {
        if let Some(hint) = self.hint {
            return sentence(hint);
        }
        match (self.origin, what) {
            (RefusalOrigin::User, _) if self.reader == Reader::Model => "Go on without it.".to_owned(),
            (RefusalOrigin::User | RefusalOrigin::Unanswered, Some(_)) if self.is_by_content() => {
                let rule = escape(self.rule);
                let always =
                    format!("{{You}} can allow it when asked, or always with `{rule}` in `protections.lift`");
                let end = if self.reader == Reader::User { ": portcullis config edit" } else { "." };
                self.reader.address(&always) + end
            }
            (RefusalOrigin::User | RefusalOrigin::Unanswered, Some(what)) => {
                format!("To allow it, {}", self.reader.run(&format!("portcullis allow {what}")))
            }
            (RefusalOrigin::User | RefusalOrigin::Unanswered, None) => {
                self.reader.address("{You} can allow it when asked.")
            }
            (RefusalOrigin::Rule, _) => self.after_denial(),
        }
    }

    /// Returns how the user can allow it.
    #[must_use]
    pub fn remedy(&self, what: Option<&str>) -> String {
        match (self.origin, what) {
            (RefusalOrigin::User | RefusalOrigin::Unanswered, Some(what)) if !self.is_by_content() => {
                format!("portcullis allow {what}")
            }
            (RefusalOrigin::User | RefusalOrigin::Unanswered, Some(_)) => {
                let rule = escape(self.rule);
                format!("say yes when asked, or add `{rule}` to `protections.lift`: portcullis config edit")
            }
            (RefusalOrigin::User | RefusalOrigin::Unanswered, None) => {
                "say yes the next time you are asked".to_owned()
            }
            (RefusalOrigin::Rule, _) => match self.policy {
                HOST => host_step(self.rule).map_or_else(
                    || format!("`{}` in `protections.lift`: portcullis config edit", escape(self.rule)),
                    |step| Reader::User.address(step),
                ),
                "base" => "no answer allows it".to_owned(),
                "settings" => "change that line: portcullis config edit".to_owned(),
                policy => {
                    format!("change the settings of policy `{}`: portcullis config edit", escape(policy))
                }
            },
        }
    }

    /// Returns the advice of the policy, or of the host for its own rules, if there is any.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        let own = || (self.policy == HOST).then(|| host_step(self.rule)).flatten();
        self.hint.map(str::to_owned).or_else(|| own().map(|step| self.reader.address(step)))
    }

    /// Returns true for a rule on content. The user sees the content with each question, so no answer covers another.
    fn is_by_content(&self) -> bool {
        let rule = portcullis_exec_surface::rule(self.rule).filter(|_| self.policy == HOST);
        rule.is_some_and(|rule| rule.anywhere == Treatment::Judged)
    }

    fn after_denial(&self) -> String {
        if let Some(step) = host_step(self.rule).filter(|_| self.policy == HOST) {
            return self.reader.address(step);
        }
        match self.reader {
            Reader::Model => self.after_denial_for_model(),
            Reader::User => self.after_denial_for_user(),
        }
    }

    fn after_denial_for_model(&self) -> String {
        match self.policy {
            // The reason of a sensitive file says it already.
            HOST if self.reason.contains("protections.lift") => format!("{FORBIDDEN}."),
            HOST => format!("{FORBIDDEN}: only the user's `protections.lift` opens it."),
            "base" => format!("{FORBIDDEN}; if you need it, tell the user."),
            "settings" => format!("{FORBIDDEN}: only the user can change the settings."),
            _ => format!("{FORBIDDEN}: only the user can change this policy."),
        }
    }

    fn after_denial_for_user(&self) -> String {
        let change = match self.policy {
            HOST => format!("add `{}` to `protections.lift`", escape(self.rule)),
            "base" => return "No answer allows it.".to_owned(),
            "settings" => "change that line".to_owned(),
            policy => format!("change the settings of policy `{}`", escape(policy)),
        };
        format!("To allow it, {change}: portcullis config edit")
    }
}

impl Reader {
    /// Returns what the reader does so that a command of Portcullis is run.
    #[must_use]
    pub fn run(self, command: &str) -> String {
        match self {
            Self::Model => format!("have the user run: {command}"),
            Self::User => format!("run: {command}"),
        }
    }

    fn address(self, text: &str) -> String {
        let [one, first] = match self {
            Self::Model => ["the user", "The user"],
            Self::User => ["you", "You"],
        };
        text.replace("{you}", one).replace("{You}", first)
    }
}

impl RefusalOrigin {
    /// Returns the origin of a refusal that was answered like this.
    #[must_use]
    pub fn from_answer(answered_by: AnsweredBy) -> Self {
        match answered_by {
            AnsweredBy::Nothing | AnsweredBy::Grant => Self::Rule,
            AnsweredBy::User => Self::User,
            AnsweredBy::NoUser | AnsweredBy::Timeout | AnsweredBy::Withdrawal => Self::Unanswered,
        }
    }
}

/// Returns what to do after a denial by a rule of the host that no setting lifts.
#[must_use]
pub fn host_step(rule: &str) -> Option<&'static str> {
    HOST_STEPS.iter().find(|(id, _)| *id == rule).map(|(_, step)| *step)
}

/// Returns the words that `portcullis allow` takes for a path, as a shell reads them.
#[must_use]
pub fn allow_path(path: &Path, writes: bool) -> String {
    let text = escape(&path.to_string_lossy());
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+@%=:,~".contains(letter);
    let word = if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) };
    if writes { format!("{word} --write") } else { word }
}

fn sentence(hint: &str) -> String {
    let hint = escape(hint);
    let mut letters = hint.trim().trim_end_matches('.').chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(refusal: RefusalText<'_>, what: Option<&str>, expected: &str) {
        assert_eq!(refusal.with_next_step(what), expected);
    }

    #[test]
    fn each_refusal_says_why_and_what_to_do() {
        let denied = RefusalText::by_rule("settings", "filesystem.denyWrite[0]", "`fixtures` is denied.");
        let why = "`fixtures` is denied (rule `filesystem.denyWrite[0]` of `settings`)";
        check(denied, None, &format!("{why}. Do not work around it: only the user can change the settings."));
        let unanswered = RefusalText { origin: RefusalOrigin::Unanswered, ..denied };
        check(unanswered, None, &format!("{why}. The user can allow it when asked."));
        let allow = format!("{why}. To allow it, have the user run: portcullis allow ~/x --write");
        check(unanswered, Some("~/x --write"), &allow);
        let refused = RefusalText { origin: RefusalOrigin::User, ..denied };
        check(refused, Some("~/x"), &format!("{why}. Go on without it."));
        let hinted = RefusalText { hint: Some("push to a new branch"), ..denied };
        check(hinted, Some("~/x"), &format!("{why}. Push to a new branch."));
    }

    #[test]
    fn no_kept_answer_is_proposed_for_content() {
        let asked = RefusalText {
            origin: RefusalOrigin::Unanswered,
            ..RefusalText::by_rule(HOST, "host.git-config", "x")
        };
        let what = Some("~/p/.git/config --write");
        let expected =
            "The user can allow it when asked, or always with `host.git-config` in `protections.lift`.";
        assert_eq!(asked.next_step(what), expected);
        assert_eq!(
            asked.read_by(Reader::User).next_step(what),
            "You can allow it when asked, or always with `host.git-config` in `protections.lift`: portcullis config edit"
        );
        let by_name = RefusalText { rule: "host.editor-files", ..asked };
        assert_eq!(by_name.remedy(what), "portcullis allow ~/p/.git/config --write");
    }

    #[test]
    fn the_user_is_addressed_as_you() {
        let denied = RefusalText::by_rule("settings", "filesystem.denyWrite[0]", "x").read_by(Reader::User);
        assert_eq!(denied.next_step(None), "To allow it, change that line: portcullis config edit");
        let unanswered = RefusalText { origin: RefusalOrigin::Unanswered, ..denied };
        assert_eq!(unanswered.next_step(Some("~/x")), "To allow it, run: portcullis allow ~/x");
        assert_eq!(unanswered.next_step(None), "You can allow it when asked.");
        let base = RefusalText { policy: "base", ..denied };
        assert_eq!(base.next_step(None), "No answer allows it.");
        for rule in HOST_STEPS.iter().map(|(rule, _)| *rule).chain(["host.git-hooks"]) {
            for origin in [RefusalOrigin::Rule, RefusalOrigin::Unanswered, RefusalOrigin::User] {
                for what in [None, Some("~/x")] {
                    let refusal = RefusalText { origin, ..RefusalText::by_rule(HOST, rule, "x") };
                    let step = refusal.read_by(Reader::User).next_step(what);
                    assert!(!step.contains("user") && !step.contains('{'), "{rule}: {step}");
                    let step = refusal.next_step(what);
                    assert!(
                        !step.contains(" you ") && !step.contains("You ") && !step.contains('{'),
                        "{rule}: {step}"
                    );
                }
            }
        }
    }

    #[test]
    fn rules_of_the_host_have_steps_of_their_own() {
        let step = |rule, reason| RefusalText::by_rule(HOST, rule, reason).next_step(None);
        assert_eq!(step("host.powershell", "x"), "Use the tool `bash`.");
        assert!(step("host.git-hooks", "x").contains("protections.lift"));
        assert!(!step("host.ssh-keys", "with `host.ssh-keys` in `protections.lift`").contains("lift"));
        assert!(step("host.agent-settings", "x").starts_with("No setting opens it"));
    }

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        for (path, writes, expected) in [
            ("/a/b.c", false, "/a/b.c"),
            ("/a/b c", true, "'/a/b c' --write"),
            ("/a/it's", false, "'/a/it'\\''s'"),
            ("/a/$(x)", false, "'/a/$(x)'"),
        ] {
            assert_eq!(allow_path(Path::new(path), writes), expected);
        }
    }

    #[test]
    fn the_user_is_told_how_to_allow_it() {
        let by = |policy, rule| RefusalText::by_rule(policy, rule, "x");
        let no = RefusalText { origin: RefusalOrigin::User, ..by("base", "base.outside") };
        for (refusal, what, expected) in [
            (no, Some("~/x"), "portcullis allow ~/x"),
            (no, None, "say yes the next time you are asked"),
            (
                by("settings", "filesystem.denyRead[0]"),
                Some("~/x"),
                "change that line: portcullis config edit",
            ),
            (by(HOST, "host.aws"), None, "`host.aws` in `protections.lift`: portcullis config edit"),
            (by(HOST, "host.powershell"), None, "Use the tool `bash`."),
        ] {
            assert_eq!(refusal.remedy(what), expected);
        }
    }

    #[test]
    fn foreign_texts_are_escaped() {
        let text =
            RefusalText { hint: Some("\u{1b}[2J"), ..RefusalText::by_rule("p\u{202e}", "r\n", "x\u{7}") };
        let text = text.with_next_step(None);
        assert!(text.chars().all(|letter| !letter.is_control() && letter != '\u{202e}'), "{text}");
    }
}
