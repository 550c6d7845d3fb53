//! Every kind of question as a person sees it: how long it is, and the page that shows all of them.
//!
//! The extension's tests draw the same questions as pi's terminal shows them, for `docs/screens-pi.md`.
//! After an intended change: `UPDATE_REFERENCE=1` here and in `pi`, then read the difference of both pages.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod reference;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use portcullis_approvals::question::connections::{PresetOffer, about_all, about_more, offer_presets};
use portcullis_approvals::question::credential_offer::{CredentialOffer, OfferedUse};
use portcullis_approvals::question::question;
use portcullis_approvals::question::signature;
use portcullis_approvals::question::words::{Naming, WORDS_MAX};
use portcullis_approvals::{GrantPlace, Question, Refusal};
use portcullis_decision::request::{
    Action, CommandExecution, Content, Direction, Endpoint, FileAccess, FileFacts, FileOperation, HttpHead,
    NetworkAccess, Origin, OtherAction, PathKind, PathRef, ProcessInfo, SearchQuery, SocketAccess, Stage,
    Text, TextEdit, ToolCall, Transport, Zone,
};
use portcullis_decision::rules::Ruling;
use portcullis_decision::{Decision, Effect, Fact, GrantScope, KnownPlace, KnownPlaceKind, Request};
use portcullis_server::ask_params;
use portcullis_server::prompt_layout::{PromptLayout, Size};
use serde_json::json;

use reference::is_up_to_date;

/// Maximum number of lines before the choices at 80 columns.
const LINES_MAX: usize = 8;
const HOME: &str = "/home/ann";
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/screens.md");
const FOR_PI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../pi/test/screens/questions.json");

struct QuestionCase {
    name: &'static str,
    question: Question,
}

fn path(text: &str, zone: Zone, kind: PathKind) -> PathRef {
    let text = text.to_owned();
    PathRef {
        given: text.clone(),
        absolute: text.clone(),
        canonical: text.clone(),
        zone,
        relative: text,
        kind,
    }
}

fn text(value: &str) -> Text {
    Text { value: value.to_owned(), length: u32::try_from(value.len()).unwrap(), truncated: false }
}

fn ruling(rule: &str, reason: &str) -> Decision {
    let policy = rule.split('.').next().unwrap().to_owned();
    Decision::by_rule(Ruling {
        effect: Effect::Ask,
        policy,
        rule: rule.to_owned(),
        reason: reason.to_owned(),
        setting: String::new(),
        conceal: false,
    })
}

fn places() -> Vec<GrantPlace> {
    let place = |key, scope, label: &str, target: &str| GrantPlace {
        id: target.to_owned(),
        key,
        scope,
        label: label.to_owned(),
        target: target.to_owned(),
    };
    let entry = "projects.json[\"/home/ann/src/shop\"]";
    vec![
        place('P', GrantScope::Project, "Always in this project", entry),
        place('A', GrantScope::User, "Always, in every project", "default.json"),
    ]
}

fn asked(origin: Origin, action: Action, facts: Vec<Fact>, decision: &Decision, program: &str) -> Question {
    let request = Request { id: "r1".into(), parent: None, origin, action, facts };
    let program = (!program.is_empty()).then(|| program.to_owned());
    let naming = Naming { home: Some(Path::new(HOME)), program, is_pi: false };
    question(1, None, &request, decision, &places(), 0, &naming)
}

fn file(
    name: &'static str,
    origin: Origin,
    at: (&str, Zone, PathKind),
    operation: FileOperation,
) -> QuestionCase {
    let access = FileAccess { path: path(at.0, at.1, at.2), operation, facts: FileFacts::default() };
    let decision = ruling("base.outside", "it lies outside this project");
    QuestionCase { name, question: asked(origin, Action::File(access), Vec::new(), &decision, "") }
}

