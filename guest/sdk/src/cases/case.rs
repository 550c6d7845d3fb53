//! A case: a question to a policy, with the expected answer.

use crate::testing;
use crate::{
    Action, Attribute, Content, Context, Endpoint, FileOperation, Origin, PathKind, Request, Right,
    SearchQuery, TextEdit, Vcs,
};

/// A question with the expected answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// What the case shows; for lists, with the input added.
    pub name: String,
    /// The surroundings of the question.
    pub given: Given,
    /// The question.
    pub question: Question,
    /// The expected answer.
    pub expected: Expected,
}

/// The surroundings of a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// Configuration of the policy, as JSON.
    pub config: String,
    /// The directory where the agent was started.
    pub cwd: String,
    /// The user's home directory.
    pub home: String,
    /// The session's temporary directory.
    pub temp: String,
    /// The agent's settings directory.
    pub agent_directory: String,
    /// Directories of PATH.
    pub path: Vec<String>,
    /// Roots of toolchains.
    pub toolchains: Vec<String>,
    /// Whether a user is present to answer.
    pub interactive: bool,
    /// Name of the sub-agent; empty for the main one.
    pub sub_agent: String,
    /// The branch of the project's repository; `None` if it is no repository.
    pub branch: Option<String>,
    /// Facts that come with the request.
    pub attributes: Vec<Attribute>,
    /// The command whose rules are asked for; `None` for the standing rules of the session.
    pub during: Option<String>,
}

/// A question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// `evaluate`: a file operation by a tool.
    File {
        /// The operation.
        operation: Operation,
        /// The given path; absolute.
        path: String,
        /// The canonical path; the same if no link is involved.
        canonical: String,
        /// Whether it is a directory.
        directory: bool,
        /// The content that is written or inserted by an edit.
        content: String,
    },
    /// `evaluate`: a command, of the model or of the user.
    Command {
        /// The script.
        script: String,
        /// The source of the command.
        origin: Origin,
    },
    /// `evaluate`: a command outside the sandbox.
    Escalation {
        /// The script.
        script: String,
    },
    /// `evaluate`: a connection of a command.
    Connect(Connection),
    /// `evaluate`: a call of a tool.
    Tool {
        /// Its name.
        name: String,
        /// Its provider.
        provider: String,
        /// Its arguments, as JSON.
        input: String,
    },
    /// `inspect`: the output of a tool.
    Output {
        /// Its one block of text.
        text: String,
        /// Name of the tool.
        tool: String,
    },
    /// `standing`: a right on a path.
    StandingFile {
        /// The path; absolute and canonical.
        path: String,
        /// The right.
        right: Right,
    },
    /// `standing`: a connection of a command.
    StandingConnect(Connection),
    /// `configure`: the configuration itself.
    Configure,
}

/// A file operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in the contract")]
pub enum Operation {
    Read,
    Write,
    Edit,
    List,
    Search,
    Delete,
    CreateDirectory,
}

/// An outgoing TCP connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path of the program.
    pub program: String,
}

/// The expected answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// A verdict or the effect of a standing rule.
    Effect {
        /// `allow`, `ask`, `deny`, `abstain` or `none`; for outputs `pass`, `replace`, `withhold` or `abstain`.
        effect: String,
        /// The rule that must answer; `None` for any.
        rule: Option<String>,
    },
    /// The pointers of all refused values; empty if the configuration must be accepted.
    Refused(Vec<String>),
}

/// The actual answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A verdict or the effect of a standing rule.
    Effect {
        /// As in [`Expected::Effect`].
        effect: &'static str,
        /// The rule; empty for `abstain` and `none`.
        rule: String,
    },
    /// The configuration was refused at these pointers, or accepted if there are none.
    Configured(Vec<String>),
}

