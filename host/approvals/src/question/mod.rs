//! Turns a request into a question for the user, with the grants to offer.

pub mod connections;
pub mod credential_offer;
pub mod file_operation;
pub mod pending_call;
pub mod rerun;
pub mod signature;
mod tilde;
pub mod words;

use std::path::{Path, PathBuf};

use portcullis_decision::grant::{CommandPattern, PathPattern, ToolPattern};
use portcullis_decision::host_rules::is_offered;
use portcullis_decision::pattern::{FilePattern, HostPattern, NetworkPattern, PortSet};
use portcullis_decision::profile::{FileRight, FileRights};
use portcullis_decision::request::{
    Action, CommandExecution, Endpoint, FileAccess, NetworkAccess, Origin, PathKind, Stage, ToolCall,
};
use portcullis_decision::{Decision, Effect, GrantPattern, GrantScope, KnownPlace, Mode, Request, path_text};
use portcullis_shell::quoted;
use portcullis_text::{escape, escape_confusables, escape_confusables_in_subject, escape_script};

use crate::grant_store::GrantPlace;
use crate::open_questions::{Choice, ChoiceKind, Question};
use crate::special_addresses;
use file_operation::{meaning, other_end};
use pending_call::{FOR_THIS_COMMAND, begins_with, known_place};
use tilde::tilde;
use words::Naming;

/// Labels of answers that hold until the session ends.
pub const FOR_THIS_SESSION: &str = "For this session";
/// The label of such a "no".
pub const NOT_FOR_THIS_SESSION: &str = "No, for this session";

/// Maximum number of offered widths; users would not read more.
const WIDTHS_MAX: usize = 6;

/// Maximum length of a grant's description, in characters; clients show 300.
pub const GRANT_TEXT_MAX: usize = 280;

/// Returns the question for `request`, on which `decision` asks.
///
/// Answers can be stored at `places` for `kept_for` seconds; 0 means forever.
#[must_use]
pub fn question(
    id: u64,
    call: Option<&str>,
    request: &Request,
    decision: &Decision,
    places: &[GrantPlace],
    kept_for: u32,
    naming: &Naming<'_>,
) -> Question {
    let asked = decision.question();
    let quote = asked.map(|question| match &question.details {
        Some(details) => format!("{}\n{}", question.title, details),
        None => question.title.clone(),
    });
    let (subject, is_cut) = match &request.action {
        Action::Command(command) | Action::Escalation(command) => escape_script(&command.script),
        action @ (Action::File(_)
        | Action::Network(_)
        | Action::Socket(_)
        | Action::Tool(_)
        | Action::Other(_)) => escape_confusables_in_subject(&match known_place(request, decision) {
            Some(place) => path_text::encode(&place.top),
            None => subject(action),
        }),
    };
    let mut question = Question {
        id,
        call: call.map(str::to_owned),
        title: String::new(),
        subject,
        place: None,
        context: String::new(),
        preview: None,
        is_sensitive: false,
        asker: asker(request),
        reason: reasons(request, decision),
        policy: escape(decision.policy()),
        rule: escape(&decision.cause().rule),
        quote: quote
            .filter(|text| !text.trim().is_empty() && !words::is_restated(decision.policy(), text))
            .map(|text| escape(&text)),
        choices: choices((request, is_cut), decision, (places, kept_for), naming.home),
        timeout_ms: asked.and_then(|question| question.timeout_ms),
    };
    words::put(&mut question, request, decision, naming);
    question
}

