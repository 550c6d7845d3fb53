//! A request as questions about a principal, an action and a resource.

use portcullis_sdk::{
    Action, Context, Direction, Endpoint, NetworkAccess, Origin, Request, ToolCall, Transport,
};
use serde_json::{Map, Value, json};

use crate::entity::Entity;
use crate::{commands, files};

/// One question of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The agent, or the user.
    pub principal: Entity,
    /// The name of the action.
    pub action: &'static str,
    /// The subject of the action.
    pub resource: Entity,
    /// Facts about the session.
    pub context: Map<String, Value>,
}

impl Question {
    /// Returns the group of the action: `view` or `change` for files.
    pub fn group(&self) -> Option<&'static str> {
        files::group(self.action)
    }
}

/// Returns the questions of a request; none if it is of a kind that a text does not judge.
pub fn questions<'a>(request: &'a Request, context: &Context) -> impl Iterator<Item = Question> + 'a {
    type Asked<'a> = Box<dyn Iterator<Item = (&'static str, Entity)> + 'a>;
    let asked: Asked<'a> = match &request.action {
        Action::File(access) => Box::new(files::resources(access).into_iter()),
        Action::Command(command) => Box::new(commands::resources(command).map(|entity| ("exec", entity))),
        Action::Escalation(command) => {
            Box::new(commands::resources(command).map(|entity| ("escalate", entity)))
        }
        Action::Network(access) => {
            Box::new(std::iter::once((connection_action(access.direction), host(access))))
        }
        Action::Tool(call) => Box::new(std::iter::once(("call", tool(call)))),
        Action::Socket(_) | Action::Other(_) => Box::new(std::iter::empty()),
    };
    let (principal, facts) = (principal(request, context), facts(request, context));
    asked.map(move |(action, resource)| Question {
        principal: principal.clone(),
        action,
        resource,
        context: facts.clone(),
    })
}

/// Returns the user for an action that the user typed, or else the agent or sub-agent.
fn principal(request: &Request, context: &Context) -> Entity {
    if request.origin == Origin::User {
        return Entity::new("User", context.machine.user.as_str(), json!({}));
    }
    let name = match context.agent.sub_agent.as_str() {
        "" => "main",
        name => name,
    };
    let program = context.agent.name.as_str();
    let mut agent = Entity::new("Agent", name, json!({ "program": program }));
    if let Some(model) = &context.agent.model {
        agent.attributes.insert("model".into(), model.as_str().into());
    }
    agent
}

fn facts(request: &Request, context: &Context) -> Map<String, Value> {
    let origin = match request.origin {
        Origin::Agent => "agent",
        Origin::User => "user",
        Origin::Extension => "extension",
        Origin::Process => "process",
    };
    let facts = json!({
        "project": context.cwd(),
        "trusted": context.workspace.trusted,
        "home": context.machine.home,
        "temp": context.machine.temp,
        "user": context.machine.user,
        "os": context.machine.os,
        "interactive": context.interactive,
        "origin": origin,
        "now": context.now,
    });
    let Value::Object(mut facts) = facts else { return Map::new() };
    if let Some(vcs) = &context.workspace.vcs {
        let mut git = Map::from_iter([("kind".to_owned(), Value::from(vcs.kind.as_str()))]);
        git.extend(vcs.branch.as_deref().map(|branch| ("branch".to_owned(), branch.into())));
        git.extend(vcs.dirty.map(|dirty| ("dirty".to_owned(), dirty.into())));
        facts.insert("vcs".into(), git.into());
    }
    facts
}

fn connection_action(direction: Direction) -> &'static str {
    match direction {
        Direction::Outbound => "connect",
        Direction::Listen => "listen",
    }
}

fn host(access: &NetworkAccess) -> Entity {
    let transport = match access.transport {
        Transport::Tcp => "tcp",
        Transport::Udp => "udp",
        Transport::Other => "other",
    };
    let (name, id) = match &access.target {
        Endpoint::Domain(name) => (name, format!("{name}:{}", access.port)),
        Endpoint::Address(address) if address.contains(':') => {
            (address, format!("[{address}]:{}", access.port))
        }
        Endpoint::Address(address) => (address, format!("{address}:{}", access.port)),
    };
    let attributes = json!({
        "name": name,
        "port": access.port,
        "transport": transport,
        "program": access.process.program,
    });
    let mut host = Entity::new("Host", id, attributes);
    match &access.target {
        Endpoint::Domain(name) => host.parents = domains(name),
        Endpoint::Address(address) => drop(host.attributes.insert("address".into(), address.as_str().into())),
    }
    host
}

/// Returns a name and the domains above it: `api.example.com`, `example.com`, `com`.
fn domains(name: &str) -> Vec<(&'static str, String)> {
    let above = name.match_indices('.').filter_map(|(at, _)| name.get(at + 1..));
    std::iter::once(name).chain(above).map(|domain| ("Domain", domain.to_owned())).collect()
}

fn tool(call: &ToolCall) -> Entity {
    let attributes = json!({ "name": call.name, "provider": call.provider, "input": call.input });
    let mut tool = Entity::new("Tool", call.name.as_str(), attributes);
    if let Ok(Value::Object(arguments)) = serde_json::from_str(&call.input) {
        tool.arguments = arguments;
    }
    tool
}

#[cfg(test)]
mod tests {
    use portcullis_sdk::testing;

    use super::*;

    #[test]
    fn a_host_is_in_its_domains() {
        let context = testing::context("/srv/app");
        let asked: Vec<_> = questions(&testing::connect("api.example.com", 443), &context).collect();
        let [question] = asked.as_slice() else { panic!("{asked:?}") };
        assert_eq!((question.action, question.resource.id.as_str()), ("connect", "api.example.com:443"));
        let domains: Vec<_> = question.resource.parents.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(domains, ["api.example.com", "example.com", "com"]);
        assert_eq!(question.context.get("origin"), Some(&"process".into()));
        let address = testing::connect("::1", 80);
        let ids: Vec<_> = questions(&address, &context).map(|question| question.resource.id).collect();
        assert_eq!(ids, ["[::1]:80"]);
    }

    #[test]
    fn the_arguments_of_a_tool_are_read() {
        let context = testing::context("/srv/app");
        let mut request = testing::tool("deploy", "mcp:cloud");
        if let Action::Tool(call) = &mut request.action {
            call.input = r#"{"stage":"production"}"#.into();
        }
        let tool = questions(&request, &context).next().expect("a question").resource;
        assert_eq!(tool.arguments.get("stage"), Some(&"production".into()));
        let user = Request { origin: Origin::User, ..request };
        let principal = questions(&user, &context).map(|question| question.principal.kind).next();
        assert_eq!(principal, Some("User"));
    }
}
