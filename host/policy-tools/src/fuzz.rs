//! Puts random requests to a policy: valid ones of every kind, made of text that trips rules, shells and hosts.
//!
//! The probes of `lint` are always the same; this is for long unattended runs. The same seed gives the same requests.

use portcullis_decision::chain::hear;
use portcullis_decision::pattern::HostName;
use portcullis_decision::request::{
    Action, Content, Direction, FileAccess, FileFacts, FileOperation, NetworkAccess, Origin, PathKind,
    ProcessInfo, Request, SearchQuery, Stage, Text, TextEdit, ToolCall, Transport,
};
use portcullis_decision::verdict::{ContentBlock, ToolOutput, Verdict};
use portcullis_decision::{Context, Policy as _};
use portcullis_policy_runtime::ComponentPolicy;
use portcullis_sdk::cases::Given;
use serde::Serialize;

use crate::declared::Declared;
use crate::question;

/// The most findings; each distinct error is reported once.
const MOST_FINDINGS: usize = 20;

/// The pieces of random texts.
const PIECES: [&str; 40] = [
    "", "/", "//", ".", "..", "~", " ", "\n", "\t", "'", "\"", "\\", "$", "$(", ")", "`", "{a,b}", "*", "**",
    "?", "[x]", "!", "#", ";", "&&", "|", ">", "<<EOF", "=", "%", "é", "\u{202e}", "\u{200b}", "漢",
    "\u{fffd}", "-rf", "--", ".env", "id_rsa", "0",
];

/// Names of directories and files.
const NAMES: [&str; 16] = [
    "src",
    "main.rs",
    ".git",
    "hooks",
    "config",
    ".env",
    ".ssh",
    "id_rsa",
    "node_modules",
    "..data",
    "a b",
    "é",
    "[x].env",
    "-f",
    "con",
    ".bashrc",
];

const WORDS: [&str; 18] = [
    "git",
    "push",
    "--force",
    "sudo",
    "env",
    "bash",
    "-c",
    "xargs",
    "rm",
    "curl",
    "https://example.com",
    "echo",
    "npm",
    "publish",
    "python3",
    "-e",
    "find",
    "-exec",
];

const HOSTS: [&str; 8] = [
    "example.com",
    "a.b.example.com",
    "xn--bcher-kva.test",
    "localhost",
    "127.0.0.1",
    "169.254.169.254",
    "::1",
    "registry.npmjs.org",
];

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fuzzed {
    /// The number of requests.
    pub run: u64,
    /// The number of verdicts: allow, ask, deny, abstain.
    pub verdicts: [u64; 4],
    /// The errors found.
    pub found: Vec<FailedRequest>,
}

/// A request that the policy failed on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailedRequest {
    /// The error.
    pub message: String,
    /// The request, as in the log; for an error in `inspect`, the request of the tool call.
    pub request: Request,
}

/// Puts requests to a configured policy as long as `goes_on` returns true.
///
/// The argument of `goes_on` is the number of requests so far.
#[must_use]
pub fn fuzz(policy: &ComponentPolicy, seed: u64, mut goes_on: impl FnMut(u64) -> bool) -> Fuzzed {
    let mut dice = RandomNumbers::new(seed);
    let declared = Declared::of(policy.description());
    let mut fuzzed = Fuzzed { run: 0, verdicts: [0; 4], found: Vec::new() };
    while fuzzed.found.len() < MOST_FINDINGS && goes_on(fuzzed.run) {
        let context = dice.context();
        let request = dice.request(&context);
        fuzzed.run += 1;
        if let Err(message) = fuzzed.put(policy, &declared, &request, &context, &mut dice) {
            // One mistake affects thousands of requests.
            if fuzzed.found.iter().all(|known| known.message != message) {
                fuzzed.found.push(FailedRequest { message, request });
            }
        }
    }
    fuzzed
}

impl Fuzzed {
    /// Puts one request to the policy; the error describes what is wrong with the answer.
    fn put(
        &mut self,
        policy: &ComponentPolicy,
        declared: &Declared<'_>,
        request: &Request,
        context: &Context,
        dice: &mut RandomNumbers,
    ) -> Result<(), String> {
        if policy.inspects() && dice.one_in(8) {
            let output = dice.output(request.clone());
            policy.inspect(&output, context).map_err(|error| format!("`inspect`: the policy {error}"))?;
        }
        if dice.one_in(16) {
            policy.standing(context).map_err(|error| format!("`standing`: the policy {error}"))?;
        }
        if matches!(request.action, Action::Command(_)) && dice.one_in(4) {
            policy
                .for_command(request, context)
                .map_err(|error| format!("`for-command`: the policy {error}"))?;
        }
        if !policy.handles().includes(&request.action) {
            return Ok(());
        }
        let answer = hear(policy, request, context).map_err(|error| format!("the policy {error}"))?;
        let place = match answer.verdict {
            Verdict::Allow(_) => 0,
            Verdict::Ask(_) => 1,
            Verdict::Deny(_) => 2,
            Verdict::Abstain => 3,
        };
        if let Some(count) = self.verdicts.get_mut(place) {
            *count += 1;
        }
        let rule = answer.cause.rule.as_str();
        if !rule.is_empty() && !declared.has(rule) {
            return Err(format!("the rule `{rule}` is not declared in `describe`"));
        }
        Ok(())
    }
}

/// A pseudo-random number generator (SplitMix64); the same seed gives the same numbers.
pub(crate) struct RandomNumbers(u64);