/// Returns the reasons of all policies that ask: one answer settles all of them.
fn reasons(request: &Request, decision: &Decision) -> String {
    let mut known = vec![(decision.policy(), decision.cause().rule.as_str())];
    let mut reasons = vec![escape(&decision.cause().reason)];
    for vote in decision.votes() {
        let asks = vote.effect == Some(Effect::Ask) && vote.mode != Mode::Observe;
        let of = (vote.policy.strip_prefix(RULES).unwrap_or(&vote.policy), vote.cause.rule.as_str());
        if asks && !known.contains(&of) {
            known.push(of);
            reasons.push(format!("{} ({}, {})", escape(&vote.cause.reason), escape(of.0), escape(of.1)));
        }
    }
    if let Action::File(access) = &request.action {
        let place = known_place(request, decision);
        reasons.extend(place.map(|place| escape_confusables(&begins_with(access, place))));
        reasons.extend(meaning(access).map(|meaning| escape_confusables(&meaning)));
    }
    if let Action::Network(access) = &request.action {
        reasons.extend(special_addresses::meanings(access));
    }
    reasons.extend(rerun::reason(request));
    reasons.join("; and ")
}

/// Prefix of the layer's name in votes of the rule set.
const RULES: &str = "rules:";

/// Returns the resource as it is used: the canonical path, not the spelling.
fn subject(action: &Action) -> String {
    match action {
        Action::File(access) => {
            format!("{}{}", access.path.canonical, other_end(access).unwrap_or_default())
        }
        Action::Command(command) | Action::Escalation(command) => command.script.clone(),
        Action::Network(access) => {
            let place = access.target.with_port(access.port);
            match &access.stage {
                Stage::Connect => place,
                Stage::Resolved(addresses) => format!("{place}, at {}", addresses.join(", ")),
                Stage::ClientHello(name) => format!("{place}, for `{name}`"),
                Stage::Http(head) => format!("{} {}", head.method, head.url),
            }
        }
        Action::Socket(access) => access.path.clone(),
        Action::Tool(call) => format!("{} {}", call.name, call.input),
        Action::Other(other) => signature::subject(other)
            .or_else(|| credential_offer::subject(other))
            .unwrap_or_else(|| other.input.clone()),
    }
}

fn asker(request: &Request) -> String {
    match (&request.action, request.origin) {
        (Action::Network(access), _) if access.process.pid != 0 => {
            format!("{} (pid {})", escape_confusables(&quoted(&access.process.program)), access.process.pid)
        }
        (Action::Tool(call), _) => {
            format!("{} ({})", escape_confusables(&call.name), escape_confusables(&call.provider))
        }
        (_, Origin::Agent) => "the agent".to_owned(),
        (_, Origin::User) => "you".to_owned(),
        (_, Origin::Extension) => "an extension".to_owned(),
        (_, Origin::Process) => "a command".to_owned(),
    }
}

/// Returns true if the action can only be allowed once.
fn is_only_once(action: &Action) -> bool {
    match action {
        Action::Escalation(_) => true,
        Action::File(access) => file_operation::is_only_once(&access.operation),
        // The next commit is another one.
        Action::Other(other) => other.kind == signature::KIND,
        Action::Network(_) | Action::Command(_) | Action::Socket(_) | Action::Tool(_) => false,
    }
}

