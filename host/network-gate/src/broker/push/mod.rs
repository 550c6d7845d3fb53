//! The fence around pushes of git over HTTPS: which references of which repositories may change, and how.
//!
//! The gate reads the whole body of a push before the first byte of it goes to the server. The server applies exactly
//! that body: it compares the old value of each reference itself.

mod commands;
mod pack;

use hyper::http::request::Parts;
use portcullis_decision::pattern::{RefPattern, RequestPath, RequestPattern};

use crate::connection_refusal::ConnectionRefusal;
use commands::{Commands, Update};

/// The last part of the path of a push.
const SERVICE: &str = "git-receive-pack";

/// What may be pushed to some repositories of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushRule {
    /// The requests that push there.
    pub requests: RequestPattern,
    /// The references that may change.
    pub refs: Vec<RefPattern>,
    /// Whether a reference may also move to a commit that does not follow the one it had.
    pub force: bool,
    /// Whether references may be deleted.
    pub delete: bool,
    /// The largest push, in bytes.
    pub bytes_max: u64,
}

/// A push, with the rules for its repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Push<'a> {
    rule: &'a PushRule,
}

impl<'a> Push<'a> {
    /// Returns the push that a request is, or `None` for any other request.
    pub(super) fn of(
        rules: &'a [PushRule],
        request: &Parts,
        path: Option<&RequestPath>,
    ) -> Result<Option<Self>, ConnectionRefusal> {
        let kind = request.headers.get(hyper::header::CONTENT_TYPE);
        let kind = kind.map(|kind| String::from_utf8_lossy(kind.as_bytes()).to_ascii_lowercase());
        let names = |text: &str| text.to_ascii_lowercase().contains("receive-pack");
        let is_push = kind.is_some_and(|kind| names(&kind))
            || path.is_some_and(|path| path.segments().any(names))
            || path.is_none() && names(request.uri.path());
        if !is_push {
            return Ok(None);
        }
        let ends_well = path.is_some_and(|path| path.segments().last() == Some(SERVICE));
        if request.method != hyper::Method::POST || !ends_well {
            return Err(refused("it is a push in a form that cannot be read"));
        }
        if request.headers.contains_key(hyper::header::CONTENT_ENCODING) {
            return Err(refused("it is compressed as a whole"));
        }
        let is_meant = |rule: &&PushRule| path.is_some_and(|path| rule.requests.matches("POST", path));
        let Some(rule) = rules.iter().find(is_meant) else {
            return Err(refused(&format!("no rule in `pushes` is for {}", request.uri.path())));
        };
        Ok(Some(Self { rule }))
    }

    /// Returns the largest body, in bytes.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.rule.bytes_max
    }

    /// Judges the body of the push.
    pub(crate) fn judge(&self, body: &[u8]) -> Result<(), ConnectionRefusal> {
        let Commands { updates, pack } = commands::parse(body).map_err(|why| refused(&why))?;
        if updates.is_empty() {
            // Git sends an empty push to see whether the server takes its credential.
            return if pack.is_empty() { Ok(()) } else { Err(refused("it has objects for no reference")) };
        }
        for update in &updates {
            self.is_permitted(update)?;
        }
        let has_pack = updates.iter().any(|update| update.new.is_some());
        if !has_pack {
            return if pack.is_empty() { Ok(()) } else { Err(refused("it deletes, and has objects")) };
        }
        // Read in any case: the server must not find anything behind it.
        let commits = pack::commits(pack).map_err(|why| refused(&why))?;
        for Update { old, new, name } in updates {
            let (Some(old), Some(new)) = (old, new) else { continue };
            if !self.rule.force && !commits.follows(&new, &old) {
                let reason = format!(
                    "`{name}` would move to a commit that does not follow the present one, as far as the push shows"
                );
                return Err(refused(&reason));
            }
        }
        Ok(())
    }

    fn is_permitted(&self, update: &Update) -> Result<(), ConnectionRefusal> {
        if !self.rule.refs.iter().any(|pattern| pattern.matches(&update.name)) {
            return Err(refused(&format!("no rule in `pushes` is for `{}`", update.name)));
        }
        if update.new.is_none() && !self.rule.delete {
            return Err(refused(&format!("`{}` would be deleted", update.name)));
        }
        Ok(())
    }
}

fn refused(why: &str) -> ConnectionRefusal {
    ConnectionRefusal::by_host("host.push-rule", format!("the push is not sent: {why}"))
}
