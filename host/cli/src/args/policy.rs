//! Arguments of `policy`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

pub(crate) const POLICY_HELP: &str = "\
A policy is a folder with a `policy.toml`, or the `.wasm` file that `policy build` makes of it.

Examples:
  portcullis policy new my-policy --lang rust
  portcullis policy build my-policy
  portcullis policy test my-policy
  portcullis policy inspect my-policy/build/my-policy.wasm
  portcullis policy sign my-policy/build/my-policy.wasm --key ~/.ssh/id_ed25519
  portcullis policy add acme:guard";

const NEW_HELP: &str = "\
Rust needs cargo and `rustup target add wasm32-unknown-unknown`; JavaScript needs Node and npm; Python needs \
python3 with pip. `policy build` fetches the rest from crates.io, npm or PyPI.

Examples:
  portcullis policy new no-publish --lang rust
  portcullis policy new no-publish --lang js --id acme:no-publish      # or python, c";

const TEST_HELP: &str = "\
Runs the cases of the manifest against the built component, on the engine that enforces it. A component that is \
older than its source is refused. The exit status is 0 when all cases hold, 1 when one does not.
With --from-log nothing is run: what the policy said to the requests of a log is printed as a file of cases.

Examples:
  portcullis policy test my-policy
  portcullis policy test --json my-policy/build/my-policy.wasm
  portcullis policy test --cases more/ --junit report.xml my-policy
  portcullis policy test my-policy --from-log LOG > my-policy/tests/seen.toml";

const BENCH_HELP: &str = "\
The requests are those of the policy's cases. Each call runs in a fresh copy, as every decision does. Two \
policies are measured in turns, so a busy machine is equally busy for both.

Examples:
  portcullis policy bench my-policy
  portcullis policy bench old.wasm new.wasm --rounds 2000 --json";

const RUN_HELP: &str = "\
Puts one request to one policy, in the context of this directory, and prints the verdict with all that the policy \
tells of its way to it. Paths are taken as they are written: links are not followed.
What the settings and all policies together make of a request is shown by `portcullis check`.
The exit status is 0 for allow, 10 for ask or no opinion, 20 for deny.

Examples:
  portcullis policy run my-policy exec 'git push --force'
  portcullis policy run --config '{\"allow\":[]}' policy.wasm read /etc/shadow --json";

const FUZZ_HELP: &str = "\
Puts lawful requests of every kind to the policy, made by chance, and looks for those that it fails on: traps, \
answers that break the contract, time and memory, rules that it does not declare. The exit status is 1 when there \
is one. With the same seed and number of runs the requests are the same.

Examples:
  portcullis policy fuzz my-policy --seconds 60
  portcullis policy fuzz policy.wasm --runs 5000 --seed 7 --json";

const LINT_HELP: &str = "\
Puts odd but lawful questions to the policy, and compares what it says with its own rules. The exit status is \
1 when it breaks the contract; with --strict also when there is a warning.

Examples:
  portcullis policy lint my-policy
  portcullis policy lint --config '{\"allow\":[]}' policy.wasm --json";

const REPLAY_HELP: &str = "\
Every decision of the log is taken again, with today's settings or with other policies, and those that would \
be different are shown. Policies get the context of that time: project, home, time, agent, whether a user \
was there, and the grants that lived. The user is not asked again: what was asked about counts as asked.
Secrets are masked in logs and long texts cut, so a policy that looks for them may say something else; how many \
decisions that concerns is told, and so is how many have no context, which are then taken in that of this directory.
The exit status is 1 with --forbid-loosening when something that was asked or denied would be allowed.

Examples:
  portcullis policy replay ~/.local/state/portcullis/audit/3f9c21d00a1b2c3d.jsonl
  portcullis policy replay --policy new.wasm LOG --json";

const OBSERVE_HELP: &str = "\
Puts what is decided on this machine to a policy that does not count, and shows what it says beside what was \
decided: from the log, in the context that the log holds. To have a session itself hear a policy without letting it \
count, give it `\"mode\": \"observe\"` in the settings.

Examples:
  portcullis policy observe my-policy -f
  portcullis policy observe strict.wasm -n 200 --json";

const DIFF_HELP: &str = "\
The requests are those of both policies' cases, and of logs if named. The exit status is 1 with \
--forbid-loosening when the new policy allows, or asks about, what the old one did not.

Examples:
  portcullis policy diff old.wasm new.wasm
  portcullis policy diff old.wasm new.wasm --log LOG --forbid-loosening";

