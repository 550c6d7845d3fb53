//! The fence around pushes of git over HTTPS and ssh: which references of which repositories may change, and how.
//!
//! The gate reads the whole body of a push before the first byte of it goes to the server. The server applies exactly
//! that body, and compares the old value of each reference itself.

mod commands;
mod delta;
mod end;
mod files;
mod pack;

use hyper::Method;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use portcullis_decision::ConnectionRefusal;
use portcullis_decision::pattern::{RefPattern, RequestPath, RequestPattern};

use commands::{Commands, Update};
pub use end::{Known, PushEnd};
use pack::{Commits, Files};

/// The last segment of the path of a push.
const SERVICE: &str = "git-receive-pack";

/// Names in a repository that a server with WebDAV would let a client write: references and objects.
const STORE: [&str; 6] = ["head", "info", "objects", "packed-refs", "refs", "reftable"];
/// More of them: what a repository is set up with. APIs have the same names in requests with `PATCH`.
const SETUP: [&str; 12] = [
    "branches",
    "commondir",
    "config",
    "description",
    "gitdir",
    "hooks",
    "index",
    "logs",
    "modules",
    "remotes",
    "shallow",
    "worktrees",
];
/// The methods that can reach a host with rules for pushes. Those of WebDAV can move what was written elsewhere into a
/// repository.
const METHODS: [Method; 7] =
    [Method::GET, Method::HEAD, Method::OPTIONS, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
/// The header of WebDAV that names the place where something is moved.
const DESTINATION: &str = "destination";

/// What may be pushed to some repositories of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushRule {
    /// The requests that push there.
    pub requests: Vec<RequestPattern>,
    /// The references that may change.
    pub refs: Vec<RefPattern>,
    /// Whether a reference may also move to a commit that does not follow the one it had.
    pub force: bool,
    /// Whether references may be deleted.
    pub delete: bool,
    /// Whether files may hold what looks like a credential.
    pub secrets: bool,
    /// The largest push, in bytes.
    pub bytes_max: u64,
}

/// A push, with the rules for its repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    rules: Vec<PushRule>,
}

impl Push {
    /// Returns the push that a request is, or `None` for any other request.
    pub(super) fn of(
        rules: &[PushRule],
        request: &Parts,
        path: Option<&RequestPath>,
    ) -> Result<Option<Self>, ConnectionRefusal> {
        if rules.is_empty() {
            return Ok(None);
        }
        if !METHODS.contains(&request.method) || request.headers.contains_key(DESTINATION) {
            return Err(refused("it could move a file into a repository by WebDAV"));
        }
        if request.method == Method::GET || request.method == Method::HEAD {
            return Ok(None);
        }
        let Some(path) = path else {
            return Err(refused("servers read its path in different ways, so it could be one"));
        };
        if request.method != Method::POST {
            let is_of_api = request.method == Method::PATCH;
            let writes = |segment: &str| {
                let name = segment.to_ascii_lowercase();
                STORE.contains(&name.as_str())
                    || !is_of_api && SETUP.contains(&name.as_str())
                    || name.ends_with(".git")
            };
            if path.segments().any(writes) {
                return Err(refused("it writes to a repository without `git-receive-pack`"));
            }
        }
        let names = |text: &str| text.to_ascii_lowercase().contains("receive-pack");
        let is_named = |value: &HeaderValue| names(&String::from_utf8_lossy(value.as_bytes()));
        let is_push =
            request.headers.get_all(CONTENT_TYPE).iter().any(is_named) || path.segments().any(names);
        if !is_push {
            return Ok(None);
        }
        if request.method != Method::POST || path.segments().next_back() != Some(SERVICE) {
            return Err(refused("it has a form that the gate does not read"));
        }
        if request.headers.contains_key(CONTENT_ENCODING) {
            return Err(refused("it is compressed as a whole"));
        }
        Self::to(rules, path, request.uri.path()).map(Some)
    }

    /// Returns a push to this path, which is called `place`.
    pub(super) fn to(rules: &[PushRule], path: &RequestPath, place: &str) -> Result<Self, ConnectionRefusal> {
        let is_meant = |rule: &&PushRule| rule.requests.iter().any(|pattern| pattern.matches("POST", path));
        let rules: Vec<PushRule> = rules.iter().filter(is_meant).cloned().collect();
        if rules.is_empty() {
            return Err(refused(&format!("no rule in `network.pushes` is for {place}")));
        }
        Ok(Self { rules })
    }

    /// Returns the largest body, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.rules.iter().map(|rule| rule.bytes_max).max().unwrap_or_default()
    }

    /// Judges the body of the push.
    pub fn judge(&self, body: &[u8]) -> Result<(), ConnectionRefusal> {
        let Commands { updates, pack } = commands::parse(body).map_err(|why| refused(&why))?;
        if updates.is_empty() {
            // Git sends an empty push to see whether the server takes its credential.
            return if pack.is_empty() { Ok(()) } else { Err(refused("it has objects for no reference")) };
        }
        for update in &updates {
            self.is_covered(update)?;
        }
        let commits = if updates.iter().any(|update| update.new.is_some()) {
            // Read in any case: the server must not find anything behind it.
            let files =
                if self.rules.iter().all(|rule| rule.secrets) { Files::Free } else { Files::Searched };
            pack::commits(pack, files).map_err(|why| refused(&why))?
        } else if pack.is_empty() {
            Commits::default()
        } else {
            return Err(refused("it deletes, and has objects"));
        };
        updates.iter().try_for_each(|update| self.permits(update, &commits, body.len()))
    }

    /// Refuses references that no rule is for, before the objects are read.
    fn is_covered(&self, update: &Update) -> Result<(), ConnectionRefusal> {
        if self.rules_for(update).next().is_some() {
            return Ok(());
        }
        Err(refused(&format!("no rule in `network.pushes` for this repository is for `{}`", update.name)))
    }

    fn rules_for(&self, update: &Update) -> impl Iterator<Item = &PushRule> {
        self.rules.iter().filter(|rule| rule.refs.iter().any(|pattern| pattern.matches(&update.name)))
    }

    /// Refuses a change that no rule permits.
    fn permits(&self, update: &Update, commits: &Commits, size: usize) -> Result<(), ConnectionRefusal> {
        let name = &update.name;
        let is_small = |rule: &PushRule| u64::try_from(size).is_ok_and(|size| size <= rule.bytes_max);
        let mut rules = self.rules_for(update).filter(|rule| is_small(rule)).peekable();
        if rules.peek().is_none() {
            return Err(refused(&format!("it is larger than the rule for `{name}` allows")));
        }
        match (update.old, update.new) {
            (_, None) if !rules.any(|rule| rule.delete) => {
                Err(refused(&format!("`{name}` would be deleted; the rule needs `delete`")))
            }
            (Some(old), Some(new)) if !commits.follows(&new, &old) && !rules.any(|rule| rule.force) => {
                Err(refused(&format!(
                    "`{name}` would move to a commit that does not follow the present one, as far as the push \
                     shows; merge or rebase first, or the rule needs `force`"
                )))
            }
            _ => Ok(()),
        }
    }
}

fn refused(why: &str) -> ConnectionRefusal {
    ConnectionRefusal::by_host("host.push-rule", format!("the push is not sent: {why}"))
}

#[cfg(test)]
mod tests;
