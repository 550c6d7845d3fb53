//! Converts the context of a decision to its form in the log, and back.

use portcullis_decision::Context;
use serde_json::{Map, Value};

/// The parts of a context that the log stores beside the request.
#[derive(Debug, PartialEq)]
pub struct LoggedContext {
    /// The facts that are the same for all decisions of a session; null without a context.
    pub facts: Value,
    /// The time.
    pub now: u64,
    /// The live grants; null without any.
    pub grants: Value,
}

/// Returns the facts of a context that are the same for all decisions of a session; null if they cannot be represented.
pub fn facts(context: &Context) -> Value {
    let Ok(Value::Object(mut members)) = serde_json::to_value(context) else { return Value::Null };
    for of_one_decision in ["grants", "now", "explain"] {
        members.remove(of_one_decision);
    }
    members.into()
}

/// Returns true if [`facts`] are the same for both.
pub fn are_facts_the_same(one: &Context, other: &Context) -> bool {
    let Context {
        session_id,
        agent,
        workspace,
        machine,
        interactive,
        attributes,
        now: _,
        grants: _,
        explain: _,
    } = one;
    *session_id == other.session_id
        && *agent == other.agent
        && *workspace == other.workspace
        && *machine == other.machine
        && *interactive == other.interactive
        && *attributes == other.attributes
}

/// Returns the live grants of a context; null without any.
pub fn grants(context: &Context) -> Value {
    let grants = Some(&context.grants).filter(|grants| !grants.is_empty());
    grants.and_then(|grants| serde_json::to_value(grants).ok()).unwrap_or_default()
}

impl LoggedContext {
    /// Returns the context, or `None` if parts of it are missing.
    pub fn context(self) -> Option<Context> {
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
    use portcullis_decision::request::Attribute;
    use portcullis_decision::{Grant, GrantPattern, GrantScope};

    use super::*;

    fn logged(context: &Context) -> LoggedContext {
        LoggedContext { facts: facts(context), now: context.now.into(), grants: grants(context) }
    }

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
        assert_eq!(grants(&context), Value::Null);
        assert_eq!(logged(&context).context(), Some(context.clone()));
        context.grants.push(Grant {
            scope: GrantScope::Session,
            pattern: GrantPattern::Path(PathPattern {
                pattern: FilePattern::Exact("/etc/hosts".into()),
                rights: FileRights::default(),
            }),
            granted_at: 1,
            expires_at: 0,
        });
        let same_but_grants = logged(&context);
        assert_eq!(same_but_grants.facts, facts(&Context { now: 1, ..context.clone() }));
        assert_eq!(same_but_grants.context(), Some(context.clone()));
        assert_eq!(LoggedContext { facts: Value::Null, ..logged(&context) }.context(), None);
    }

    #[test]
    fn contexts_with_the_same_facts_are_known_without_writing_them() {
        let one = Context {
            session_id: "s".to_owned(),
            agent: AgentInfo::default(),
            workspace: Workspace::default(),
            machine: Machine::default(),
            interactive: false,
            now: 1,
            grants: Vec::new(),
            explain: false,
            attributes: Vec::new(),
        };
        let attribute = Attribute { name: "a:b".to_owned(), value: "1".to_owned() };
        let mut others = vec![one.clone(); 9];
        others[0].session_id.push('x');
        others[1].agent.model = Some("m".to_owned());
        others[2].workspace.trusted = true;
        others[3].machine.path.push("/bin".to_owned());
        others[4].interactive = true;
        others[5].attributes.push(attribute);
        others[6].now = 2;
        others[7].explain = true;
        for other in &others {
            assert_eq!(are_facts_the_same(&one, other), facts(&one) == facts(other), "{other:?}");
        }
        assert_eq!(others.iter().filter(|other| are_facts_the_same(&one, other)).count(), 3);
    }
}
