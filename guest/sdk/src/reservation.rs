//! Reservations: exclusive claims of paths by agents, which the host keeps for all of the user's sessions.
//!
//! A policy asks to be told of them with [`Profile::with_reservations`], reads [`claims`] of a request, and has the
//! host claim or give back by obligations of its permission. A claim that cannot be had refuses the action, so a
//! policy need not fear that somebody is faster.

use serde::{Deserialize, Serialize};

use crate::pattern::is_within;
use crate::{Attribute, Obligation, Profile, Request};

/// The attribute that lists the claims, and by which a profile asks for it.
const RESERVATIONS: &str = "host:reservations";

/// One claim. It covers the path and everything below it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Claim {
    /// Absolute and canonical.
    pub path: String,
    /// Name of the agent that has it.
    pub agent: String,
    /// Whether it is this session's own.
    pub own: bool,
}

/// How long a claim lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// Until the action is over.
    Call,
    /// Until it is given back, or the session ends.
    Session,
}

impl Claim {
    /// Whether a path is what is claimed, or lies below it.
    pub fn covers(&self, path: &str) -> bool {
        is_within(path, &self.path)
    }

    /// Whether a change of this path, with what lies below it, touches what is claimed.
    pub fn overlaps(&self, path: &str) -> bool {
        self.covers(path) || is_within(&self.path, path)
    }
}

/// Returns the claims that concern a request; none where the host cannot say what is reserved, or does not know of
/// reservations. Then nothing should be allowed that could touch them.
pub fn claims(request: &Request) -> Option<Vec<Claim>> {
    let told = request.attributes.iter().find(|attribute| attribute.name == RESERVATIONS)?;
    serde_json::from_str(&told.value).ok()
}

/// Returns the obligation to claim all of these paths for the session's agent. At most 64 absolute paths.
pub fn reserve(paths: &[&str], until: Until) -> Obligation {
    obligation("host:reserve", serde_json::json!({ "paths": paths, "until": until }))
}

/// Returns the obligation to give back what the session has claimed at and below these paths.
pub fn release(paths: &[&str]) -> Obligation {
    obligation("host:release", serde_json::json!({ "paths": paths }))
}

fn obligation(name: &str, value: serde_json::Value) -> Obligation {
    Obligation::Other(Attribute { name: name.into(), value: value.to_string() })
}

impl Profile {
    /// Asks the host to tell of reservations with every request about files, commands and tools.
    #[must_use]
    pub fn with_reservations(mut self) -> Self {
        self.attributes.push(Attribute { name: RESERVATIONS.into(), value: "{}".into() });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn what_cannot_be_read_is_not_an_empty_list() {
        let mut request = testing::command(&testing::context("/srv"), "ls");
        assert_eq!(claims(&request), None);
        request.attributes.push(Attribute { name: RESERVATIONS.into(), value: "null".into() });
        assert_eq!(claims(&request), None);
        request.attributes.clear();
        let value = r#"[{"path":"/srv/a","agent":"ann","own":false}]"#;
        request.attributes.push(Attribute { name: RESERVATIONS.into(), value: value.into() });
        let claim = &claims(&request).unwrap()[0];
        assert!(claim.covers("/srv/a/b") && !claim.covers("/srv/ab") && !claim.covers("/srv"));
        assert!(claim.overlaps("/srv") && claim.overlaps("/srv/a/b") && !claim.overlaps("/srv/b"));
    }
}