#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Begin a policy: a folder with a working example, its cases and all that is needed to build it
    #[command(after_help = NEW_HELP)]
    New(New),
    /// Build a component, and put manifest, schema, cases and texts into it
    #[command(
        after_help = "Examples:\n  portcullis policy build my-policy\n  portcullis policy build my-policy -o strict.wasm --json"
    )]
    Build(Build),
    /// Run the cases
    #[command(after_help = TEST_HELP)]
    Test(Test),
    /// Put one request to a policy
    #[command(after_help = RUN_HELP)]
    Run(RunOnce),
    /// Measure how long decisions take
    #[command(after_help = BENCH_HELP)]
    Bench(Bench),
    /// Look for what breaks the contract
    #[command(after_help = LINT_HELP)]
    Lint(Lint),
    /// Put requests made by chance to a policy
    #[command(after_help = FUZZ_HELP)]
    Fuzz(Fuzz),
    /// Show what a component is, wants and carries
    #[command(
        after_help = "Examples:\n  portcullis policy inspect my-policy\n  portcullis policy inspect --json guard.wasm"
    )]
    Inspect(Inspect),
    /// Take the decisions of a log again
    #[command(after_help = REPLAY_HELP)]
    Replay(Replay),
    /// Show what a policy says to what is being decided
    #[command(after_help = OBSERVE_HELP)]
    Observe(Observe),
    /// Show what a new version of a policy would decide otherwise
    #[command(after_help = DIFF_HELP)]
    Diff(Diff),
    #[command(flatten)]
    Share(super::share::Share),
}

/// The language of a new policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// Rust, with the SDK
    Rust,
    /// JavaScript, with types
    Js,
    /// Python
    Python,
    /// C, without a C library
    C,
}

#[derive(Debug, Args)]
pub(crate) struct New {
    /// The folder to make; its name becomes that of the policy
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// The language
    #[arg(long, value_enum)]
    pub(crate) lang: Language,
    /// `namespace:name`; `local:` and the folder's name by default
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Build {
    /// The policy's folder
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Where the component goes; `build/NAME.wasm` in the folder by default
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Test {
    /// The policy's folder, or a component
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    pub(crate) policy: PathBuf,
    /// Cases in place of the policy's own: a file, or a folder of files
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) cases: Option<PathBuf>,
    /// Print the requests of this log, and what the policy said to them, as cases
    #[arg(long, value_name = "LOG", conflicts_with_all = ["cases", "junit", "json"])]
    pub(crate) from_log: Option<PathBuf>,
    /// The configuration that those cases are given, as JSON: what it was when the log was written
    #[arg(long, value_name = "JSON", default_value = "{}", requires = "from_log")]
    pub(crate) config: String,
    /// Write a report for build servers
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunOnce {
    /// The policy's folder, or a component
    #[arg(value_name = "DIR|FILE")]
    pub(crate) policy: PathBuf,
    /// Configuration, as JSON
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) config: String,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) action: super::action::Action,
}

#[derive(Debug, Args)]
pub(crate) struct Fuzz {
    /// The policy's folder, or a component
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    pub(crate) policy: PathBuf,
    /// Configuration, as JSON
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) config: String,
    /// How long
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) seconds: u32,
    /// How many requests, however long that takes
    #[arg(long, value_name = "COUNT", conflicts_with = "seconds")]
    pub(crate) runs: Option<u64>,
    /// Ask what was asked with this seed before
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// The policy's folder, or a component
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    pub(crate) policy: PathBuf,
    /// Another one to compare it with
    #[arg(value_name = "DIR|FILE")]
    pub(crate) other: Option<PathBuf>,
    /// How many calls are measured
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) rounds: u32,
    /// Configuration, as JSON
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) config: String,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Lint {
    /// The policy's folder, or a component
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    pub(crate) policy: PathBuf,
    /// Configuration, as JSON
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) config: String,
    /// Let warnings count as errors
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// The policy's folder, or a component
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    pub(crate) policy: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    #[command(flatten)]
    pub(crate) sources: super::action::Sources,
    /// The log of a session
    #[arg(value_name = "LOG")]
    pub(crate) log: PathBuf,
    /// End with 1 when something would be let through that was not
    #[arg(long)]
    pub(crate) forbid_loosening: bool,
    /// Print one JSON object for each difference
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Observe {
    /// The policy's folder, or a component
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    pub(crate) policy: PathBuf,
    /// Configuration, as JSON
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) config: String,
    /// Go on with what is added
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// How many records of the log to begin with
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    pub(crate) lines: usize,
    /// Print one JSON object for each decision
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// The policy's folder, or a component
    #[arg(value_name = "OLD")]
    pub(crate) old: PathBuf,
    /// The other one
    #[arg(value_name = "NEW")]
    pub(crate) new: PathBuf,
    /// Take the requests of this log, too; may be given several times
    #[arg(long = "log", value_name = "LOG")]
    pub(crate) logs: Vec<PathBuf>,
    /// Configuration of both, as JSON
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) config: String,
    /// End with 1 when something would be let through that was not
    #[arg(long)]
    pub(crate) forbid_loosening: bool,
    /// Print one JSON object for each difference
    #[arg(long)]
    pub(crate) json: bool,
}
