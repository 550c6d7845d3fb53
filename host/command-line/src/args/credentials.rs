//! Arguments of `credentials`.

use clap::{ArgGroup, Args, Subcommand, ValueEnum};

use super::config::SettingsChoice;

pub(crate) const CREDENTIALS_HELP: &str = "\
Commands use these credentials without having them: they get a placeholder, and the gate puts the credential into \
requests to its host. Nothing here prints a credential.

Examples:
  portcullis credentials suggest
  portcullis credentials list
  portcullis credentials test";

const TEST_HELP: &str = "\
A request that changes nothing is sent to the server, with the credential and without it: GET for credentials of \
requests, git-upload-pack for hosts of ssh. A key to sign with signs a trial. Nothing of the answers is printed.

Examples:
  portcullis credentials test
  portcullis credentials test github --path /user
  portcullis credentials test --project ~/src/site --settings site.json
  portcullis credentials test github-ssh --path me/proj.git";

const ADD_HELP: &str = "\
The entry is written to your settings for all projects. For a service that Portcullis knows, the name is enough: \
github, github-git, gitlab, gitlab-git, npm, openai, anthropic, gemini, openrouter, huggingface. Such an entry only \
reads, except that model services are used. The credential itself stays where it is, and is read when a \
command first needs it.

Examples:
  portcullis credentials add github
  portcullis credentials add ci --host ci.example.com --env CI_KEY --for 'GET /**' --variable CI_KEY
  portcullis credentials add hub --host api.github.com --command 'gh auth token' --for 'GET /**'
  portcullis credentials add forge --host git.test --pass forge --form basic --git --for '* /me/**'
  portcullis credentials add s3 --form aws --aws-profile me --host s3.amazonaws.com --for 'GET /**'
  portcullis credentials add github-ssh --ssh --host github.com --user git --fetch 'me/*'
  portcullis credentials add sign --sign ~/.ssh/id_ed25519.pub";

/// The verbs of `credentials`.
#[derive(Debug, Subcommand)]
pub enum Credentials {
    /// Show the credentials that commands here can use
    #[command(after_help = "Example:\n  portcullis credentials list --json")]
    List {
        /// The settings.
        #[command(flatten)]
        settings: SettingsChoice,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Propose entries for the credentials that you have; copies none
    #[command(after_help = "Example:\n  portcullis credentials suggest")]
    Suggest {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Let commands use a credential
    #[command(after_help = ADD_HELP)]
    Add(Box<Add>),
    /// Ask the servers whether they accept the credentials
    ///
    /// The exit status is 1 if one does not work.
    #[command(after_help = TEST_HELP)]
    Test {
        /// The credential; all of them by default
        #[arg(value_name = "NAME")]
        name: Option<String>,
        /// The path of the request; of a host of ssh, the repository
        #[arg(long, value_name = "PATH", requires = "name")]
        path: Option<String>,
        /// The settings.
        #[command(flatten)]
        settings: SettingsChoice,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Take a credential out of your settings for all projects
    #[command(after_help = "Example:\n  portcullis credentials remove github")]
    Remove {
        /// The credential
        #[arg(value_name = "NAME")]
        name: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// Arguments of `credentials add`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("source").args(["env", "file", "command", "pass", "secret_tool", "aws_profile"])))]
pub struct Add {
    /// Its name; that of a known service provides what is not given
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The host that it is sent to, with a port if it is not 443
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// Read it from this variable of your environment
    #[arg(long, value_name = "VARIABLE")]
    pub env: Option<String>,
    /// Read it from this file, absolute or below `~`
    #[arg(long, value_name = "FILE")]
    pub file: Option<String>,
    /// Read it from the output of this program; its words are separated by spaces
    #[arg(long, value_name = "COMMAND")]
    pub command: Option<String>,
    /// Read it from this entry of `pass`
    #[arg(long, value_name = "ENTRY")]
    pub pass: Option<String>,
    /// Read it with `secret-tool lookup` and these attributes and values, separated by spaces
    #[arg(long, value_name = "ATTRIBUTES")]
    pub secret_tool: Option<String>,
    /// For `aws`: read the keys from this profile in `~/.aws/credentials`
    #[arg(long, value_name = "PROFILE")]
    pub aws_profile: Option<String>,
    /// Its place in a request; by default `bearer`
    #[arg(long, value_enum, value_name = "FORM")]
    pub form: Option<Form>,
    /// Let git reach the host by your own `ssh`; a push needs an entry in `network.pushes` as well
    #[arg(long, requires = "host", conflicts_with_all = ["source", "form", "header", "purpose", "variables", "git", "services", "regions"])]
    pub ssh: bool,
    /// For `--ssh`: the repositories to fetch from, such as `me/*`; may be given several times
    #[arg(long, value_name = "REPOSITORIES", requires = "ssh")]
    pub fetch: Vec<String>,
    /// Have commits and tags signed outside: the path of a public key of ssh, or a key of gpg
    #[arg(long, value_name = "KEY", conflicts_with_all = ["source", "ssh", "host", "form", "user", "header", "purpose", "variables", "git", "services", "regions"])]
    pub sign: Option<String>,
    /// For `basic` and `--ssh`: the user name; by default the one that the command sends
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// For `header`: the name of the header
    #[arg(long, value_name = "HEADER", required_if_eq("form", "header"))]
    pub header: Option<String>,
    /// For `aws`: a service that requests are signed for, such as `s3`; by default all; may be given several times
    #[arg(long = "service", value_name = "SERVICE")]
    pub services: Vec<String>,
    /// For `aws`: a region that requests are signed for; by default all; may be given several times
    #[arg(long = "region", value_name = "REGION")]
    pub regions: Vec<String>,
    /// The requests that it is for, such as `GET,HEAD /repos/**`; may be given several times
    #[arg(long = "for", value_name = "REQUESTS")]
    pub purpose: Vec<String>,
    /// A variable of commands that holds the placeholder; may be given several times
    #[arg(long = "variable", value_name = "VARIABLE")]
    pub variables: Vec<String>,
    /// For `basic`: let git inside use it for this host
    #[arg(long)]
    pub git: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The place of a credential in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// `Authorization: Bearer`
    Bearer,
    /// `Authorization: Basic`, as the password
    Basic,
    /// A header of its own
    Header,
    /// A signature of AWS, made with keys
    Aws,
}

impl Form {
    /// Returns the word in the settings.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Bearer => "bearer",
            Self::Basic => "basic",
            Self::Header => "header",
            Self::Aws => "aws",
        }
    }
}