fn tool_files() -> Vec<QuestionCase> {
    let notes = ("/home/ann/other/notes.txt", Zone::Home, PathKind::File);
    let new = ("/srv/out/report.txt", Zone::System, PathKind::Missing);
    let agent = Origin::Agent;
    let replacement = || vec![TextEdit { old: text("a"), new: text("b") }];
    let query = || SearchQuery { pattern: "fn main".into(), glob: None };
    let other = || path("/srv/out/new.txt", Zone::System, PathKind::Missing);
    vec![
        file("read a file", agent, notes, FileOperation::Read),
        file("create a file", agent, new, FileOperation::Write(Content::Text(text("hello\n")))),
        file("write a file", agent, notes, FileOperation::Write(Content::Text(text("hello\n")))),
        file("change a file", agent, notes, FileOperation::Edit(replacement())),
        file("list a directory", agent, ("/srv/out", Zone::System, PathKind::Directory), FileOperation::List),
        file(
            "search a directory",
            agent,
            ("/srv/out", Zone::System, PathKind::Directory),
            FileOperation::Search(query()),
        ),
        file("create a directory", Origin::Process, new, FileOperation::CreateDirectory),
        file("remove a file", Origin::Process, notes, FileOperation::Delete),
        file("rename a file", Origin::Process, notes, FileOperation::Move(other())),
        file("link a file", Origin::Process, notes, FileOperation::Link(other())),
        file("make a link", Origin::Process, new, FileOperation::Symlink("/etc/hosts".into())),
        file("change the mode", Origin::Process, notes, FileOperation::ChangeMetadata),
        file(
            "read a file with keys",
            agent,
            ("/home/ann/.ssh/id_ed25519", Zone::Home, PathKind::File),
            FileOperation::Read,
        ),
        file(
            "read a file with a long path",
            agent,
            (
                "/srv/a directory with spaces/and/another/one/that/is/deep/enough/to/need/two/lines.txt",
                Zone::System,
                PathKind::File,
            ),
            FileOperation::Read,
        ),
    ]
}

/// Names that other programs obey, and places of commands.
fn names_and_places() -> Vec<QuestionCase> {
    let in_project = |name: &str| format!("/home/ann/src/shop/{name}");
    let named = |name, at: &str, rule: &str, content: &str| {
        let access = FileAccess {
            path: path(&in_project(at), Zone::Workspace, PathKind::Missing),
            operation: FileOperation::Write(Content::Text(text(content))),
            facts: FileFacts::default(),
        };
        let reason = reason_of(rule);
        let decision = Decision::by_rule(Ruling {
            effect: Effect::Ask,
            policy: "host".into(),
            rule: rule.into(),
            reason,
            setting: String::new(),
            conceal: false,
        });
        QuestionCase { name, question: asked(Origin::Agent, Action::File(access), Vec::new(), &decision, "") }
    };
    let place = |name, kind, program: &str, operation: FileOperation| {
        let top = PathBuf::from("/home/ann/src/lib.git");
        let access = FileAccess {
            path: path("/home/ann/src/lib.git/objects/tmp_obj_a8dJ2k", Zone::Home, PathKind::Missing),
            operation,
            facts: FileFacts::default(),
        };
        let wider = Some(PathBuf::from("/home/ann/src"));
        let facts = vec![Fact::KnownPlace(KnownPlace { top, kind, wider })];
        let decision =
            ruling("base.closed", "it lies outside this project, in a directory that commands do not see");
        QuestionCase {
            name,
            question: asked(Origin::Process, Action::File(access), facts, &decision, program),
        }
    };
    let write = || FileOperation::Write(Content::Unknown);
    let looked_for = {
        let top = PathBuf::from("/home/ann/data");
        let access = FileAccess {
            path: path("/home/ann/data/2026/a.csv", Zone::Home, PathKind::File),
            operation: FileOperation::Read,
            facts: FileFacts::default(),
        };
        let place = KnownPlace { top, kind: KnownPlaceKind::Directory, wider: None };
        let facts =
            vec![Fact::KnownPlace(place), Fact::NamedBeforeFailure("/home/ann/data/2026/a.csv".into())];
        let decision =
            ruling("base.closed", "it lies outside this project, in a directory that commands do not see");
        let question = asked(Origin::Process, Action::File(access), facts, &decision, "python3");
        QuestionCase { name: "after a command has not found a file", question }
    };
    let failed = {
        let access = FileAccess {
            path: path("/srv/out", Zone::System, PathKind::Directory),
            operation: write(),
            facts: FileFacts::default(),
        };
        let facts = vec![Fact::NamedBeforeFailure("/srv/out/x".into())];
        let decision = ruling("base.outside", "it lies outside this project");
        let question = asked(Origin::Process, Action::File(access), facts, &decision, "make");
        QuestionCase { name: "after a command has failed", question }
    };
    vec![
        named(
            "a start-up file (.envrc)",
            ".envrc",
            "host.tool-files",
            "export API_BASE=http://localhost:3000\n",
        ),
        named("settings of git", ".git/config", "host.git-config", "[core]\n\thooksPath = x\n"),
        named(
            "instructions of build machines",
            ".github/workflows/ci.yml",
            "host.ci-files",
            "on: push\njobs: {}\n",
        ),
        named("a new dot file", ".newtool", "host.new-dot-files", "a = 1\n"),
        place("change a repository", KnownPlaceKind::Repository, "git", write()),
        place("read a project", KnownPlaceKind::Project, "", FileOperation::Read),
        place("change a directory", KnownPlaceKind::Directory, "rsync", FileOperation::Delete),
        looked_for,
        failed,
    ]
}

