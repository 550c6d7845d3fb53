//! The rules in Cedar.

use cedar_policy::{
    Authorizer, Context, Decision, Entities, EntityUid, PolicySet, Request, RestrictedExpression,
};

use crate::rules::{Ask, PORT, Rules};

/// The form of the rules.
#[derive(Clone, Copy)]
pub enum Form {
    /// One policy for each rule, the usual style. The answer names the policy.
    Many,
    /// One policy with a single condition, which short-circuits.
    One,
}

impl Form {
    pub const ALL: [Self; 2] = [Self::Many, Self::One];
}

pub struct Engine {
    authorizer: Authorizer,
    policies: PolicySet,
    entities: Entities,
}

impl Engine {
    pub fn load(rules: &Rules, form: Form) -> Self {
        let text = match form {
            Form::Many => many(rules),
            Form::One => one(rules),
        };
        Self {
            authorizer: Authorizer::new(),
            policies: text.parse().expect("policies"),
            entities: Entities::empty(),
        }
    }

    pub fn allows(&self, request: &Request) -> bool {
        let response = self.authorizer.is_authorized(request, &self.policies, &self.entities);
        assert_eq!(response.diagnostics().errors().count(), 0, "a policy fails");
        response.decision() == Decision::Allow
    }
}

fn many(rules: &Rules) -> String {
    let read = rules.readable().map(|top| policy("read", &within(top)));
    let write = rules.writable().map(|top| policy("change", &within(top)));
    let connect = rules.domains.iter().map(|name| policy("connect", &below(name)));
    read.chain(write).chain(connect).collect()
}

fn policy(action: &str, condition: &str) -> String {
    format!("permit(principal, action == Action::\"{action}\", resource) when {{ {condition} }};\n")
}

fn one(rules: &Rules) -> String {
    let any = |action: &str, conditions: Vec<String>| {
        let any = if conditions.is_empty() { "false".to_owned() } else { conditions.join(" || ") };
        format!("(action == Action::\"{action}\" && ({any}))")
    };
    let all = [
        any("read", rules.readable().map(within).collect()),
        any("change", rules.writable().map(within).collect()),
        any("connect", rules.domains.iter().map(|name| below(name)).collect()),
    ];
    format!("permit(principal, action, resource) when {{ {} }};", all.join(" || "))
}

fn within(top: &str) -> String {
    format!("(context.path == \"{top}\" || context.path like \"{top}/*\")")
}

fn below(name: &str) -> String {
    format!("(context.port == {PORT} && context.host like \"*.{name}\")")
}

pub fn request(ask: &Ask) -> Request {
    let text = |value: &str| RestrictedExpression::new_string(value.to_owned());
    let (action, facts) = match ask {
        Ask::Read(path) => ("read", vec![("path".to_owned(), text(path))]),
        Ask::Change(path) => ("change", vec![("path".to_owned(), text(path))]),
        Ask::Connect(host, port) => {
            let port = RestrictedExpression::new_long((*port).into());
            ("connect", vec![("host".to_owned(), text(host)), ("port".to_owned(), port)])
        }
    };
    let entity =
        |kind: &str, id: &str| -> EntityUid { format!("{kind}::\"{id}\"").parse().expect("an entity") };
    let context = Context::from_pairs(facts).expect("facts");
    Request::new(entity("Agent", "pi"), entity("Action", action), entity("Target", "x"), context, None)
        .expect("a request")
}
