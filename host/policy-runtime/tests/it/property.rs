//! Properties that hold for every guest and every answer. `boundary.rs` checks them on some hundreds of
//! guests and answers, and `fuzz/` on as many as time allows.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use portcullis_decision::pattern::{FilePattern, HostName};
use portcullis_decision::profile::{FileRight, FileRights, FileRule};
use portcullis_decision::request::{ProcessInfo, Request};
use portcullis_decision::verdict::{Cause, ContentBlock, OutputVerdict, ToolOutput};
use portcullis_decision::{
    Base, Caller, Chain, Context, Effect, Member, Mode, Policy, Profile, RuleLayer, RuleSet, Verdict,
};
use portcullis_policy_runtime::{CachePlace, Compiler, ComponentPolicy, Runtime};

use crate::hand_made::HandMade;
use crate::request::{context, read};

/// The longest text for people in an answer.
///
/// This is the limit in `wit/types.wit` ("Limits"), with room for replaced characters and for the words that
/// the host adds.
const LONGEST: usize = 3 * (8 << 10) + 256;
/// Largest number of bytes that [`answers`] passes to the guest.
const ANSWER: usize = 12 << 10;
/// Address of these bytes in the guest's memory.
const PLACE: u32 = 8192;
/// A file of the workspace.
const FILE: &str = "/srv/app/a";

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Runtime::new(crate::limits(), &CachePlace::None, Compiler::InProcess).unwrap());

/// A guest that answers with the bytes spelled by the first text of its arguments.
///
/// Two letters stand for each byte. The text is the id of the request, or of the session if there is no
/// request.
static ECHO: LazyLock<Arc<ComponentPolicy>> =
    LazyLock::new(|| Arc::new(RUNTIME.load("echo", &echo(), "{}").unwrap()));

/// Loads a component and returns its effect on a request, or `None` if it does not load.
///
/// Checks that only an allowing answer or an abstention allows the action.
pub(crate) fn component(bytes: &[u8]) -> Option<Effect> {
    let _described = RUNTIME.describe(bytes);
    let policy = Arc::new(RUNTIME.load("guest", bytes, "{}").ok()?);
    Some(decided(policy, &read(FILE), &context()))
}

fn decided(policy: Arc<ComponentPolicy>, request: &Request, context: &Context) -> Effect {
    let answer = policy.evaluate(request, context);
    if let Ok(evaluation) = &answer {
        is_tame(&evaluation.cause);
    }
    let chain = Chain { members: vec![Member { policy, mode: Mode::Enforce }], ..Chain::default() };
    let rules = RuleSet::compile(Vec::new(), base(), &[]);
    let decision = chain.decide(request, context, &rules, &[]);
    assert!(decision.cause().reason.len() <= LONGEST, "{} bytes", decision.cause().reason.len());
    let effect = decision.effect();
    let may_allow = answer.is_ok_and(|answer| matches!(answer.verdict, Verdict::Allow(_) | Verdict::Abstain));
    assert!(effect != Effect::Allow || may_allow, "a failure let something through");
    effect
}

fn base() -> Base {
    Base { workspace: vec!["/srv/app".into()], temp: "/tmp".into(), closed: Vec::new(), ..Base::default() }
}

/// Checks that texts for people have no control characters and stay within their limit.
fn is_tame(cause: &Cause) {
    let Cause { rule, reason, setting, .. } = cause;
    for text in [rule, reason, setting] {
        assert!(text.len() <= LONGEST && !text.contains(char::is_control), "{text:?}");
    }
}

/// The host's interpretation of the bytes that a guest answered with.
#[derive(Debug)]
pub(crate) struct Heard {
    /// The effect, taking the bytes as a verdict.
    pub(crate) effect: Effect,
    /// The number of file rules, taking the bytes as standing rules and as rules for a command.
    pub(crate) rules: [Option<usize>; 2],
    /// The verdict on a tool's output.
    pub(crate) output: Option<OutputVerdict>,
    /// The text for the model.
    pub(crate) brief: Option<String>,
}