fn reason_of(rule: &str) -> String {
    portcullis_exec_surface::rule(rule).unwrap().reason.to_owned()
}

fn network(target: &str, port: u16, stage: Stage, program: &str) -> NetworkAccess {
    let target = match target.parse() {
        Ok(address) => Endpoint::Address(address),
        Err(_) => Endpoint::Domain(target.to_owned()),
    };
    let process = ProcessInfo { pid: 812, program: format!("/usr/bin/{program}"), argv: Vec::new() };
    NetworkAccess { transport: Transport::Tcp, direction: Direction::Outbound, target, port, stage, process }
}

fn connections() -> Vec<QuestionCase> {
    let decision = ruling("network.unlisted", "`allowedDomains` does not name this host");
    let about =
        |access: NetworkAccess| asked(Origin::Process, Action::Network(access), Vec::new(), &decision, "");
    let connect = |target: &str, program: &str| about(network(target, 443, Stage::Connect, program));
    let hosts = ["a.example", "b.example", "c.example"].map(|host| (Endpoint::Domain(host.to_owned()), 443));
    let mut preset = connect("registry.npmjs.org", "npm");
    let offer = PresetOffer {
        name: "npm".into(),
        title: "npm's package registry".into(),
        holds: vec!["registry.npmjs.org:443".into()],
    };
    offer_presets(&mut preset, &[offer]);
    let resolved = Stage::Resolved(vec!["10.0.0.9".into()]);
    let head = HttpHead { method: "POST".into(), url: "http://a.example/x".into(), header_names: vec![] };
    let kind = |name, question| QuestionCase { name, question };
    vec![
        kind("connect to a host", connect("example.com", "curl")),
        kind("connect to several hosts", about_all(connect("a.example", "node"), &hosts, None)),
        kind("connect to a registry, with a preset", preset),
        kind("send more than the budget", about_more(connect("example.com", "curl"), 64 << 20)),
        kind("connect to this machine", connect("127.0.0.1", "psql")),
        kind("connect to a metadata service", connect("169.254.169.254", "curl")),
        kind("connect to a private address", about(network("intern.example", 443, resolved, "curl"))),
        kind(
            "connect with TLS",
            about(network("a.example", 443, Stage::ClientHello("b.example".into()), "curl")),
        ),
        kind("send a request", about(network("a.example", 80, Stage::Http(head), "curl"))),
    ]
}