impl RandomNumbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit.max(1)).unwrap_or(1);
        usize::try_from(self.next() % limit).unwrap_or_default()
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn pick<T: Copy>(&mut self, items: &[T], other: T) -> T {
        let place = self.below(items.len());
        items.get(place).copied().unwrap_or(other)
    }

    fn text(&mut self) -> String {
        if self.one_in(40) {
            return self.pick(&PIECES, "x").repeat(20_000).chars().take(60_000).collect();
        }
        let length = self.below(6);
        (0..length)
            .map(|_| if self.one_in(3) { self.pick(&NAMES, "x") } else { self.pick(&PIECES, "x") })
            .collect()
    }

    /// Returns an absolute, normalized path, as the host passes it.
    fn path(&mut self, context: &Context) -> String {
        let root = context.workspace.roots.first().map_or("", String::as_str);
        let tops = [root, &context.machine.home, &context.agent.directory, "/tmp", "/etc", "/usr/lib", ""];
        let top = self.pick(&tops, "");
        let depth = self.below(5) + usize::from(top.is_empty());
        let below: String = (0..depth).map(|_| format!("/{}", self.pick(&NAMES, "x"))).collect();
        format!("{top}{below}")
    }

    fn script(&mut self) -> String {
        let length = self.below(8);
        let part = |dice: &mut Self| {
            if dice.one_in(3) { dice.text() } else { dice.pick(&WORDS, "true").to_owned() }
        };
        (0..length)
            .map(|_| part(self) + self.pick(&[" ", " ", " ", "; ", " && ", " | ", "\n"], " "))
            .collect()
    }

    pub(crate) fn context(&mut self) -> Context {
        let mut context = question::context(&Given::plain());
        context.interactive = !self.one_in(4);
        context.explain = self.one_in(4);
        context.now = u32::try_from(self.next() >> 32).unwrap_or_default();
        if self.one_in(8) {
            context.workspace.roots.push("/home/u".into());
        }
        if self.one_in(8) {
            context.agent.sub_agent = self.text();
        }
        context
    }

    pub(crate) fn request(&mut self, context: &Context) -> Request {
        let action = match self.below(7) {
            0 => Action::Command(question::execution(&self.script(), context)),
            1 => Action::Escalation(question::execution(&self.script(), context)),
            2 => self.connection(),
            3 => {
                let input = serde_json::json!({ self.text(): self.text() }).to_string();
                Action::Tool(ToolCall { name: self.text(), provider: "extension:x".into(), input })
            }
            _ => self.file(context),
        };
        let origin =
            self.pick(&[Origin::Agent, Origin::User, Origin::Extension, Origin::Process], Origin::Agent);
        Request { id: "1".into(), parent: None, origin, action, facts: Vec::new() }
    }

    fn file(&mut self, context: &Context) -> Action {
        let text = Text::cut(&self.text());
        let other = question::path_ref(context, &self.path(context));
        let operation = match self.below(12) {
            0 => FileOperation::Write(Content::Text(text)),
            1 => FileOperation::Write(Content::Unknown),
            2 => FileOperation::Write(Content::Binary(7)),
            3 => FileOperation::Edit(vec![TextEdit { old: text.clone(), new: text }]),
            4 => FileOperation::List,
            5 => FileOperation::Search(SearchQuery { pattern: self.text(), glob: Some(self.text()) }),
            6 => FileOperation::Move(other),
            7 => FileOperation::Link(other),
            8 => FileOperation::Symlink(self.text()),
            9 => FileOperation::Delete,
            10 => FileOperation::CreateDirectory,
            _ => FileOperation::Read,
        };
        let mut path = question::path_ref(context, &self.path(context));
        let kinds = [PathKind::File, PathKind::Directory, PathKind::Missing, PathKind::Symlink];
        path.kind = self.pick(&kinds, PathKind::Other);
        Action::File(FileAccess { path, operation, facts: FileFacts::default() })
    }

    fn connection(&mut self) -> Action {
        // The host puts only valid host names to a policy.
        let name = format!("{}{}", self.pick(&["", "", "not", "sub."], ""), self.pick(&HOSTS, "a"));
        let host = HostName::parse(&name).or_else(|_| HostName::parse("example.com"));
        let Ok(target) = host else { return Action::Command(question::execution("", &self.context())) };
        let program = self.pick(&["/usr/bin/curl", "/usr/bin/git", "", "/srv/app/x y"], "").to_owned();
        Action::Network(NetworkAccess {
            transport: Transport::Tcp,
            direction: Direction::Outbound,
            target,
            port: self.pick(&[443, 80, 22, 1, u16::MAX], 443),
            stage: Stage::Connect,
            process: ProcessInfo { pid: 2, argv: vec![program.clone(), self.text()], program },
        })
    }

    fn output(&mut self, request: Request) -> ToolOutput {
        ToolOutput {
            request,
            is_error: self.one_in(2),
            truncated: self.one_in(2),
            content: vec![ContentBlock::Text(self.text()), ContentBlock::Text(self.text())],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(seed: u64) -> Vec<Request> {
        let mut dice = RandomNumbers::new(seed);
        (0..200)
            .map(|_| {
                let context = dice.context();
                dice.request(&context)
            })
            .collect()
    }

    #[test]
    fn a_seed_asks_the_same_and_another_asks_otherwise() {
        assert_eq!(requests(1), requests(1));
        assert_ne!(requests(1), requests(2));
    }

    #[test]
    fn paths_are_as_the_host_hands_them_over() {
        for request in requests(3) {
            let Action::File(access) = request.action else { continue };
            let path = access.path.canonical;
            let parts = path.strip_prefix('/').unwrap().split('/');
            assert!(path == "/" || parts.clone().all(|part| !["", ".", ".."].contains(&part)), "{path}");
        }
    }
}