impl Case {
    /// Compares an answer with the expected one.
    ///
    /// # Errors
    ///
    /// One line with the expected and the actual answer.
    pub fn check(&self, answer: &Answer) -> Result<(), String> {
        let same = match (&self.expected, answer) {
            (Expected::Effect { effect, rule }, Answer::Effect { effect: answered, rule: by }) => {
                effect == answered && rule.as_ref().is_none_or(|rule| rule == by)
            }
            (Expected::Refused(pointers), Answer::Configured(refused)) => pointers == refused,
            (Expected::Effect { .. }, Answer::Configured(_))
            | (Expected::Refused(_), Answer::Effect { .. }) => false,
        };
        if same {
            Ok(())
        } else {
            Err(format!("`{}`: expected {:?}, got {answer:?}", self.name, self.expected))
        }
    }

    /// Returns the request of a question to `evaluate`, or that of the command whose rules are asked for; `None` for
    /// other questions.
    pub fn request(&self) -> Option<Request> {
        let context = &self.given.context();
        let mut request = match &self.question {
            Question::File { operation, path, canonical, directory, content } => {
                let mut request = testing::file(context, canonical, operation.contract(content));
                if let Action::File(access) = &mut request.action {
                    access.path.given.clone_from(path);
                    access.path.absolute.clone_from(path);
                    access.path.kind = if *directory { PathKind::Directory } else { PathKind::File };
                }
                request
            }
            Question::Command { script, origin } => {
                Request { origin: *origin, ..testing::command(context, script) }
            }
            Question::Escalation { script } => testing::escalation(context, script),
            Question::Connect(Connection { host, port, program }) => {
                let mut request = testing::connect(host, *port);
                if let Action::Network(access) = &mut request.action {
                    access.process.program.clone_from(program);
                }
                request
            }
            Question::Tool { name, provider, input } => {
                let mut request = testing::tool(name, provider);
                if let Action::Tool(call) = &mut request.action {
                    call.input.clone_from(input);
                }
                request
            }
            Question::StandingFile { .. } | Question::StandingConnect(_) => {
                testing::command(context, self.given.during.as_deref()?)
            }
            Question::Output { .. } | Question::Configure => return None,
        };
        request.attributes.clone_from(&self.given.attributes);
        Some(request)
    }

    /// Returns true if the question is about standing rules.
    pub fn is_standing(&self) -> bool {
        matches!(self.question, Question::StandingFile { .. } | Question::StandingConnect(_))
    }
}

impl Given {
    /// Returns the context for the policy.
    pub fn context(&self) -> Context {
        let mut context = testing::context(&self.cwd);
        context.agent.directory.clone_from(&self.agent_directory);
        context.machine.home.clone_from(&self.home);
        context.machine.temp.clone_from(&self.temp);
        context.machine.path.clone_from(&self.path);
        context.machine.toolchains.clone_from(&self.toolchains);
        context.interactive = self.interactive;
        context.agent.sub_agent.clone_from(&self.sub_agent);
        context.workspace.vcs = self.branch.as_ref().map(|branch| Vcs {
            kind: "git".into(),
            root: self.cwd.clone(),
            branch: Some(branch.clone()),
            dirty: None,
        });
        context
    }
}

impl Connection {
    /// Returns the host in the form of the contract.
    pub fn target(&self) -> Endpoint {
        testing::endpoint(&self.host)
    }
}

impl Operation {
    fn contract(self, content: &str) -> FileOperation {
        match self {
            Self::Read => FileOperation::Read,
            Self::Write => FileOperation::Write(Content::Text(testing::text(content))),
            Self::Edit => {
                let edit = TextEdit { old: testing::text(""), new: testing::text(content) };
                FileOperation::Edit(vec![edit])
            }
            Self::List => FileOperation::List,
            Self::Search => FileOperation::Search(SearchQuery { pattern: "x".into(), glob: None }),
            Self::Delete => FileOperation::Delete,
            Self::CreateDirectory => FileOperation::CreateDirectory,
        }
    }
}
