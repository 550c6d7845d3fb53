//! Arguments of `policy`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

pub(crate) const POLICY_HELP: &str = "\
A policy is a folder with a `policy.toml`, the `.wasm` file that `policy build` makes from it, or a text in Cedar or \
Rego (`.cedar`, `.rego`), which needs neither.

Examples:
  portcullis policy run team.cedar exec 'git push'
  portcullis policy new my-policy --lang rust
  portcullis policy build my-policy
  portcullis policy test my-policy
  portcullis policy inspect my-policy/build/my-policy.wasm
  portcullis policy sign my-policy/build/my-policy.wasm --key ~/.ssh/id_ed25519
  portcullis policy add acme:guard";

const NEW_HELP: &str = "\
Rust needs cargo and `rustup target add wasm32-unknown-unknown`; JavaScript needs Node and npm; Python needs \
python3 with pip, and so do C without clang and Go without go 1.25. `policy build` fetches the rest from crates.io, npm or PyPI. A text in Cedar or Rego needs no folder.

Examples:
  portcullis policy new no-publish --lang rust
  portcullis policy new no-publish --lang js --id acme:no-publish      # or python, c, go";

const TEST_HELP: &str = "\
Runs the cases of the manifest against the built component, on the engine that enforces it. A component that is \
older than its source is refused. A case fails if its answer needs a capability that the manifest does not ask for. \
The exit status is 0 if all cases pass, 1 if one fails.
With --from-log, it runs nothing: it prints the policy's recorded answers to the requests of a log, as cases.

Examples:
  portcullis policy test my-policy
  portcullis policy test --json my-policy/build/my-policy.wasm
  portcullis policy test --cases more/ --junit report.xml my-policy
  portcullis policy test team.cedar --cases cases.toml
  portcullis policy test my-policy --from-log LOG > my-policy/tests/seen.toml";

const WATCH_HELP: &str = "\
Builds, tests and lints the policy, and does so again after each edit of its manifest, its source or its cases, until \
you press Ctrl+C. It builds only if the source has changed.

Examples:
  portcullis policy watch my-policy
  portcullis policy watch my-policy --json";

const TRY_HELP: &str = "\
Reads requests from standard input, one a line, and prints the answers that `policy run` gives: `read PATH`, \
`write PATH`, `edit PATH`, `list PATH`, `search PATH`, `exec SCRIPT`, `connect HOST:PORT`, or `tool NAME JSON`. Nothing \
is quoted: the rest of the line is the path or the script. If the component is built again meanwhile, as by \
`policy watch`, the next request gets the new one. The exit status is 1 if a line was no request.

Examples:
  portcullis policy try my-policy
  echo 'exec npm publish' | portcullis policy try my-policy --json";

const BENCH_HELP: &str = "\
Measures the requests of the policy's cases, including those on standing rules. Each call runs in a fresh instance, as \
in a session. Two policies are measured in turns, so that load on the machine affects both equally.

Examples:
  portcullis policy bench my-policy
  portcullis policy bench old.wasm new.wasm --rounds 2000 --json";

const RUN_HELP: &str = "\
Sends one request to one policy, in the context of this directory, and prints the policy's own answer: the stricter of \
its verdict and its standing rules. The last line is the decision with your settings, with this policy added. \
Paths are used as written: links are not followed.
To see what the settings decide without it, use `portcullis check`.
The exit status is the policy's own answer: 0 for allow, 10 for ask or no opinion, 20 for deny.

Examples:
  portcullis policy run my-policy exec 'git push --force'
  portcullis policy run --config '{\"allow\":[]}' policy.wasm read /etc/shadow --json";

const FUZZ_HELP: &str = "\
Sends random valid requests of every kind to the policy, and looks for failures: traps, answers that break the \
contract, too much time or memory, rules that it does not declare. The exit status is 1 if it finds one. The same seed \
and number of runs give the same requests.

Examples:
  portcullis policy fuzz my-policy --seconds 60
  portcullis policy fuzz policy.wasm --runs 5000 --seed 7 --json";

const LINT_HELP: &str = "\
Sends unusual but valid requests to the policy, and compares its verdicts with its own rules and the capabilities in \
its manifest. The exit status is \
1 if it breaks the contract; with --strict, also if there is a warning.

Examples:
  portcullis policy lint my-policy
  portcullis policy lint team.cedar
  portcullis policy lint --config '{\"allow\":[]}' policy.wasm --json";

