//! Requests and their actions, as in `wit/types.wit`.
//!
//! The file is long because it mirrors one file of the contract, type by type.

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use crate::attribute::Attribute;
use crate::facts::{ContentVerdict, Fact, KnownPlace, OtherNames};

/// An action that the agent, the user or a confined process wants to perform; immutable once built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Request {
    /// Unique within the session.
    pub id: String,
    /// Id of the request that led to this one.
    pub parent: Option<String>,
    /// The source of the request.
    pub origin: Origin,
    /// The requested action.
    pub action: Action,
    /// Facts that the host has found out, in the order in which policies get them.
    #[serde(rename = "attributes")]
    pub facts: Vec<Fact>,
}

impl Request {
    /// Returns the rule for which the sandbox's broker asks.
    #[must_use]
    pub fn broker_rule(&self) -> Option<&str> {
        self.fact(|fact| if let Fact::BrokerRule(rule) = fact { Some(rule.as_str()) } else { None })
    }

    /// Returns the place that one question covers.
    #[must_use]
    pub fn question_place(&self) -> Option<&Path> {
        self.fact(|fact| if let Fact::QuestionPlace(place) = fact { Some(place.as_path()) } else { None })
    }

    /// Returns the place that a person knows, around the path.
    #[must_use]
    pub fn known_place(&self) -> Option<&KnownPlace> {
        self.fact(|fact| if let Fact::KnownPlace(place) = fact { Some(place) } else { None })
    }

    /// Returns the verdict on the file's other names.
    #[must_use]
    pub fn other_names(&self) -> Option<&OtherNames> {
        self.fact(|fact| if let Fact::OtherNames(names) = fact { Some(names) } else { None })
    }

    /// Returns the verdict on the content to write.
    #[must_use]
    pub fn content_verdict(&self) -> Option<&ContentVerdict> {
        self.fact(|fact| if let Fact::Content(verdict) = fact { Some(verdict) } else { None })
    }

    /// Returns the path that a command named before it failed, if the request is the question about it.
    #[must_use]
    pub fn named_before_failure(&self) -> Option<&str> {
        self.fact(|fact| if let Fact::NamedBeforeFailure(path) = fact { Some(path.as_str()) } else { None })
    }

    /// Returns the paths that were allowed to a failed command, if the request is the question to run it again.
    #[must_use]
    pub fn run_again(&self) -> Option<&[String]> {
        self.fact(|fact| if let Fact::RunAgain(paths) = fact { Some(paths.as_slice()) } else { None })
    }

    /// Returns the first fact that `is_meant` accepts.
    fn fact<'a, T: ?Sized>(&'a self, is_meant: impl Fn(&'a Fact) -> Option<&'a T>) -> Option<&'a T> {
        self.facts.iter().find_map(is_meant)
    }

    /// Returns the same request with another verdict on the content to write.
    #[must_use]
    pub fn with_content(mut self, verdict: Option<ContentVerdict>) -> Self {
        self.facts.retain(|fact| !matches!(fact, Fact::Content(_)));
        self.facts.extend(verdict.map(Fact::Content));
        self
    }
}

/// The source of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A tool call of the model.
    Agent,
    /// Input of the user.
    User,
    /// Another extension or an MCP server.
    Extension,
    /// A process inside the sandbox.
    Process,
}

/// The action of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// A file operation of a tool.
    File(FileAccess),
    /// A shell command.
    Command(CommandExecution),
    /// A network connection.
    Network(NetworkAccess),
    /// A unix socket.
    Socket(SocketAccess),
    /// A tool that the host does not carry out itself.
    Tool(ToolCall),
    /// Run this command once outside the sandbox, at the user's request.
    Escalation(CommandExecution),
    /// A kind that this version of the contract has no case for.
    Other(OtherAction),
}

/// Kinds of actions, for subscriptions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ActionKinds {
    /// File operations.
    pub file: bool,
    /// Commands.
    pub command: bool,
    /// Connections at stage `connect`.
    pub network: bool,
    /// Connections once their name is resolved.
    pub network_resolved: bool,
    /// Connections once the TLS server name is known.
    pub network_client_hello: bool,
    /// HTTP requests.
    pub network_http: bool,
    /// Unix sockets.
    pub socket: bool,
    /// Tools.
    pub tool: bool,
    /// Commands outside the sandbox.
    pub escalation: bool,
    /// Everything else.
    pub other: bool,
}

impl ActionKinds {
    /// Returns true if `action` is of one of these kinds.
    #[must_use]
    pub fn includes(self, action: &Action) -> bool {
        match action {
            Action::File(_) => self.file,
            Action::Command(_) => self.command,
            Action::Network(access) => match access.stage {
                Stage::Connect => self.network,
                Stage::Resolved(_) => self.network_resolved,
                Stage::ClientHello(_) => self.network_client_hello,
                Stage::Http(_) => self.network_http,
            },
            Action::Socket(_) => self.socket,
            Action::Tool(_) => self.tool,
            Action::Escalation(_) => self.escalation,
            Action::Other(_) => self.other,
        }
    }
}