/// Makes a guest answer with these bytes in every function that it exports.
pub(crate) fn answers(bytes: &[u8]) -> Heard {
    let letters: String =
        bytes.iter().take(ANSWER).flat_map(|byte| [byte >> 4, byte & 15]).map(letter).collect();
    let request = Request { id: letters.clone(), ..read(FILE) };
    let session = Context { session_id: letters, ..context() };
    let effect = decided(Arc::clone(&ECHO), &request, &context());
    let profiles =
        [ECHO.standing(&session), ECHO.for_command(&request, &context())].map(|said| said.ok().flatten());
    let rules = profiles.each_ref().map(|profile| profile.as_ref().map(|profile| profile.files.len()));
    profiles.into_iter().flatten().for_each(loosens_nothing);
    let content = vec![ContentBlock::Text("text".to_owned())];
    let output = ToolOutput { request, is_error: false, truncated: false, content };
    let inspected = ECHO.inspect(&output, &context()).ok().flatten();
    inspected.iter().for_each(|inspected| is_tame(&inspected.cause));
    let output = inspected.map(|inspected| inspected.verdict);
    if let Some(OutputVerdict::Replace(blocks)) = &output {
        assert!(matches!(blocks.as_slice(), [ContentBlock::Text(_)]), "{blocks:?}");
    }
    let brief = ECHO.brief(&session).ok();
    let steers = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
    assert!(brief.iter().all(|brief| brief.len() <= LONGEST && !brief.contains(steers)), "{brief:?}");
    Heard { effect, rules, output, brief }
}

fn letter(number: u8) -> char {
    char::from(b'a' + number)
}

/// Checks that the rules of a guest compile, and that they open nothing that another layer closes.
fn loosens_nothing(profile: Profile) {
    let rule = FileRule {
        id: "closed".to_owned(),
        pattern: FilePattern::Exact(FILE.into()),
        rights: FileRights { read: true, write: true, execute: true },
        effect: Effect::Deny,
        conceal: false,
        condition: String::new(),
        reason: String::new(),
        setting: String::new(),
    };
    let layer = |name: &str, profile| RuleLayer { name: name.to_owned(), profile, tightens: false };
    let closed = Profile { files: vec![rule], ..Profile::default() };
    let rules = RuleSet::compile(vec![layer("guest", profile), layer("settings", closed)], base(), &[]);
    for caller in [Caller::Tool, Caller::Command] {
        for right in [FileRight::Read, FileRight::Write, FileRight::Execute] {
            assert_eq!(rules.file(Path::new(FILE), right, caller).effect, Effect::Deny);
            let _any = rules.file(Path::new("/srv/app/deep/down.pem"), right, caller);
        }
    }
    let _places = rules.places();
    let process = ProcessInfo { pid: 2, program: "/usr/bin/curl".to_owned(), argv: Vec::new() };
    for host in ["a.example.com", "10.1.2.3"] {
        let _any = rules.connection(&HostName::parse(host).unwrap(), 443, &process);
    }
}

fn echo() -> Vec<u8> {
    let answer = format!(
        "(local $from i32) (local $end i32) (local $to i32)
        (local.set $from (i32.load (local.get 0)))
        (local.set $end (i32.add (local.get $from) (i32.load offset=4 (local.get 0))))
        (local.set $to (i32.const {PLACE}))
        (block $done (loop $next
            (br_if $done (i32.ge_u (local.get $from) (local.get $end)))
            (i32.store8 (local.get $to) (i32.or
                (i32.shl (i32.sub (i32.load8_u (local.get $from)) (i32.const 97)) (i32.const 4))
                (i32.sub (i32.load8_u offset=1 (local.get $from)) (i32.const 97))))
            (local.set $from (i32.add (local.get $from) (i32.const 2)))
            (local.set $to (i32.add (local.get $to) (i32.const 1)))
            (br $next)))
        (return (i32.const {PLACE}))"
    );
    let others = [
        ("confinement", "standing"),
        ("confinement", "for-command"),
        ("output-filter", "inspect"),
        ("orientation", "brief"),
    ];
    let function = |(interface, name): (&str, &str)| {
        format!(
            "(func (export \"portcullis:policy/{interface}@0.1.0#{name}\") (param i32) (result i32) {answer} \
             (unreachable))"
        )
    };
    let exports = ["confinement", "output-filter", "orientation"]
        .map(|interface| format!("export portcullis:policy/{interface}@0.1.0;"));
    HandMade::evaluate(&answer).fields(&others.map(function).concat()).imports(&exports.concat(), "").build()
}
