//! Reservations: exclusive claims on paths by agents, which the host manages for all of the user's sessions.
//!
//! A policy requests them with [`Profile::with_reservations`], reads the [`claims`] of a request, and makes the host
//! claim or release paths by obligations of its permission. If a claim is not available the action is refused, so the
//! policy need not handle races.

use serde::{Deserialize, Serialize};

use crate::pattern::is_within;
use crate::{Attribute, Obligation, Profile, Request};

/// The attribute that lists the claims, and by which a profile requests it.
const RESERVATIONS: &str = "host:reservations";

/// A claim. It covers the path and everything below it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Claim {
    /// Absolute and canonical.
    pub path: String,
    /// Name of the agent that holds it.
    pub agent: String,
    /// Whether this session holds it.
    pub own: bool,
}

/// How long a claim lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// Until the action ends.
    Call,
    /// Until it is released, or the session ends.
    Session,
}

impl Claim {
    /// Returns true if a path is claimed, or lies below a claimed one.
    pub fn covers(&self, path: &str) -> bool {
        is_within(path, &self.path)
    }

    /// Returns true if a change of this path, with everything below it, affects the claim.
    pub fn overlaps(&self, path: &str) -> bool {
        self.covers(path) || is_within(&self.path, path)
    }
}

/// Returns the claims that concern a request; `None` if the host cannot list reservations, or does not support them.
/// Then the policy should allow nothing that could conflict with them.
pub fn claims(request: &Request) -> Option<Vec<Claim>> {
    let told = request.attributes.iter().find(|attribute| attribute.name == RESERVATIONS)?;
    serde_json::from_str(&told.value).ok()
}

/// Returns the obligation to claim all of these paths for the session's agent: at most 64 absolute paths.
pub fn reserve(paths: &[&str], until: Until) -> Obligation {
    obligation("host:reserve", serde_json::json!({ "paths": paths, "until": until }))
}

/// Returns the obligation to release the session's claims at and below these paths.
pub fn release(paths: &[&str]) -> Obligation {
    obligation("host:release", serde_json::json!({ "paths": paths }))
}

fn obligation(name: &str, value: serde_json::Value) -> Obligation {
    Obligation::Other(Attribute { name: name.into(), value: value.to_string() })
}

impl Profile {
    /// Requests that the host lists reservations with every request about files, commands and tools.
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
