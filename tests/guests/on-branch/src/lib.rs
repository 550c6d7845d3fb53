//! A policy for contract 0.2 that protects the branch `main`: `git push` is denied there, and so is writing
//! `RELEASE` in the project. It uses every export of the contract and every function that the host provides.

wit_bindgen::generate!({ path: "../../../wit/0.2", world: "full-policy" });

use exports::portcullis::policy::{confinement, evaluator, lifecycle, orientation, output_filter};
use portcullis::policy::commands::CommandExecution;
use portcullis::policy::facts::{Context, VcsParts};
use portcullis::policy::files::{FilePattern, FileRights};
use portcullis::policy::network::AddressClass;
use portcullis::policy::requests::{Action, ActionKinds, Fact, Request, ToolOutput};
use portcullis::policy::tools::ContentBlock;
use portcullis::policy::verdicts::{
    Allowance, Cause, Denial, Effect, Evaluation, Obligation, OutputVerdict, Replacement, Reservation,
    ReservedUntil, TraceStep, Verdict,
};
use portcullis::policy::{log, net_tools, path_tools};

const PROTECTED: &str = "main";

struct Component;

impl lifecycle::Guest for Component {
    fn describe() -> lifecycle::Descriptor {
        lifecycle::Descriptor {
            id: "test:on-branch".into(),
            version: "0.2.0".into(),
            title: "Protects main".into(),
            handles: ActionKinds::COMMAND | ActionKinds::TOOL,
            rules: vec![lifecycle::RuleInfo { id: "branch.main".into(), title: "No push".into(), help: None }],
            config_schema: None,
            capabilities: lifecycle::Capabilities::OUTPUT,
            depends_on: VcsParts::BRANCH,
        }
    }

    fn configure(config: String) -> Result<(), Vec<lifecycle::ConfigError>> {
        log::log(log::Level::Debug, "configured");
        if config == "{}" {
            return Ok(());
        }
        Err(vec![lifecycle::ConfigError { pointer: None, message: "there is nothing to configure".into() }])
    }
}

fn cause(reason: impl Into<String>) -> Cause {
    Cause { rule: "branch.main".into(), reason: reason.into(), setting: None }
}

fn branch(context: &Context) -> Option<&str> {
    context.workspace.vcs.as_ref()?.branch.as_deref()
}

fn pushes(command: &CommandExecution) -> bool {
    let Ok(script) = &command.parsed else { return true };
    script.commands.iter().any(|command| {
        let mut words = command.argv.iter().map(|word| word.value.as_str());
        words.next() == Some("git") && words.any(|word| word == "push")
    })
}

/// Returns which function of the host gave an answer that the contract does not allow.
fn faults() -> Vec<&'static str> {
    [
        ("is-within", path_tools::is_within("/a/b", "/a") && !path_tools::is_within("/ab", "/a")),
        ("normalize", path_tools::normalize("x/../y", "/a") == "/a/y"),
        ("glob-match", path_tools::glob_match("**/*.rs", "/x/y.rs") == Ok(true)),
        ("host-match", net_tools::host_match("*.a.test", "b.a.test") == Ok(true)),
        ("cidr-contains", net_tools::cidr_contains("10.0.0.0/8", "10.1.2.3") == Ok(true)),
        ("classify", net_tools::classify("127.0.0.1") == Ok(AddressClass::Loopback)),
        ("classify refuses", net_tools::classify("a.test").is_err()),
    ]
    .into_iter()
    .filter_map(|(name, holds)| (!holds).then_some(name))
    .collect()
}

impl evaluator::Guest for Component {
    fn evaluate(request: Request, context: Context) -> Evaluation {
        log::log(log::Level::Info, "asked");
        let verdict = match &request.action {
            Action::Command(command) if pushes(command) && branch(&context) == Some(PROTECTED) => {
                let hint = Some("push another branch".into());
                Verdict::Deny(Denial { cause: cause("main is protected"), hint })
            }
            Action::Command(_) => {
                Verdict::Allow(Allowance { cause: cause("no push to main"), obligations: Vec::new() })
            }
            // Tests of the types: every function of the host, a fact, and a claim.
            Action::Tool(_) => {
                let faults = faults();
                let sent = request.facts.iter().find_map(|fact| match fact {
                    Fact::SentKib(kib) => Some(*kib),
                    _ => None,
                });
                let reservation = Reservation { paths: vec!["/srv/a".into()], until: ReservedUntil::Call };
                Verdict::Allow(Allowance {
                    cause: cause(format!("{} {sent:?}", faults.join(","))),
                    obligations: vec![Obligation::Reserve(reservation)],
                })
            }
            _ => Verdict::Abstain,
        };
        let step = TraceStep { rule: "branch.main".into(), matched: false, detail: None };
        Evaluation { verdict, trace: if context.explain { vec![step] } else { Vec::new() } }
    }
}

impl confinement::Guest for Component {
    fn standing(context: Context) -> confinement::Profile {
        let root = context.workspace.roots.first().map_or("/", String::as_str);
        let rule = confinement::FileRule {
            id: "branch.main".into(),
            pattern: FilePattern::Exact(format!("{root}/RELEASE")),
            rights: FileRights::WRITE,
            effect: Effect::Deny,
            conceal: false,
            reason: "main is protected".into(),
            setting: None,
        };
        confinement::Profile {
            files: if branch(&context) == Some(PROTECTED) { vec![rule] } else { Vec::new() },
            network: Vec::new(),
            budgets: Vec::new(),
            environment: Vec::new(),
            variables: Vec::new(),
            limits: confinement::Limits {
                wall_ms: None,
                cpu_ms: None,
                memory_mib: None,
                processes: None,
                open_files: None,
                file_mib: None,
                output_kib: None,
            },
            reservations: false,
            attributes: Vec::new(),
        }
    }

    fn for_command(_request: Request, _context: Context) -> Option<confinement::Profile> {
        None
    }
}

impl output_filter::Guest for Component {
    fn inspect(output: ToolOutput, _context: Context) -> OutputVerdict {
        let has = |word: &str| {
            output.content.iter().any(|block| matches!(block, ContentBlock::Text(text) if text.contains(word)))
        };
        if has("deny-me") {
            OutputVerdict::Deny(cause("asked to"))
        } else if has("replace-me") {
            let content = output.content.iter().map(|_| ContentBlock::Text("replaced".into())).collect();
            OutputVerdict::Replace(Replacement { cause: cause("asked to"), content })
        } else if has("allow-me") {
            OutputVerdict::Allow(cause("asked to"))
        } else {
            OutputVerdict::Abstain
        }
    }
}

impl orientation::Guest for Component {
    /// Tells which facts it was given.
    fn brief(context: Context) -> Option<String> {
        let vcs = context.workspace.vcs?;
        Some(format!("{:?} {:?} {:?} {}", vcs.branch, vcs.head, vcs.dirty, vcs.remotes.len()))
    }
}

export!(Component);