const REPLAY_HELP: &str = "\
Decides every request of the log again, with today's settings or with other policies, and shows the decisions that \
would be different. Policies get the context of that time: project, home, time, agent, whether a user could be asked, \
and the live grants. The user is not asked again: a question counts as asked.
Logs mask secrets and cut long texts, so a policy that looks for them may answer differently. The report counts these \
decisions, and those without a recorded context, which are decided in the context of this directory.
With --forbid-loosening, the exit status is 1 if a decision would be less strict.

Examples:
  portcullis policy replay ~/.local/state/portcullis/audit/3f9c21d00a1b2c3d.jsonl
  portcullis policy replay --policy new.wasm LOG --json";

const OBSERVE_HELP: &str = "\
Sends the requests in this machine's logs to a policy, in their recorded context, and shows its answers beside the \
actual decisions. The answers do not count. To let a session itself call a policy without counting its answers, give \
it `\"mode\": \"observe\"` in the settings.

Examples:
  portcullis policy observe my-policy -f
  portcullis policy observe strict.wasm -n 200 --json";

const DIFF_HELP: &str = "\
Compares the standing rules of both versions for all paths, hosts and names. Also compares their answers to requests: \
those in the cases of both, those in the logs that you name, and random ones. `looser` means that a decision can \
become less strict, alone or beside another policy that allows the request. With --forbid-loosening, the exit status \
is then 1.

Examples:
  portcullis policy diff old.wasm new.wasm
  portcullis policy diff old.wasm new.wasm --log LOG --forbid-loosening";

/// The verbs of `policy`.
#[derive(Debug, Subcommand)]
pub enum Policy {
    /// Create a policy: a folder with a working example, its cases and everything needed to build it
    #[command(after_help = NEW_HELP)]
    New(New),
    /// Build a component, and embed its manifest, schema, cases and texts
    #[command(
        after_help = "Examples:\n  portcullis policy build my-policy\n  portcullis policy build my-policy -o strict.wasm --json"
    )]
    Build(Build),
    /// Run the cases of a policy
    #[command(after_help = TEST_HELP)]
    Test(Test),
    /// Send one request to a policy
    #[command(after_help = RUN_HELP)]
    Run(RunOnce),
    /// Send requests to a policy, one a line
    #[command(after_help = TRY_HELP)]
    Try(Try),
    /// Build, test and lint a policy after each edit
    #[command(after_help = WATCH_HELP)]
    Watch(Watch),
    /// Measure how long decisions take
    #[command(after_help = BENCH_HELP)]
    Bench(Bench),
    /// Check that a policy keeps the contract
    #[command(after_help = LINT_HELP)]
    Lint(Lint),
    /// Send random requests to a policy
    #[command(after_help = FUZZ_HELP)]
    Fuzz(Fuzz),
    /// Show a component's name, capabilities and sections
    #[command(
        after_help = "Examples:\n  portcullis policy inspect my-policy\n  portcullis policy inspect --json guard.wasm"
    )]
    Inspect(Inspect),
    /// Decide the requests of a log again
    #[command(after_help = REPLAY_HELP)]
    Replay(Replay),
    /// Show a policy's answers beside the actual decisions
    #[command(after_help = OBSERVE_HELP)]
    Observe(Observe),
    /// Show where a new version of a policy decides differently
    #[command(after_help = DIFF_HELP)]
    Diff(Diff),
    /// A verb that shares packs.
    #[command(flatten)]
    Share(super::share::Share),
}

/// The language of a new policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// Rust, with the SDK
    Rust,
    /// JavaScript, with types
    Js,
    /// Python
    Python,
    /// C, without a C library
    C,
    /// Go
    Go,
}

