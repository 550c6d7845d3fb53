//! The texts of a question that a person reads first: subject, action and reason.
//!
//! Together they have at most [`WORDS_MAX`] words, with names and paths of usual length. Policy, rule and the full reason
//! are in the details of the question.

use std::borrow::Cow;
use std::path::Path;

use portcullis_decision::request::{
    Action, Content, Endpoint, FileAccess, FileOperation, NetworkAccess, Origin, PathKind, Stage, Zone,
};
use portcullis_decision::{Decision, KnownPlaceKind, Request, path_text};
use portcullis_exec_surface::table::{self, Entry};
use portcullis_network_gate::{Special, special};
use portcullis_shell::quoted;
use portcullis_text::{escape, escape_confusables, escape_confusables_in_subject};

use super::file_operation::{is_writing, meaning, other_end};
use super::pending_call::known_place;
use super::signature;
use super::tilde::tilde;
use crate::open_questions::Question;
use crate::special_addresses;

/// Maximum number of words before the choices.
pub const WORDS_MAX: usize = 30;
/// Maximum number of words and characters of the context.
pub(super) const CONTEXT: (usize, usize) = (12, 140);
/// The context of a connection that is held.
pub(super) const NOTHING_SENT: &str = "Nothing has been sent yet.";
/// Maximum number of words and lines of a preview, and of characters of one line.
const PREVIEW: (usize, usize, usize) = (8, 3, 70);
/// The rule of the shipped policy on tools that the host does not carry out.
const UNKNOWN_TOOL: &str = "tool.unknown";
/// The rule of the shipped policy on hosts that no setting names.
const UNLISTED_HOST: &str = "network.unlisted";
/// The shipped policy, and the beginning of its questions, which repeat the title.
const SHIPPED: (&str, &str) = ("workspace", "Let ");
/// Maximum length of a program's name, in characters.
const NAME_MAX: usize = 40;

/// Names and places that make a question readable.
#[derive(Debug, Clone, Default)]
pub struct Naming<'a> {
    /// The user's home directory, shown as `~`.
    pub home: Option<&'a Path>,
    /// The program that the running command consists of.
    pub program: Option<String>,
    /// Whether the command is pi itself.
    pub is_pi: bool,
}

/// Puts title, place, context, preview and warning into a question.
pub(super) fn put(question: &mut Question, request: &Request, decision: &Decision, naming: &Naming<'_>) {
    let caution = caution(request, decision);
    question.title = title(request, decision, naming);
    question.place = place(request, decision, naming);
    question.context = match caution {
        Some(caution) => format!("Careful: {caution}. {}", context(request, decision)),
        None => context(request, decision),
    };
    question.is_sensitive = caution.is_some();
    question.preview = caution.and_then(|_| preview(&request.action));
}

/// Returns true if a policy's text only repeats the title of the question.
#[must_use]
pub(super) fn is_restated(policy: &str, quote: &str) -> bool {
    let (shipped, beginning) = SHIPPED;
    policy == shipped && quote.starts_with(beginning) && !quote.contains('\n')
}

/// Returns the text shortened to a number of words and characters.
#[must_use]
pub fn cut(text: &str, (words_max, characters_max): (usize, usize)) -> String {
    let mut words = text.split_whitespace();
    let mut short = words.by_ref().take(words_max).collect::<Vec<_>>().join(" ");
    let mut is_cut = words.next().is_some();
    if short.chars().count() > characters_max {
        short = short.chars().take(characters_max).collect();
        is_cut = true;
    }
    if is_cut {
        short.push_str(" …");
    }
    short
}

/// Returns a reason as a short sentence.
fn sentence(reason: &str) -> String {
    let mut characters = reason.trim().trim_end_matches('.').chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase()).into_iter();
    let text = cut(&escape(&first.chain(characters).collect::<String>()), CONTEXT);
    if text.ends_with('…') { text } else { format!("{text}.") }
}

fn who(request: &Request, naming: &Naming<'_>) -> String {
    let named = |program: &str| -> String {
        let name = program.rsplit('/').next().unwrap_or(program);
        let name: String = name.chars().take(NAME_MAX).collect();
        escape_confusables(&quoted(&name))
    };
    let program = if let Action::Network(access) = &request.action
        && access.process.pid != 0
    {
        Some(named(&access.process.program))
    } else {
        None
    };
    match request.origin {
        Origin::Process if naming.is_pi => match program {
            Some(program) => format!("pi itself ({program})"),
            None => "pi itself".to_owned(),
        },
        _ if program.is_some() => program.unwrap_or_default(),
        Origin::Process => naming.program.as_deref().map_or_else(|| "A command".to_owned(), named),
        Origin::Agent => "The agent".to_owned(),
        Origin::User => "Your command".to_owned(),
        Origin::Extension => "An extension".to_owned(),
    }
}