/// An action of a kind for which the contract has no case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct OtherAction {
    /// Name of the kind.
    pub kind: String,
    /// A JSON document.
    pub input: String,
}

/// A file operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FileAccess {
    /// The path.
    pub path: PathRef,
    /// The operation.
    pub operation: FileOperation,
    /// The host's data about the opened file.
    pub facts: FileFacts,
}

/// The host's data about an opened file; all zero for a missing one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FileFacts {
    /// Bytes; the largest value stands for "or more".
    pub size: u32,
    /// Hard links.
    pub links: u32,
    /// Owner's user id.
    pub owner: u32,
    /// Permission bits.
    pub mode: u32,
}

/// A path with all known facts about it; paths are in [`crate::path_text`] form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PathRef {
    /// As written by the caller.
    pub given: String,
    /// Absolute, `.` and `..` removed, symbolic links not followed.
    pub absolute: String,
    /// Absolute, every symbolic link followed. The host opens exactly this path.
    pub canonical: String,
    /// The zone of `canonical`.
    pub zone: Zone,
    /// `canonical` relative to the top of its zone.
    pub relative: String,
    /// The kind of file at the path.
    pub kind: PathKind,
}

impl PathRef {
    /// Returns the reference to an absolute path without links.
    #[must_use]
    pub fn plain(path: &str, zone: Zone, kind: PathKind) -> Self {
        let text = || path.to_owned();
        Self { given: text(), absolute: text(), canonical: text(), zone, relative: text(), kind }
    }
}

/// The innermost zone that contains a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Zone {
    /// Below a workspace root.
    Workspace,
    /// Below the agent's own configuration directory.
    Agent,
    /// Below the temporary directory.
    Temp,
    /// Below the user's home directory.
    Home,
    /// Anywhere else.
    System,
}

/// The kind of file at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathKind {
    /// The path does not exist.
    Missing,
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link that was not followed.
    Symlink,
    /// A device, pipe or socket.
    Other,
}

/// An operation on a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileOperation {
    /// Read it.
    Read,
    /// Create or replace it.
    Write(Content),
    /// Replace parts of it.
    Edit(Vec<TextEdit>),
    /// List a directory.
    List,
    /// Search names or contents.
    Search(SearchQuery),
    /// Make a directory.
    CreateDirectory,
    /// Remove it.
    Delete,
    /// Rename it to this path.
    Move(PathRef),
    /// Give it another name (hard link).
    Link(PathRef),
    /// Make a symbolic link with this target.
    Symlink(String),
    /// Mode, owner, times, extended attributes.
    ChangeMetadata,
    /// Something else.
    Other(String),
}

impl FileOperation {
    /// Returns the right that the rules must give for this operation.
    #[must_use]
    pub fn right(&self) -> crate::file_right::FileRight {
        match self {
            Self::Read | Self::List | Self::Search(_) => crate::file_right::FileRight::Read,
            Self::Write(_)
            | Self::Edit(_)
            | Self::CreateDirectory
            | Self::Delete
            | Self::Move(_)
            | Self::Link(_)
            | Self::Symlink(_)
            | Self::ChangeMetadata
            | Self::Other(_) => crate::file_right::FileRight::Write,
        }
    }

    /// Returns the verb for messages, for example `read`.
    #[must_use]
    pub fn verb(&self) -> &str {
        match self {
            Self::Read => "read",
            Self::Write(_) => "write",
            Self::Edit(_) => "edit",
            Self::List => "list",
            Self::Search(_) => "search",
            Self::CreateDirectory => "create the directory",
            Self::Delete => "delete",
            Self::Move(_) => "move",
            Self::Link(_) => "link",
            Self::Symlink(_) => "make a symbolic link at",
            Self::ChangeMetadata => "change the metadata of",
            Self::Other(name) => name,
        }
    }
}

/// New content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// Text.
    Text(Text),
    /// Not text; the length in bytes.
    Binary(u32),
    /// Opened for writing; the content is not known yet.
    Unknown,
}

/// Text that the host may have truncated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Text {
    /// The text or its beginning.
    pub value: String,
    /// Length of the whole in bytes; the largest value stands for "or more".
    pub length: u32,
    /// Whether `value` is only the beginning.
    pub truncated: bool,
}

impl Text {
    /// The longest text given to policies, in bytes.
    pub const MAX: usize = 64 * 1024;

    /// Wraps `value`, truncated to [`Text::MAX`] bytes on a character boundary.
    #[must_use]
    pub fn cut(value: &str) -> Self {
        let end = value.floor_char_boundary(Self::MAX);
        Self {
            value: value.get(..end).unwrap_or_default().to_owned(),
            length: u32::try_from(value.len()).unwrap_or(u32::MAX),
            truncated: end < value.len(),
        }
    }
}

/// One replacement of an edit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TextEdit {
    /// The replaced text.
    pub old: Text,
    /// The replacement.
    pub new: Text,
}

/// A search below a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SearchQuery {
    /// The text searched for.
    pub pattern: String,
    /// Restriction to file names.
    pub glob: Option<String>,
}

