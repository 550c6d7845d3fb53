//! Decides on later stages of allowed connections: denies one resolved name, one TLS server name, DELETE requests, and
//! one path to one credential; asks about requests that send data.

use portcullis_sdk::{
    Action, ActionKinds, ConfigError, Context, Descriptor, Endpoint, Evaluation, Never, Policy, Request, Stage,
};

struct Stages;

impl Policy for Stages {
    type Config = Never;

    fn describe() -> Descriptor {
        Descriptor::new("test:stages", "0.1.0", "Decides about later stages of connections")
            .handles(ActionKinds::NETWORK_RESOLVED | ActionKinds::NETWORK_CLIENT_HELLO | ActionKinds::NETWORK_HTTP)
            .rule("stages.resolved", "A name that must not be resolved")
            .rule("stages.hello", "A server name that must not be used")
            .rule("stages.delete", "Nothing is deleted")
            .rule("stages.credential", "One credential is not for one path")
            .rule("stages.send", "Sending is asked about")
    }

    fn configure(_config: Never) -> Result<Self, Vec<ConfigError>> {
        Ok(Self)
    }

    fn evaluate(&self, request: &Request, _context: &Context) -> Evaluation {
        let Action::Network(access) = &request.action else { return Evaluation::abstain() };
        match &access.stage {
            Stage::Resolved(addresses) if is(&access.target, "other.allowed.test") => {
                Evaluation::deny("stages.resolved", format!("it leads to {}", addresses.join(" and ")))
            }
            Stage::ClientHello(name) if name == "sub.allowed.test" => {
                Evaluation::deny("stages.hello", format!("the server name is {name}"))
            }
            Stage::Http(head) if head.method == "DELETE" => {
                Evaluation::deny("stages.delete", format!("{} has {}", head.url, head.header_names.join(" and ")))
            }
            Stage::Http(head) if head.url.ends_with("/guarded") && uses(request, "forge-key") => {
                Evaluation::deny("stages.credential", "the credential forge-key is not for this path")
            }
            Stage::Http(head) if head.method == "POST" => {
                Evaluation::ask("stages.send", format!("something is sent to {}", head.url), "Send it?")
            }
            _ => Evaluation::abstain(),
        }
    }
}

fn uses(request: &Request, credential: &str) -> bool {
    let is_it = |value: &str| value == format!("\"{credential}\"");
    request.attributes.iter().any(|fact| fact.name == "host:credential" && is_it(&fact.value))
}

fn is(target: &Endpoint, wanted: &str) -> bool {
    matches!(target, Endpoint::Domain(name) if name == wanted)
}

portcullis_sdk::export_policy!(Stages);