fn title(request: &Request, decision: &Decision, naming: &Naming<'_>) -> String {
    if request.run_again().is_some() {
        return "Run this command again?".to_owned();
    }
    let what: Cow<'static, str> = match &request.action {
        Action::File(access) => match known_place(request, decision) {
            Some(place) => {
                let verb = if is_writing(access) { "change" } else { "read" };
                format!("{verb} the {}", place.kind.noun()).into()
            }
            None => verb(access),
        },
        Action::Command(_) => "run".into(),
        Action::Escalation(_) => "run this OUTSIDE the sandbox".into(),
        Action::Network(access) => match access.stage {
            Stage::Connect | Stage::Resolved(_) => "connect to".into(),
            Stage::ClientHello(_) => "connect with TLS to".into(),
            Stage::Http(_) => "send the request".into(),
        },
        Action::Socket(_) => "use the socket".into(),
        Action::Tool(_) => "use the tool".into(),
        Action::Other(other) => signature::verb(other)
            .unwrap_or_else(|| format!("make a request ({})", cut(&escape_confusables(&other.kind), (3, 40))))
            .into(),
    };
    format!("{} wants to {what}", who(request, naming))
}

fn verb(access: &FileAccess) -> Cow<'static, str> {
    let is_new = access.path.kind == PathKind::Missing;
    match &access.operation {
        FileOperation::Read => "read".into(),
        FileOperation::Write(_) if is_new => "create".into(),
        FileOperation::Write(_) => "write".into(),
        FileOperation::Edit(_) => "change".into(),
        FileOperation::List => "list".into(),
        FileOperation::Search(_) => "search".into(),
        FileOperation::CreateDirectory => "create the directory".into(),
        FileOperation::Delete => "remove".into(),
        FileOperation::Move(_) => "rename".into(),
        FileOperation::Link(_) => "make a hard link".into(),
        FileOperation::Symlink(_) => "make a symbolic link".into(),
        FileOperation::ChangeMetadata => "change mode, owner or times of".into(),
        FileOperation::Other(name) => cut(&escape_confusables(name), (3, 40)).into(),
    }
}

/// Returns the place as a person writes it; `None` if the subject is that already.
fn place(request: &Request, decision: &Decision, naming: &Naming<'_>) -> Option<String> {
    let Action::File(access) = &request.action else { return None };
    let text = match known_place(request, decision) {
        Some(place) => tilde(&path_text::encode(&place.top), naming.home),
        None => {
            let end = if let FileOperation::Link(other) | FileOperation::Move(other) = &access.operation {
                format!(" to {}", tilde(&other.canonical, naming.home))
            } else {
                other_end(access).unwrap_or_default()
            };
            format!("{}{end}", tilde(&access.path.canonical, naming.home))
        }
    };
    Some(escape_confusables_in_subject(&text).0)
}

fn context(request: &Request, decision: &Decision) -> String {
    let cause = decision.cause();
    let is_base = cause.rule.starts_with("base.");
    match &request.action {
        Action::File(_) if request.named_before_failure().is_some() => {
            "The command failed without it. After a yes it can run again.".to_owned()
        }
        Action::File(access) => {
            if let Some(meaning) = meaning(access) {
                return sentence(&escape_confusables(&meaning));
            }
            match known_place(request, decision) {
                Some(place) if is_base => outside(Some(place.kind), access.path.zone),
                None if is_base => outside(None, access.path.zone),
                Some(_) | None => {
                    executed(&cause.rule, &cause.reason, access).unwrap_or_else(|| sentence(&cause.reason))
                }
            }
        }
        Action::Network(access) => special_addresses::service(access).unwrap_or_else(|| {
            match special_addresses::meanings(access).first() {
                Some(meaning) => sentence(meaning),
                None if (is_base || cause.rule == UNLISTED_HOST) && access.stage == Stage::Connect => {
                    NOTHING_SENT.to_owned()
                }
                None if cause.rule == UNLISTED_HOST => "Your settings do not list this host.".to_owned(),
                None => sentence(&cause.reason),
            }
        }),
        Action::Escalation(_) => "It runs with your full rights.".to_owned(),
        Action::Command(_) if request.run_again().is_some() => "You allowed what it failed on.".to_owned(),
        Action::Tool(_) if cause.rule == UNKNOWN_TOOL => {
            "Portcullis cannot confine a tool of an extension or server.".to_owned()
        }
        Action::Socket(_) if is_base => outside(None, Zone::System),
        Action::Other(other) if is_base && other.kind == signature::KIND => {
            "Commands do not get the key; it signs outside.".to_owned()
        }
        Action::Command(_) | Action::Socket(_) | Action::Tool(_) | Action::Other(_) => {
            sentence(&cause.reason)
        }
    }
}

fn outside(kind: Option<KnownPlaceKind>, zone: Zone) -> String {
    let place = match zone {
        Zone::Workspace => return "In this project, but a rule asks first.".to_owned(),
        Zone::Home => ", in your home directory",
        Zone::Agent => ", among the agent's own files",
        Zone::Temp => ", in the temporary directory",
        Zone::System => "",
    };
    match kind {
        Some(KnownPlaceKind::Repository) => format!("A repository outside this project{place}."),
        Some(KnownPlaceKind::Project) => format!("Another project{place}."),
        Some(KnownPlaceKind::Directory) | None => format!("Outside this project{place}."),
    }
}