/// A shell command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CommandExecution {
    /// The script exactly as given.
    pub script: String,
    /// `bash`, `sh`, ...; `None` for a direct argv execution.
    pub shell: Option<String>,
    /// The working directory.
    pub cwd: PathRef,
    /// The host's static analysis of `script`, or why there is none.
    pub parsed: Result<ParsedScript, String>,
    /// The requested time limit.
    pub timeout_ms: Option<u32>,
    /// Whether the command should outlive the call.
    pub background: bool,
}

/// A script flattened to its simple commands, in source order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ParsedScript {
    /// The commands.
    pub commands: Vec<SimpleCommand>,
    /// Properties that make the script hard to judge.
    pub features: ScriptFeatures,
    /// Whether it consists only of lists of simple commands: no conditions, loops, groups, functions or arithmetic.
    #[serde(default)]
    pub plain: bool,
}

/// Properties that make a script hard to judge statically.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ScriptFeatures {
    /// `$(...)` and the like.
    pub substitution: bool,
    /// `eval`, `bash -c` and the like, with an unknown inner command.
    pub dynamic: bool,
    /// `&`, `nohup` and the like.
    pub background: bool,
    /// Redefines a function or alias.
    pub redefinition: bool,
    /// Here-documents.
    pub heredoc: bool,
    /// Loops.
    pub loops: bool,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SimpleCommand {
    /// Words after quote removal.
    pub argv: Vec<Word>,
    /// `NAME=value` before the program.
    pub assignments: Vec<(String, Word)>,
    /// Redirections.
    pub redirects: Vec<Redirect>,
    /// How it follows the previous command.
    pub joined_by: String,
    /// Index of the command that contains this one.
    pub parent: Option<u32>,
    /// `argv[0]` looked up in PATH.
    pub program: Option<String>,
}

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Word {
    /// Its text.
    pub value: String,
    /// Whether it contains nothing to expand.
    pub literal: bool,
}

/// One redirection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Redirect {
    /// `>`, `>>`, `<`, ...
    pub operator: String,
    /// The file descriptor, if written.
    pub fd: Option<u32>,
    /// The target as written.
    pub target: Word,
    /// The target as a path, if it is one.
    pub path: Option<PathRef>,
}

/// A network connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NetworkAccess {
    /// Protocol.
    pub transport: Transport,
    /// The side that starts it.
    pub direction: Direction,
    /// The other end.
    pub target: Endpoint,
    /// Its port.
    pub port: u16,
    /// The stage, which determines what is known.
    pub stage: Stage,
    /// The process that makes the request.
    pub process: ProcessInfo,
}

/// The other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Endpoint {
    /// A host name: lower case, no trailing dot, A-labels.
    Domain(String),
    /// An address given as such, in RFC 5952 form.
    Address(std::net::IpAddr),
}

impl Endpoint {
    /// Returns host and port as one text; an IPv6 address in brackets, without which the port would look like a part of
    /// it.
    ///
    /// ```
    /// use portcullis_decision::request::Endpoint;
    /// let endpoint = Endpoint::Address("2001:db8::1".parse().unwrap());
    /// assert_eq!(endpoint.with_port(443), "[2001:db8::1]:443");
    /// assert_eq!(Endpoint::Domain("a.test".to_owned()).with_port(80), "a.test:80");
    /// ```
    #[must_use]
    pub fn with_port(&self, port: u16) -> String {
        match self {
            Self::Domain(name) => format!("{name}:{port}"),
            Self::Address(address) => std::net::SocketAddr::new(*address, port).to_string(),
        }
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Domain(name) => formatter.write_str(name),
            Self::Address(address) => write!(formatter, "{address}"),
        }
    }
}

/// Transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// Anything else.
    Other,
}

/// The stage of a connection, with what is known at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The program resolved the name or called connect.
    Connect,
    /// Resolved by the host.
    Resolved(Vec<String>),
    /// Server name of the TLS client hello; empty for none.
    ClientHello(String),
    /// Head of an HTTP request.
    Http(HttpHead),
}

/// Head of an HTTP request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct HttpHead {
    /// Method.
    pub method: String,
    /// URL.
    pub url: String,
    /// Header names only, lower case.
    pub header_names: Vec<String>,
}

/// A unix socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SocketAccess {
    /// Path, or `@name` for an abstract one.
    pub path: String,
    /// Connect or listen.
    pub direction: Direction,
    /// The process that makes the request.
    pub process: ProcessInfo,
}

/// The side that starts a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From inside.
    Outbound,
    /// To a server inside.
    Listen,
}

/// The process that makes a request; pid 0 if unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProcessInfo {
    /// Process id.
    pub pid: u32,
    /// Path of its program.
    pub program: String,
    /// Its arguments, as it shows them: a process can change them, or replace them by a title.
    pub argv: Vec<String>,
}

/// A call of a tool that the host does not carry out itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ToolCall {
    /// Its name.
    pub name: String,
    /// `builtin`, `extension:<name>`, `mcp:<server>`.
    pub provider: String,
    /// The arguments, a JSON document.
    pub input: String,
}