/// Returns the choices: "once"; grants for the session and for each place, the narrowest first; "no" for the session.
fn choices(
    (request, is_cut): (&Request, bool),
    decision: &Decision,
    (places, kept_for): (&[GrantPlace], u32),
    home: Option<&Path>,
) -> Vec<Choice> {
    let once = Choice {
        key: 'o',
        kind: ChoiceKind::Allow,
        label: match &request.action {
            // A program opens any number of connections to a place; for the user they are one.
            Action::Network(NetworkAccess { stage: Stage::Connect, .. }) => FOR_THIS_COMMAND.to_owned(),
            Action::File(access) if request.named_before_failure().is_some() => {
                rerun::once(access, known_place(request, decision), home)
            }
            Action::File(access) if request.origin == Origin::Process => {
                pending_call::once(request, access, decision, home)
            }
            _ if is_cut => "Once, though not all of it is shown".to_owned(),
            Action::Command(_) if request.run_again().is_some() => "Run it again".to_owned(),
            Action::Network(_)
            | Action::File(_)
            | Action::Command(_)
            | Action::Socket(_)
            | Action::Tool(_)
            | Action::Escalation(_)
            | Action::Other(_) => "Once".to_owned(),
        },
        covers: None,
        width: 0,
        target: None,
        place: None,
        scope: GrantScope::Once,
        pattern: GrantPattern::Exact(Box::new(request.action.clone())),
        lifetime: 0,
    };
    if request.run_again().is_some() {
        // A "no" for the session would also apply to the command itself.
        return vec![once];
    }
    if is_only_once(&request.action) && known_place(request, decision).is_none() {
        return std::iter::once(once).chain(no_for_the_session(&request.action, None)).collect();
    }
    let widths = widths(request, decision, home);
    let mut choices = vec![once];
    choices.extend(widths.iter().zip(0..).map(|(offer, width)| Choice {
        key: 's',
        kind: ChoiceKind::Allow,
        label: FOR_THIS_SESSION.to_owned(),
        covers: Some(offer.covers(0)),
        width,
        target: None,
        place: None,
        scope: GrantScope::Session,
        pattern: offer.pattern.clone(),
        lifetime: offer.lifetime,
    }));
    for place in places.iter().filter(|place| special_addresses::may_be_kept(&request.action, place.scope)) {
        let lasting = widths.iter().filter(|offer| !matches!(offer.pattern, GrantPattern::Exact(_)));
        choices.extend(lasting.zip(0..).map(|(offer, width)| Choice {
            key: place.key,
            kind: ChoiceKind::Allow,
            label: escape_confusables(&place.label),
            covers: Some(offer.covers(kept_for)),
            width,
            target: Some(escape_confusables(&place.target)),
            place: Some(place.id.clone()),
            scope: place.scope,
            pattern: offer.pattern.clone(),
            lifetime: [offer.lifetime, kept_for].into_iter().filter(|time| *time != 0).min().unwrap_or(0),
        }));
    }
    choices.extend(no_for_the_session(&request.action, widths.first()));
    choices
}

/// Returns the choice to deny for the session: the resource of the narrowest grant, or else the same action.
///
/// `None` if the same action never asks twice.
fn no_for_the_session(action: &Action, narrowest: Option<&Offer>) -> Option<Choice> {
    let (pattern, covers) = match (narrowest, action) {
        (Some(offer), _) => (offer.pattern.clone(), offer.text.clone()),
        (None, Action::Command(_) | Action::Escalation(_)) => {
            (GrantPattern::Exact(Box::new(action.clone())), "this exact command".to_owned())
        }
        // Targets of links and moves, and the data of a connection, differ each time.
        (
            None,
            Action::File(_) | Action::Network(_) | Action::Socket(_) | Action::Tool(_) | Action::Other(_),
        ) => return None,
    };
    Some(Choice {
        key: 'd',
        kind: ChoiceKind::Deny,
        label: NOT_FOR_THIS_SESSION.to_owned(),
        covers: Some(covers),
        width: 0,
        target: None,
        place: None,
        scope: GrantScope::Session,
        pattern,
        lifetime: 0,
    })
}

/// A grant to offer that lasts longer than "once".
struct Offer {
    pattern: GrantPattern,
    lifetime: u32,
    text: String,
}

impl Offer {
    /// Returns its resource, and its lifetime if it has one.
    fn covers(&self, kept_for: u32) -> String {
        match [self.lifetime, kept_for].into_iter().filter(|time| *time != 0).min() {
            Some(seconds) => format!("{} for {}", self.text, duration(seconds)),
            None => self.text.clone(),
        }
    }
}