/// Returns why a name is protected that other programs execute.
///
/// A reason that differs from the rule's own is about the content, and is more precise than these texts.
fn executed(rule: &str, reason: &str, access: &FileAccess) -> Option<String> {
    let known = portcullis_exec_surface::rule(rule)?;
    if known.reason != reason {
        return None;
    }
    let entry = table::executed().iter().filter(|entry| entry.section == rule);
    let entry = entry.into_iter().find(|entry| names(entry, Path::new(&access.path.canonical)));
    if let Some((tool, what)) = entry.and_then(|entry| {
        let mut fields = entry.rest.split(" | ");
        Some((fields.next()?, fields.next()?))
    }) {
        return Some(format!("{}.", cut(&format!("For {tool}: {what}"), CONTEXT)));
    }
    let text = match rule {
        "host.shell-files" => "A shell runs this file.",
        "host.tool-files" => "A tool that you start here may run code from it.",
        "host.editor-files" => "An editor that you open here reads settings and tasks from it.",
        "host.agent-files" => "Agents that work here do what it says.",
        "host.hook-managers" => "It decides what runs when you commit.",
        "host.ci-files" => "Build machines run what it says, with their secrets.",
        "host.new-dot-files" => "A tool that you start here may run programs from it.",
        "host.home-files" => "Your shell, desktop or tools may run programs from it.",
        "host.git-hooks" => "Your git runs programs from it.",
        "host.git-config" => "Your git reads settings from it, which can name programs.",
        _ => return None,
    };
    Some(text.to_owned())
}

/// Returns true if the path is a name of the table, or below one.
fn names(entry: &Entry, path: &Path) -> bool {
    let path: Vec<String> =
        path.components().map(|name| name.as_os_str().to_string_lossy().to_lowercase()).collect();
    let name: Vec<String> = entry.name.split('/').map(str::to_lowercase).collect();
    let is_named = |(wanted, found): (&String, &String)| match wanted.strip_prefix('*') {
        Some(end) => found.ends_with(end),
        None => wanted == found,
    };
    path.windows(name.len()).any(|part| name.iter().zip(part).all(is_named))
}

/// Returns a warning if the answer is about something that deserves a second look.
fn caution(request: &Request, decision: &Decision) -> Option<&'static str> {
    match &request.action {
        Action::Escalation(_) => Some("unprotected"),
        Action::File(access) => {
            let is_executed = portcullis_exec_surface::rule(&decision.cause().rule).is_some();
            if holds_credentials(Path::new(&access.path.canonical)) {
                Some("keys or passwords")
            } else if is_executed && is_writing(access) {
                Some("other programs act on this file")
            } else {
                None
            }
        }
        Action::Network(access) => hands_out_credentials(access).then_some("credentials"),
        Action::Command(_) | Action::Socket(_) | Action::Tool(_) | Action::Other(_) => None,
    }
}

/// Directories and files that usually hold credentials.
const CREDENTIALS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".pgpass",
    ".vault-token",
    ".password-store",
    "gcloud",
    "keyrings",
    "credentials",
    "credentials.json",
    "credentials.toml",
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
    "secrets",
    "auth.json",
];

fn holds_credentials(path: &Path) -> bool {
    let mut names = path.components().map(|name| name.as_os_str().to_string_lossy().to_lowercase());
    names.any(|name| {
        CREDENTIALS.contains(&name.as_str())
            || name == ".env"
            || name.starts_with(".env.")
            || [".pem", ".key", ".p12", ".pfx", ".kdbx"].iter().any(|end| name.ends_with(end))
    })
}

fn hands_out_credentials(access: &NetworkAccess) -> bool {
    let is_metadata = |address| special(address) == Some(Special::Metadata);
    let target = match &access.target {
        Endpoint::Address(address) => is_metadata(*address),
        Endpoint::Domain(_) => false,
    };
    let resolved = match &access.stage {
        Stage::Resolved(addresses) => {
            addresses.iter().filter_map(|address| address.parse().ok()).any(is_metadata)
        }
        Stage::Connect | Stage::ClientHello(_) | Stage::Http(_) => false,
    };
    target || resolved
}

/// Returns the first lines of the text that the agent wants to write.
fn preview(action: &Action) -> Option<String> {
    let Action::File(access) = action else { return None };
    let text = if let FileOperation::Write(Content::Text(text)) = &access.operation {
        &text.value
    } else if let FileOperation::Edit(edits) = &access.operation {
        &edits.first()?.new.value
    } else {
        return None;
    };
    let (words_max, lines_max, line_max) = PREVIEW;
    let mut words_left = words_max;
    let mut lines = Vec::new();
    let mut all = text.lines().filter(|line| !line.trim().is_empty());
    for line in all.by_ref().take(lines_max) {
        if words_left == 0 {
            break;
        }
        let line = cut(line, (words_left, line_max));
        words_left = words_left.saturating_sub(line.split_whitespace().count());
        lines.push(format!("+ {}", escape_confusables(&line)));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}
