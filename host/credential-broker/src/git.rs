//! Git over ssh: the requests of git inside, which the gate makes with the user's own `ssh` outside.

use portcullis_decision::ConnectionRefusal;
use portcullis_decision::pattern::{RequestPath, RequestPattern};
use portcullis_decision::request::{Endpoint, HttpHead};

use super::push::{Push, PushRule};

/// The first bytes of a request.
pub const GREETING: &[u8] = b"portcullis-git/1\0";
/// The longest request, in bytes.
pub const REQUEST_MAX: usize = 8 * 1024;
/// The longest user name, in bytes.
const USER_MAX: usize = 64;
/// The port of ssh.
const SSH_PORT: u16 = 22;

/// A host that git reaches by the user's own `ssh`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshHost {
    /// The name of the credential in the settings.
    pub name: String,
    /// The host, as the user's `ssh` knows it.
    pub host: Endpoint,
    /// The port.
    pub port: u16,
    /// The user name there; `None` for the one that the command gives.
    pub user: Option<String>,
    /// The repositories to fetch from, as requests to `git-upload-pack`.
    pub fetch: Vec<RequestPattern>,
    /// The pushes that may be sent; none without a rule.
    pub pushes: Vec<PushRule>,
}

/// A connection that the user's `ssh` is to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshCommand {
    /// The host.
    pub host: String,
    /// The port, if it is not the usual one.
    pub port: Option<u16>,
    /// The user name.
    pub user: Option<String>,
    /// The command for the server, quoted for its shell.
    pub command: String,
    /// The value of `GIT_PROTOCOL`.
    pub protocol: Option<&'static str>,
}

/// Starts the user's own `ssh`. It is called on threads that may block.
pub trait Ssh: Send + Sync {
    /// Starts it, with pipes for its input and output.
    ///
    /// # Errors
    /// When it cannot be started.
    fn start(&self, command: &SshCommand) -> std::io::Result<std::process::Child>;
}

/// What git may ask a server for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    Upload,
    Archive,
    Receive,
}

impl Service {
    const ALL: [Self; 3] = [Self::Upload, Self::Archive, Self::Receive];

    const fn name(self) -> &'static str {
        match self {
            Self::Upload => "git-upload-pack",
            Self::Archive => "git-upload-archive",
            Self::Receive => "git-receive-pack",
        }
    }
}

/// A request of git that may be sent.
#[derive(Debug, PartialEq, Eq)]
pub struct GitRequest {
    /// What git runs at the server.
    pub command: SshCommand,
    /// The form in which policies get it.
    pub head: HttpHead,
    /// The push that it is.
    pub push: Option<Push>,
}

impl SshHost {
    /// Judges a request: user, `GIT_PROTOCOL` and command, each followed by a zero byte.
    pub fn judge(&self, request: &[u8]) -> Result<GitRequest, ConnectionRefusal> {
        let text = std::str::from_utf8(request).map_err(|_| refused("it is not text"))?;
        let mut parts = text.split('\0');
        let (Some(user), Some(protocol), Some(command), Some(""), None) =
            (parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(refused("it has another form"));
        };
        let user = self.user(user)?;
        let protocol = match protocol {
            "" => None,
            "version=0" => Some("version=0"),
            "version=1" => Some("version=1"),
            "version=2" => Some("version=2"),
            _ => return Err(refused("it wants another version of the protocol")),
        };
        let (service, repository) = parsed(command)?;
        let path = path(&repository, service)?;
        let push = match service {
            Service::Upload | Service::Archive => {
                if !self.fetch.iter().any(|pattern| pattern.matches("POST", &path)) {
                    let why =
                        format!("`fetch` of the credential `{}` does not have `{repository}`", self.name);
                    return Err(ConnectionRefusal::by_host("host.credential-purpose", why));
                }
                None
            }
            Service::Receive => Some(Push::to(&self.pushes, &path, &repository)?),
        };
        let head = HttpHead {
            method: service.name().to_owned(),
            url: format!("ssh://{}/{}", self.host.with_port(self.port), repository.trim_start_matches('/')),
            header_names: Vec::new(),
        };
        let command = SshCommand {
            host: self.host.to_string(),
            port: (self.port != SSH_PORT).then_some(self.port),
            user,
            command: format!("{} {}", service.name(), quoted(&repository)),
            protocol,
        };
        Ok(GitRequest { command, head, push })
    }

    /// Returns the user name to be used.
    fn user(&self, given: &str) -> Result<Option<String>, ConnectionRefusal> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if given.len() > USER_MAX || given.starts_with('-') || !given.bytes().all(fits) {
            return Err(refused("it has no usual user name"));
        }
        match &self.user {
            Some(own) if !given.is_empty() && own != given => {
                Err(refused(&format!("it is for the user `{given}`, and the settings have `{own}`")))
            }
            Some(own) => Ok(Some(own.clone())),
            None => Ok(Some(given.to_owned()).filter(|given| !given.is_empty())),
        }
    }
}

/// Parses the command that git sends.
fn parsed(command: &str) -> Result<(Service, String), ConnectionRefusal> {
    let known =
        |service: &Service| Some((*service, command.strip_prefix(service.name())?.strip_prefix(' ')?));
    let Some((service, word)) = Service::ALL.iter().find_map(known) else {
        return Err(refused(
            "only git can use it: `git-upload-pack`, `git-upload-archive` and `git-receive-pack`",
        ));
    };
    let repository = unquoted(word).ok_or_else(|| refused("its repository is not one quoted word"))?;
    Ok((service, repository))
}

/// Reads one word as git quotes it for a shell: `'a'\''b'`.
fn unquoted(word: &str) -> Option<String> {
    let (mut text, mut rest) = (String::new(), word.strip_prefix('\'')?);
    loop {
        let (piece, after) = rest.split_once('\'')?;
        text.push_str(piece);
        if after.is_empty() {
            return Some(text);
        }
        let after = after.strip_prefix('\\')?;
        let character = after.chars().next().filter(|character| "'!".contains(*character))?;
        text.push(character);
        rest = after.strip_prefix(character)?.strip_prefix('\'')?;
    }
}

/// Quotes a word for a shell, as git does.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''").replace('!', r"'\!'"))
}

/// Returns the path of a repository as that of a request. A server must not be able to read it in another way.
fn path(repository: &str, service: Service) -> Result<RequestPath, ConnectionRefusal> {
    let inner = repository.strip_prefix('/').unwrap_or(repository);
    // A server would take a home directory or an option for it.
    let is_special = inner.is_empty() || inner.starts_with(['~', '-', '/']) || repository.starts_with('-');
    let request = match service {
        Service::Upload | Service::Archive => "git-upload-pack",
        Service::Receive => "git-receive-pack",
    };
    let path = Some(inner).filter(|inner| !is_special && !inner.contains('%'));
    let path = path.and_then(|inner| RequestPath::parse(&format!("/{inner}/{request}")));
    path.ok_or_else(|| refused("servers could read the path of its repository in different ways"))
}

fn refused(why: &str) -> ConnectionRefusal {
    ConnectionRefusal::by_host("host.git-only", format!("the request to the user's `ssh` is not sent: {why}"))
}

#[cfg(test)]
mod tests;
