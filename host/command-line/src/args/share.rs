//! Arguments of the verbs of `policy` that share packs.

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub(crate) const ADD_HELP: &str = "\
WHAT is a file, a name (`acme:guard`, `acme:guard@^1.2`) of a publisher whom you trust (`policy trust`), or \
an artifact (`oci://ghcr.io/acme/policies/acme/guard:1.2.0`). The pack is added to the lock, and used once the \
settings have `{ \"use\": \"acme:guard\" }`. If a pack is refused, nothing changes and the exit status is 1.

Examples:
  portcullis policy add acme:guard
  portcullis policy add acme:guard@^1.2 --allow output
  portcullis policy add ./my-policy/build/my-policy.wasm --unsigned
  portcullis policy add --lock ../team/.portcullis/policy.lock";

pub(crate) const UPDATE_HELP: &str = "\
Installs the newest version of each pack within the range that `add` was given (`@^1.2`): all of them, or none.

Examples:
  portcullis policy update
  portcullis policy update acme:guard";

pub(crate) const SIGN_HELP: &str = "\
`ssh-keygen -Y sign` makes the signature, with a key in a file, in ssh-agent or on a hardware token, and writes it \
beside the file as `FILE.sig`. Several people may sign one file. minisign's signatures are written as `FILE.minisig`.

Examples:
  portcullis policy sign build/guard.wasm --key ~/.ssh/id_ed25519
  portcullis policy sign build/guard.wasm --minisign ~/.minisign/minisign.key";

pub(crate) const VERIFY_HELP: &str = "\
Shows what `policy add` would decide, and changes nothing. The exit status is 1 if the pack would be refused.

Examples:
  portcullis policy verify build/guard.wasm
  portcullis policy verify build/guard.wasm --json";

pub(crate) const PUSH_HELP: &str = "\
Without TO, the pack goes to its publisher's registry, which the trust file names. A version that exists there with \
other bytes is not overwritten. Credentials come from `docker login`; only registries on this machine are used without \
TLS.

Examples:
  portcullis policy push build/guard.wasm
  portcullis policy push build/guard.wasm oci://ghcr.io/acme/policies/acme/guard:1.2.0";

pub(crate) const PULL_HELP: &str = "\
The file is written unchanged, trusted or not; `policy verify` says whether it is trusted.

Examples:
  portcullis policy pull oci://ghcr.io/acme/policies/acme/guard:1.2.0
  portcullis policy pull acme:guard@^1.2 -o guard.wasm";

pub(crate) const TRUST_HELP: &str = "\
Trust is recorded in `trust.toml` beside your settings; the machine's `/etc/portcullis/trust.toml` outranks it.
A publisher owns a namespace: packs called `acme:...` are then accepted only with a signature of the publisher.

Examples:
  portcullis policy trust publisher acme --key acme.pub --registry ghcr.io/acme/policies
  portcullis policy trust key acme --key RWQf6LRC... --valid-before 2027-01-01
  portcullis policy trust revoke SHA256:AbC... --reason 'laptop stolen'
  portcullis policy trust list";

pub(crate) const CARRY_HELP: &str = "\
An archive is an OCI image layout in a tar. Its packs are checked like any others, and all of them are added, or \
none.

Examples:
  portcullis policy save packs.tar
  portcullis policy load packs.tar";

pub(crate) const VENDOR_HELP: &str = "\
Writes `policy.lock` and its packs into a directory of a repository, for `policy add --lock`.

Example:
  portcullis policy vendor ~/src/team/.portcullis";