fn others() -> Vec<QuestionCase> {
    let command = |script: &str| CommandExecution {
        script: script.to_owned(),
        shell: Some("bash".into()),
        cwd: path("/home/ann/src/shop", Zone::Workspace, PathKind::Directory),
        parsed: Err("not read".into()),
        timeout_ms: None,
        background: false,
    };
    let about = |name, action, facts, decision: &Decision| QuestionCase {
        name,
        question: asked(Origin::Agent, action, facts, decision, ""),
    };
    let socket = SocketAccess {
        path: "/run/docker.sock".into(),
        direction: Direction::Outbound,
        process: ProcessInfo::default(),
    };
    let tool = ToolCall {
        name: "search".into(),
        provider: "mcp:github".into(),
        input: r#"{"query":"bugs"}"#.into(),
    };
    let seen = ruling("tool.unknown", "Portcullis cannot confine a tool of an extension or server");
    let again = vec![Fact::RunAgain(vec!["/srv/out".into()])];
    let push = ruling("git.push", "it sends commits to a server that others read");
    let rest = ruling("host.escalation", "it runs with your full rights");
    let other = OtherAction { kind: "model".into(), input: "{}".into() };
    let offer = |tool, usage, host: &str, object: Option<&str>, adds: &str| CredentialOffer {
        tool,
        usage,
        host: host.to_owned(),
        object: object.map(str::to_owned),
        adds: adds.to_owned(),
    };
    let offers = [
        offer(
            "git",
            OfferedUse::PushBySsh,
            "git.example",
            Some("me/shop"),
            "git may use your own ssh for me/shop at git.example, and push to its branches agent/**",
        ),
        offer(
            "git",
            OfferedUse::PushByHttps,
            "github.com",
            Some("me/shop"),
            "git may use your credential for me/shop at github.com, and push to its branches agent/**",
        ),
        offer(
            "npm",
            OfferedUse::Publish,
            "registry.npmjs.org",
            Some("shop"),
            "npm may use your credential at registry.npmjs.org, and publish shop",
        ),
        offer(
            "gh",
            OfferedUse::Read,
            "api.github.com",
            None,
            "commands may read at api.github.com with your credential",
        ),
    ];
    let offered = |name, offer: CredentialOffer| {
        let decision = ruling("base.no-opinion", "no policy has an opinion on this");
        let question = asked(Origin::Process, offer.action(), Vec::new(), &decision, "");
        QuestionCase { name, question: offer.put(question, "default.json") }
    };
    let signed = json!({
        "credential": "sign", "object": "commit", "by": "Ann <ann@a.example>", "summary": "Fix the login",
    });
    vec![
        about("run a command", Action::Command(command("git push origin main")), vec![], &push),
        about("run a command outside", Action::Escalation(command("make install")), vec![], &rest),
        about("run a command again", Action::Command(command("make")), again, &push),
        about(
            "use a socket",
            Action::Socket(socket),
            vec![],
            &ruling("base.outside", "it lies outside this project"),
        ),
        about("use a tool of an extension", Action::Tool(tool), vec![], &seen),
        about(
            "sign a commit",
            Action::Other(OtherAction { kind: signature::KIND.into(), input: signed.to_string() }),
            vec![],
            &ruling("base.no-opinion", "no policy has an opinion on this"),
        ),
        offered("push by ssh", offers[0].clone()),
        offered("push over HTTPS", offers[1].clone()),
        offered("publish a package", offers[2].clone()),
        offered("use a credential to read", offers[3].clone()),
        about(
            "something else",
            Action::Other(other),
            vec![],
            &ruling("team.models", "the team wants to know"),
        ),
    ]
}

fn kinds() -> Vec<QuestionCase> {
    [tool_files(), names_and_places(), connections(), others()].into_iter().flatten().collect()
}