/// Arguments of `policy new`.
#[derive(Debug, Args)]
pub struct New {
    /// The folder to create; its name becomes the policy's name
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// The language
    #[arg(long, value_enum)]
    pub lang: Language,
    /// `namespace:name`; `local:` and the folder's name by default
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `policy build`.
#[derive(Debug, Args)]
pub struct Build {
    /// The policy's folder
    #[arg(value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,
    /// The component to write; `build/NAME.wasm` in the folder by default
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `policy test`.
#[derive(Debug, Args)]
pub struct Test {
    /// The policy's folder, a component, or a text in Cedar or Rego
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    pub policy: PathBuf,
    /// Run these cases instead of the policy's own: a file, or a folder of files
    #[arg(long, value_name = "FILE|DIR")]
    pub cases: Option<PathBuf>,
    /// Print the requests of this log, and the policy's recorded answers, as cases
    #[arg(long, value_name = "LOG", conflicts_with_all = ["cases", "junit", "json"])]
    pub from_log: Option<PathBuf>,
    /// The configuration of those cases, as JSON: the one in force when the log was written
    #[arg(long, value_name = "JSON", default_value = "{}", requires = "from_log")]
    pub config: String,
    /// Write a report for build servers
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Also show what the policy prints in cases that hold; in others it is always shown
    #[arg(short, long, conflicts_with = "json")]
    pub verbose: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `policy run`.
#[derive(Debug, Args)]
pub struct RunOnce {
    /// The policy's folder, a component, or a text in Cedar or Rego
    #[arg(value_name = "DIR|FILE")]
    pub policy: PathBuf,
    /// Configuration, as JSON
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub config: String,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub json: bool,
    /// The action to decide about.
    #[command(subcommand)]
    pub action: super::action::Action,
}

/// Arguments of `policy try`.
#[derive(Debug, Args)]
pub struct Try {
    /// The policy's folder, or a component
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    pub policy: PathBuf,
    /// Configuration, as JSON
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub config: String,
    /// Print one JSON object for each request
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `policy watch`.
#[derive(Debug, Args)]
pub struct Watch {
    /// The policy's folder
    #[arg(value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,
    /// Configuration for `lint`, as JSON
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub config: String,
    /// Print JSON objects: of the build, the cases and the findings of each round
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `policy fuzz`.
#[derive(Debug, Args)]
pub struct Fuzz {
    /// The policy's folder, a component, or a text in Cedar or Rego
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    pub policy: PathBuf,
    /// Configuration, as JSON
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub config: String,
    /// How long to run
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub seconds: u32,
    /// Number of requests, without a time limit
    #[arg(long, value_name = "COUNT", conflicts_with = "seconds")]
    pub runs: Option<u64>,
    /// Repeat the requests of an earlier run with this seed
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `policy bench`.
#[derive(Debug, Args)]
pub struct Bench {
    /// The policy's folder, a component, or a text in Cedar or Rego
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    pub policy: PathBuf,
    /// Another policy to compare it with
    #[arg(value_name = "DIR|FILE")]
    pub other: Option<PathBuf>,
    /// Number of calls to measure
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rounds: u32,
    /// Configuration, as JSON
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub config: String,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `policy lint`.
#[derive(Debug, Args)]
pub struct Lint {
    /// The policy's folder, a component, or a text in Cedar or Rego
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    pub policy: PathBuf,
    /// Configuration, as JSON
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub config: String,
    /// Treat warnings as errors
    #[arg(long)]
    pub strict: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `policy inspect`.
#[derive(Debug, Args)]
pub struct Inspect {
    /// The policy's folder, a component, or a text in Cedar or Rego
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    pub policy: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `policy replay`.
#[derive(Debug, Args)]
pub struct Replay {
    /// The settings and policies that decide.
    #[command(flatten)]
    pub sources: super::action::Sources,
    /// The log of a session
    #[arg(value_name = "LOG")]
    pub log: PathBuf,
    /// Exit with status 1 if a decision would be less strict
    #[arg(long)]
    pub forbid_loosening: bool,
    /// Print one JSON object for each difference
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `policy observe`.
#[derive(Debug, Args)]
pub struct Observe {
    /// The policy's folder, a component, or a text in Cedar or Rego
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    pub policy: PathBuf,
    /// Configuration, as JSON
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub config: String,
    /// Keep printing new decisions
    #[arg(short, long)]
    pub follow: bool,
    /// Number of decisions to begin with
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    pub lines: usize,
    /// Print one JSON object for each decision
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `policy diff`.
#[derive(Debug, Args)]
pub struct Diff {
    /// The old policy: its folder, a component, or a text
    #[arg(value_name = "OLD")]
    pub old: PathBuf,
    /// The new policy: its folder, a component, or a text
    #[arg(value_name = "NEW")]
    pub new: PathBuf,
    /// Also use the requests of this log; may be given several times
    #[arg(long = "log", value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// Configuration of both, as JSON
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub config: String,
    /// Exit with status 1 if a decision would be less strict
    #[arg(long)]
    pub forbid_loosening: bool,
    /// Print one JSON object for each difference
    #[arg(long)]
    pub json: bool,
}