/// The verbs that share packs.
#[derive(Debug, Subcommand)]
pub enum Share {
    /// Add a pack: a file, a name of a publisher, or an artifact of a registry
    Add(Add),
    /// Update packs to newer versions
    Update(Update),
    /// Remove a pack
    #[command(after_help = "Example:\n  portcullis policy remove acme:guard")]
    Remove(Remove),
    /// List the installed packs
    #[command(after_help = "Examples:\n  portcullis policy list\n  portcullis policy list --json")]
    List(Shown),
    /// Check that every installed pack is there, unchanged, and still trusted
    #[command(after_help = "Example:\n  portcullis policy lock")]
    Lock(Shown),
    /// Sign a pack
    Sign(Sign),
    /// Check whether a pack would be accepted
    Verify(Verify),
    /// Show and add trusted publishers
    #[command(subcommand, after_help = TRUST_HELP)]
    Trust(Trust),
    /// Put a pack into a registry
    Push(Push),
    /// Get a pack from a registry as a file
    Pull(Pull),
    /// Copy the lock file and its packs into a repository
    Vendor(Vendor),
    /// Put packs into one file, for a machine without a network
    Save(Save),
    /// Add packs from a file that `save` wrote
    Load(Load),
}

/// Where packs are used.
#[derive(Debug, Clone, Args)]
pub struct PackScope {
    /// Use the `policy.lock` in this directory instead of the one beside your settings
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// What the user agrees to.
#[derive(Debug, Clone, Args)]
pub struct Agreement {
    /// Capabilities that the policy may use: `rewrites`, `output`, ...
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub allow: Vec<String>,
    /// Trust exactly these bytes, although they are unsigned
    #[arg(long)]
    pub unsigned: bool,
    /// Accept a version older than the one in use, or other bytes of the same version
    #[arg(long)]
    pub allow_older: bool,
    /// Accept a name that looks like another one
    #[arg(long)]
    pub similar_name: bool,
}

/// Arguments of `policy add`.
#[derive(Debug, Args)]
#[command(after_help = ADD_HELP)]
pub struct Add {
    /// Where the pack is used.
    #[command(flatten)]
    pub place: PackScope,
    /// What the user agrees to.
    #[command(flatten)]
    pub agreement: Agreement,
    /// What to add
    #[arg(value_name = "WHAT", required_unless_present = "lock")]
    pub what: Option<String>,
    /// Add exactly the packs of a team's lock
    #[arg(long, value_name = "FILE", conflicts_with = "what")]
    pub lock: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `policy update`.
#[derive(Debug, Args)]
#[command(after_help = UPDATE_HELP)]
pub struct Update {
    /// Where the pack is used.
    #[command(flatten)]
    pub place: PackScope,
    /// What the user agrees to.
    #[command(flatten)]
    pub agreement: Agreement,
    /// The packs to update; all by default
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `policy remove`.
#[derive(Debug, Args)]
pub struct Remove {
    /// Where the pack is used.
    #[command(flatten)]
    pub place: PackScope,
    /// The packs to remove
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `policy list` and `policy lock`.
#[derive(Debug, Args)]
pub struct Shown {
    /// Where the pack is used.
    #[command(flatten)]
    pub place: PackScope,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `policy sign`.
#[derive(Debug, Args)]
#[command(after_help = SIGN_HELP)]
pub struct Sign {
    /// The pack
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// An SSH key: a private key, or a public key whose private key is in ssh-agent
    #[arg(long, value_name = "FILE", required_unless_present = "minisign")]
    pub key: Option<PathBuf>,
    /// A minisign secret key
    #[arg(long, value_name = "FILE")]
    pub minisign: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `policy verify`.
#[derive(Debug, Args)]
#[command(after_help = VERIFY_HELP)]
pub struct Verify {
    /// Where the pack is used.
    #[command(flatten)]
    pub place: PackScope,
    /// The pack
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `policy push`.
#[derive(Debug, Args)]
#[command(after_help = PUSH_HELP)]
pub struct Push {
    /// The pack
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The artifact; by default, in the publisher's registry
    #[arg(value_name = "TO")]
    pub to: Option<String>,
    /// Publish the pack unsigned
    #[arg(long)]
    pub unsigned: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `policy pull`.
#[derive(Debug, Args)]
#[command(after_help = PULL_HELP)]
pub struct Pull {
    /// A name or an artifact, as for `add`
    #[arg(value_name = "WHAT")]
    pub what: String,
    /// The file to write; `NAME-VERSION.wasm` by default
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `policy vendor`.
#[derive(Debug, Args)]
#[command(after_help = VENDOR_HELP)]
pub struct Vendor {
    /// Where the pack is used.
    #[command(flatten)]
    pub place: PackScope,
    /// The directory; an earlier lock in it is replaced
    #[arg(value_name = "DIR")]
    pub to: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `policy save`.
#[derive(Debug, Args)]
#[command(after_help = CARRY_HELP)]
pub struct Save {
    /// Where the pack is used.
    #[command(flatten)]
    pub place: PackScope,
    /// The archive
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Which packs; all by default
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `policy load`.
#[derive(Debug, Args)]
#[command(after_help = CARRY_HELP)]
pub struct Load {
    /// Where the pack is used.
    #[command(flatten)]
    pub place: PackScope,
    /// What the user agrees to.
    #[command(flatten)]
    pub agreement: Agreement,
    /// The archive
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The verbs of `policy trust`.
#[derive(Debug, Subcommand)]
pub enum Trust {
    /// Show trusted publishers and files, and what is revoked
    #[command(
        after_help = "Examples:\n  portcullis policy trust list\n  portcullis policy trust list --json"
    )]
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Add a publisher, who owns a namespace of packs
    #[command(
        after_help = "Example:\n  portcullis policy trust publisher acme --key acme.pub --registry ghcr.io/acme/policies"
    )]
    Publisher(Publisher),
    /// Add keys to a publisher
    #[command(
        after_help = "Example:\n  portcullis policy trust key acme --key RWQf6LRC... --valid-before 2027-01-01"
    )]
    Key {
        /// The publisher
        #[arg(value_name = "PUBLISHER")]
        publisher: String,
        /// A key of theirs, or a file with it; may be given several times
        #[arg(long = "key", value_name = "KEY|FILE", required = true)]
        keys: Vec<String>,
        /// When the key counts.
        #[command(flatten)]
        dates: Dates,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Revoke a key or a digest
    #[command(
        after_help = "Examples:\n  portcullis policy trust revoke SHA256:AbC... --reason 'laptop stolen'\n  portcullis policy trust revoke sha256:09af..."
    )]
    Revoke {
        /// A key, its fingerprint (`SHA256:...`), a file with it, or a digest (`sha256:...`)
        #[arg(value_name = "KEY|DIGEST")]
        what: String,
        /// The reason, shown with each refusal that results
        #[arg(long, value_name = "TEXT", default_value = "no reason was given")]
        reason: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Trust exactly the bytes of an unsigned file
    #[command(
        after_help = "Example:\n  portcullis policy trust file ~/.pi/agent/sandbox/policies/my-policy.wasm"
    )]
    File {
        /// The component
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// When a key counts.
#[derive(Debug, Clone, Args)]
pub struct Dates {
    /// The first day on which the key is valid
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub valid_after: Option<String>,
    /// The day from which the key is no longer valid
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub valid_before: Option<String>,
}

/// Arguments of `policy trust publisher`.
#[derive(Debug, Args)]
pub struct Publisher {
    /// Your name for the publisher
    #[arg(value_name = "NAME")]
    pub name: String,
    /// A namespace that the publisher owns, the first half of ids; their name by default
    #[arg(long = "namespace", value_name = "NAMESPACE")]
    pub namespaces: Vec<String>,
    /// The registry of their packs: HOST/PATH
    #[arg(long, value_name = "HOST/PATH")]
    pub registry: Option<String>,
    /// A key of theirs, or a file with it; may be given several times
    #[arg(long = "key", value_name = "KEY|FILE")]
    pub keys: Vec<String>,
    /// Their `allowed_signers` file, in SSH's format; it is copied
    #[arg(long, value_name = "FILE")]
    pub signers: Option<PathBuf>,
    /// Number of their keys that must have signed
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub threshold: u32,
    /// When the key counts.
    #[command(flatten)]
    pub dates: Dates,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