/// Formats a duration for the user.
fn duration(seconds: u32) -> String {
    match seconds {
        seconds if seconds % 86_400 == 0 => format!("{} d", seconds / 86_400),
        seconds if seconds % 3_600 == 0 => format!("{} h", seconds / 3_600),
        seconds if seconds % 60 == 0 => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

/// Returns the grants to offer: the host's, then the policy's.
fn widths(request: &Request, decision: &Decision, home: Option<&Path>) -> Vec<Offer> {
    let of_policy = decision.question().map(|question| question.options.as_slice()).unwrap_or_default();
    let offered = of_policy
        .iter()
        .filter(|option| option.scope == GrantScope::Session && option.pattern.covers(&request.action))
        .map(|option| (option.pattern.clone(), option.lifetime));
    let place = known_place(request, decision);
    // A name that a program makes in the place is none that a person knows.
    let offered = offered.filter(|(pattern, _)| place.is_none_or(|place| holds(pattern, &place.top)));
    let own = match (&request.action, place) {
        (Action::File(access), Some(place)) => place_patterns(access, place),
        _ => own_patterns(&request.action),
    };
    let own = own.into_iter();
    let own = own.filter(|pattern| is_offered(decision, pattern)).map(|pattern| (pattern, 0));
    let mut widths: Vec<Offer> = Vec::new();
    for (pattern, lifetime) in own.chain(offered) {
        let Some(text) = described(&pattern, home) else { continue };
        // A grant that is too long to be read in full is not offered, nor is a wider one.
        if text.chars().count() > GRANT_TEXT_MAX {
            break;
        }
        let is_known = widths.iter().any(|known| known.pattern == pattern && known.lifetime == lifetime);
        if !is_known && widths.len() < WIDTHS_MAX {
            widths.push(Offer { pattern, lifetime, text });
        }
    }
    widths
}

/// Returns the grants for the session that the host offers.
fn own_patterns(action: &Action) -> Vec<GrantPattern> {
    match action {
        Action::File(access) => path_patterns(access),
        Action::Network(access) if access.stage == Stage::Connect => {
            vec![GrantPattern::Network(endpoint_pattern(access))]
        }
        Action::Network(_) => Vec::new(),
        Action::Tool(call) => vec![GrantPattern::Tool(tool_pattern(call))],
        Action::Command(command) => command_pattern(command).into_iter().collect(),
        Action::Socket(_) | Action::Other(_) => vec![GrantPattern::Exact(Box::new(action.clone()))],
        Action::Escalation(_) => Vec::new(),
    }
}

/// Returns a pattern of all simple commands of a script.
///
/// `None` if one of them is not literal or runs other programs.
fn command_pattern(command: &CommandExecution) -> Option<GrantPattern> {
    let Ok(parsed) = &command.parsed else { return None };
    let mut patterns = Vec::new();
    for simple in &parsed.commands {
        let argv_prefix = simple.argv.iter().map(|word| word.value.clone()).collect();
        let pattern = CommandPattern { argv_prefix, open_ended: false };
        if runs_others(&pattern) || !simple.argv.iter().all(|word| word.literal) {
            return None;
        }
        patterns.push(pattern);
    }
    let pattern = GrantPattern::Command(patterns);
    pattern.covers(&Action::Command(command.clone())).then_some(pattern)
}

/// Returns the grants that a question about an action would offer to store in places of `scope`.
///
/// The narrowest comes first, each with its description. Such an answer lasts `kept_for` seconds; 0 means forever.
#[must_use]
pub fn keepable(
    action: &Action,
    scope: GrantScope,
    kept_for: u32,
    home: Option<&Path>,
) -> Vec<(GrantPattern, String)> {
    if is_only_once(action) || !special_addresses::may_be_kept(action, scope) {
        return Vec::new();
    }
    let offers = grantable(action).into_iter().filter_map(|pattern| {
        let text = described(&pattern, home)?;
        Some(Offer { pattern, lifetime: 0, text })
    });
    let readable = offers.take_while(|offer| offer.text.chars().count() <= GRANT_TEXT_MAX);
    readable.map(|offer| (offer.pattern.clone(), offer.covers(kept_for))).collect()
}

/// Returns the grants that the host offers for an action, the narrowest first.
#[must_use]
pub fn grantable(action: &Action) -> Vec<GrantPattern> {
    let mut patterns = own_patterns(action);
    patterns
        .retain(|pattern| !matches!(pattern, GrantPattern::Exact(_)) && described(pattern, None).is_some());
    patterns
}

/// Returns true unless a pattern is on paths and does not hold all below `top`.
fn holds(pattern: &GrantPattern, top: &Path) -> bool {
    match pattern {
        GrantPattern::Path(path) => {
            matches!(&path.pattern, FilePattern::Tree(wider) if top.starts_with(wider))
        }
        GrantPattern::Exact(_)
        | GrantPattern::Command(_)
        | GrantPattern::Network(_)
        | GrantPattern::Tool(_) => true,
    }
}

fn place_patterns(access: &FileAccess, place: &KnownPlace) -> Vec<GrantPattern> {
    let rights = rights(access);
    let tops = [Some(&place.top), place.wider.as_ref()].into_iter().flatten();
    let tree = |top: &PathBuf| PathPattern { pattern: FilePattern::Tree(top.clone()), rights };
    tops.map(|top| GrantPattern::Path(tree(top))).collect()
}

fn rights(access: &FileAccess) -> FileRights {
    match access.operation.right() {
        FileRight::Write => FileRights::READ_WRITE,
        FileRight::Read | FileRight::Execute => FileRights::READ,
    }
}

fn path_patterns(access: &FileAccess) -> Vec<GrantPattern> {
    let Some(path) = path_text::decode(&access.path.canonical) else { return Vec::new() };
    let rights = rights(access);
    let grant = |pattern| GrantPattern::Path(PathPattern { pattern, rights });
    if access.path.kind == PathKind::Directory {
        return vec![grant(FilePattern::Tree(path))];
    }
    let parent = path.parent().filter(|parent| *parent != Path::new("/")).map(Path::to_owned);
    let tree = parent.map(|parent| grant(FilePattern::Tree(parent)));
    [Some(grant(FilePattern::Exact(path))), tree].into_iter().flatten().collect()
}

/// Returns the pattern of connections to the same host and port.
#[must_use]
pub fn endpoint_pattern(access: &NetworkAccess) -> NetworkPattern {
    let host = match &access.target {
        Endpoint::Domain(name) => HostPattern::Name(name.clone()),
        Endpoint::Address(address) => HostPattern::Block((*address).into()),
    };
    NetworkPattern { host, ports: PortSet::These(vec![access.port]) }
}

fn tool_pattern(call: &ToolCall) -> ToolPattern {
    ToolPattern { name: call.name.clone(), provider: call.provider.clone(), input_equals: Vec::new() }
}

fn runs_others(command: &CommandPattern) -> bool {
    let program = command.argv_prefix.first().map_or("", String::as_str);
    portcullis_shell::is_wrapper(program.rsplit('/').next().unwrap_or_default())
}

/// Returns a command pattern as a shell command line, with a note if further words may follow.
fn spelled(command: &CommandPattern) -> String {
    let words = command.argv_prefix.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    if command.open_ended { format!("{words} (and any further words)") } else { words }
}

/// Returns the description of a pattern, or `None` for patterns that the host does not offer.
///
/// Paths in `home` begin with `~`.
#[must_use]
pub fn described(pattern: &GrantPattern, home: Option<&Path>) -> Option<String> {
    let shown = |path: &Path| escape_confusables(&tilde(&path_text::encode(path), home));
    match pattern {
        GrantPattern::Path(path) => {
            let verb = if path.rights.write { "reading and writing" } else { "reading" };
            Some(match &path.pattern {
                FilePattern::Exact(exact) => format!("{verb} {}", shown(exact)),
                FilePattern::Tree(top) => format!("{verb} everything below {}, unless denied", shown(top)),
                FilePattern::Glob(_) | FilePattern::Name { .. } => {
                    format!("{verb} {}", escape_confusables(&path.pattern.to_string()))
                }
            })
        }
        GrantPattern::Network(network) => {
            Some(format!("connections to {}", escape_confusables(&network.to_string())))
        }
        GrantPattern::Tool(tool) if tool.input_equals.is_empty() => Some(format!(
            "every call of {} ({})",
            escape_confusables(&tool.name),
            escape_confusables(&tool.provider)
        )),
        GrantPattern::Tool(tool) => {
            let inputs: Vec<String> =
                tool.input_equals.iter().map(|(at, value)| format!("{at} = {value}")).collect();
            Some(format!(
                "calls of {} with {}",
                escape_confusables(&tool.name),
                escape_confusables(&inputs.join(", "))
            ))
        }
        // The user cannot agree to programs that an interpreter or a wrapper runs next.
        GrantPattern::Command(commands) if commands.iter().any(runs_others) => None,
        GrantPattern::Command(commands) => {
            let all: Vec<String> = commands.iter().map(spelled).collect();
            Some(format!("the commands {}", escape_confusables(&all.join("; "))))
        }
        GrantPattern::Exact(action) => match action.as_ref() {
            Action::Socket(access) => Some(format!("the socket {}", escape_confusables(&access.path))),
            Action::Other(other) => Some(format!("this exact request ({})", escape_confusables(&other.kind))),
            Action::File(_)
            | Action::Command(_)
            | Action::Network(_)
            | Action::Tool(_)
            | Action::Escalation(_) => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use portcullis_decision::request::{FileFacts, FileOperation, PathRef, Zone};
    use portcullis_decision::rules::Ruling;

    use super::*;

    fn reading(path: &str) -> Request {
        let path = PathRef {
            given: path.to_owned(),
            absolute: path.to_owned(),
            canonical: path.to_owned(),
            zone: Zone::Home,
            relative: path.to_owned(),
            kind: PathKind::File,
        };
        let access = FileAccess { path, operation: FileOperation::Read, facts: FileFacts::default() };
        let action = Action::File(access);
        Request { id: "r".into(), parent: None, origin: Origin::Agent, action, facts: vec![] }
    }

    fn ruling(policy: &str, reason: &str) -> Ruling {
        Ruling {
            effect: Effect::Ask,
            policy: policy.to_owned(),
            rule: format!("{policy}.rule"),
            reason: reason.to_owned(),
            setting: String::new(),
            conceal: false,
        }
    }

    #[test]
    fn everybody_who_asks_is_heard() {
        let decision = Decision::by_rule(ruling("a", "one"));
        let decision = decision.tightened(ruling("b", "two")).tightened(ruling("c", "three"));
        let question = question(1, None, &reading("/x"), &decision, &[], 0, &Naming::default());
        assert_eq!((question.policy.as_str(), question.reason.as_str()), ("c", "three; and two (b, b.rule)"));
    }

    #[test]
    fn what_cannot_be_read_whole_is_not_kept_and_nothing_wider_either() {
        let decision = Decision::by_rule(ruling("a", "one"));
        let keys = |path: &str| -> String {
            question(1, None, &reading(path), &decision, &[], 0, &Naming::default())
                .choices
                .iter()
                .map(|choice| choice.key)
                .collect()
        };
        assert_eq!(keys("/home/u/notes"), "ossd");
        assert_eq!(keys(&format!("/home/u/{}", "x".repeat(300))), "o");
    }

    #[test]
    fn what_is_asked_for_is_shown_whole_or_says_that_it_is_not() {
        let decision = Decision::by_rule(ruling("a", "one"));
        for (length, label) in [(3_000, "Once"), (5_000, "Once, though not all of it is shown")] {
            let question =
                question(1, None, &reading(&"/x".repeat(length / 2)), &decision, &[], 0, &Naming::default());
            assert_eq!(question.choices.first().map(|choice| choice.label.as_str()), Some(label));
            assert_eq!(question.subject.len() == length, length == 3_000);
        }
    }

    #[test]
    fn commands_are_quoted_and_say_when_more_may_follow() {
        let commands = |open_ended| {
            let argv_prefix = ["git", "commit", "-m", "a; rm -rf x"].map(str::to_owned).to_vec();
            described(&GrantPattern::Command(vec![CommandPattern { argv_prefix, open_ended }]), None).unwrap()
        };
        assert_eq!(commands(false), "the commands git commit -m 'a; rm -rf x'");
        assert_eq!(commands(true), "the commands git commit -m 'a; rm -rf x' (and any further words)");
    }
}
