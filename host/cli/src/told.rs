//! The context of a decision in the log, and back.

use portcullis_decision::Context;
use serde_json::{Map, Value};

/// What of a context the log keeps beside the request, in its parts.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Told {
    /// What is the same for all decisions of a session; null where there was no context.
    pub(crate) facts: Value,
    /// The time.
    pub(crate) now: u64,
    /// The live grants; null where there are none.
    pub(crate) grants: Value,
}

impl Told {
    pub(crate) fn of(context: &Context) -> Self {
        let Ok(Value::Object(mut members)) = serde_json::to_value(context) else { return Self::default() };
        let grants = members.remove("grants").filter(|grants| *grants != Value::Array(Vec::new()));
        members.remove("now");
        members.remove("explain");
        Self { facts: members.into(), now: context.now.into(), grants: grants.unwrap_or_default() }
    }

    /// The context again; none where it is not all there.
    pub(crate) fn context(self) -> Option<Context> {
        let Value::Object(facts) = self.facts else { return None };
        let grants = if self.grants.is_null() { Value::Array(Vec::new()) } else { self.grants };
        let rest = [("grants", grants), ("now", self.now.into()), ("explain", false.into())];
        let members: Map<_, _> =
            facts.into_iter().chain(rest.map(|(name, value)| (name.to_owned(), value))).collect();
        serde_json::from_value(members.into()).ok()
    }
}

#[cfg(test)]
mod tests {
    use portcullis_decision::context::{AgentInfo, Machine, Workspace};
    use portcullis_decision::grant::PathPattern;
    use portcullis_decision::pattern::FilePattern;
    use portcullis_decision::profile::FileRights;
    use portcullis_decision::{Grant, GrantPattern, GrantScope};

    use super::*;

    #[test]
    fn a_context_comes_back_as_it_was() {
        let mut context = Context {
            session_id: "s".to_owned(),
            agent: AgentInfo { name: "pi".to_owned(), model: Some("m".to_owned()), ..AgentInfo::default() },
            workspace: Workspace { roots: vec!["/srv/app".to_owned()], ..Workspace::default() },
            machine: Machine { path: vec!["/usr/bin".to_owned()], uid: 1000, ..Machine::default() },
            interactive: true,
            now: 1_700_000_000,
            grants: Vec::new(),
            explain: false,
            attributes: Vec::new(),
        };
        assert_eq!(Told::of(&context).grants, Value::Null);
        assert_eq!(Told::of(&context).context(), Some(context.clone()));
        context.grants.push(Grant {
            scope: GrantScope::Session,
            pattern: GrantPattern::Path(PathPattern {
                pattern: FilePattern::Exact("/etc/hosts".into()),
                rights: FileRights::default(),
            }),
            granted_at: 1,
            expires_at: 0,
        });
        let same_but_grants = Told::of(&context);
        assert_eq!(same_but_grants.facts, Told::of(&Context { now: 1, ..context.clone() }).facts);
        assert_eq!(same_but_grants.context(), Some(context.clone()));
        assert_eq!(Told { facts: Value::Null, ..Told::of(&context) }.context(), None);
    }
}