/// Returns all lines of a question, and the number of those before the choices.
fn drawn(question: &Question, columns: usize) -> (Vec<String>, usize) {
    let layout = PromptLayout::new("", question, "", "", Size::new(columns, 200));
    let lines: Vec<String> = layout.lines.into_iter().skip_while(String::is_empty).collect();
    let before = lines.iter().position(|line| line.starts_with("  [n] No")).unwrap();
    (lines, before)
}

fn words(lines: &[String]) -> usize {
    lines.iter().flat_map(|line| line.split_whitespace()).filter(|word| *word != "|" && *word != "+").count()
}

#[test]
fn every_question_is_short() {
    for QuestionCase { name, question } in kinds() {
        for columns in [40, 80, 120] {
            let (lines, before) = drawn(&question, columns);
            let asked = &lines[..before];
            // A path with spaces is one name, however it is counted.
            let count = words(asked).saturating_sub(if name.contains("long path") { 4 } else { 0 });
            assert!(count <= WORDS_MAX, "{name} has {count} words at {columns}: {asked:#?}");
            assert!(
                columns < 80 || before <= LINES_MAX,
                "{name} has {before} lines at {columns}: {asked:#?}"
            );
            assert!(
                lines.iter().all(|line| line.chars().count() <= columns),
                "{name} at {columns}: {lines:#?}"
            );
        }
    }
}

#[test]
fn every_question_says_who_wants_what() {
    for QuestionCase { name, question } in kinds() {
        let is_said = question.title.contains(" wants to ") || question.title.ends_with('?');
        assert!(is_said && !question.title.contains("Allow"), "{name}: {}", question.title);
        assert!(question.context.ends_with(['.', '…']), "{name}: {}", question.context);
        assert!(question.choices.iter().all(|choice| !choice.label.contains("Allow")), "{name}");
    }
}

#[test]
fn what_is_sensitive_looks_so() {
    for QuestionCase { name, question } in kinds() {
        let is_expected = ["keys", ".envrc", "git", "build machines", "dot file", "metadata", "outside"]
            .iter()
            .any(|part| name.contains(part));
        assert_eq!(question.is_sensitive, is_expected, "{name}: {question:#?}");
        assert_eq!(question.context.starts_with("Careful: "), is_expected, "{name}");
    }
}

#[test]
fn the_page_shows_every_question() {
    let mut page = "# Questions on a terminal\n\nEvery kind of question as `portcullis run` shows it on a terminal of 80 columns. \
                    [Screens in pi](screens-pi.md) shows the same in pi.\n\nGenerated by a test from the questions themselves.\n"
        .to_owned();
    for QuestionCase { name, question } in kinds() {
        let (lines, before) = drawn(&question, 80);
        let count = words(&lines[..before]);
        write!(page, "\n## {name}\n\n{count} words, {before} lines before the choices.\n\n```text\n")
            .unwrap();
        for line in lines {
            writeln!(page, "{}", line.trim_end()).unwrap();
        }
        page.push_str("```\n");
    }
    page.push_str("\n## Reasons of a no\n\nThe end of the line that the model and the log get.\n\n```text\n");
    for refusal in REFUSALS {
        writeln!(page, "{}", refusal.reason()).unwrap();
    }
    page.push_str("```\n");
    is_up_to_date(PAGE, &page);
}

const REFUSALS: [Refusal; 5] =
    [Refusal::User, Refusal::Remembered, Refusal::NoUser, Refusal::Timeout, Refusal::Aborted];

#[test]
fn the_extension_draws_the_same_questions() {
    let asked: Vec<_> = kinds()
        .into_iter()
        .map(|QuestionCase { name, question }| json!({ "name": name, "ask": ask_params(&question) }))
        .collect();
    is_up_to_date(FOR_PI, &format!("{:#}\n", json!(asked)));
}
