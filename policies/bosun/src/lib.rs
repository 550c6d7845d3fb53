//! Lists of places, reservations among agents, and read-only commands for some of them.
//!
//! Agents read the project and the tools, write in the few places of `allow_write`, and nowhere else. Denials apply to
//! pi's tools and to commands alike. Several agents in one project avoid conflicts by reserving paths.

mod claims;
mod config;
mod files;
mod rule_ids;

use portcullis_sdk::{
    Action, ActionKinds, ConfigError, Context, Descriptor, Evaluation, FileAccess, Policy, Profile, Request,
};

use config::{Config, Reservations};
use rule_ids::{
    ALLOW_READ, ALLOW_WRITE, CLAIM, COMMAND, DENY_READ, DENY_WRITE, ELSEWHERE, FREE, OWN, READ_ONLY,
    RESERVED, UNCLAIMED, UNKNOWN,
};

/// The policy, configured.
#[derive(Debug)]
pub struct Bosun {
    config: Config,
}

impl Policy for Bosun {
    type Config = Config;

    fn describe() -> Descriptor {
        Descriptor::new(
            "portcullis:bosun",
            env!("CARGO_PKG_VERSION"),
            "Lists of places, and agents that keep out of each other's way",
        )
        .rule(ALLOW_READ, "places that may be read without a question")
        .rule(DENY_READ, "files that the agent may neither read nor write")
        .rule(ALLOW_WRITE, "places that may be written")
        .rule(DENY_WRITE, "files that the agent may not write")
        .rule(ELSEWHERE, "other places may not be written")
        .rule(READ_ONLY, "commands of this agent are read-only")
        .rule(COMMAND, "commands run in the sandbox")
        .rule(CLAIM, "agents reserve paths and give them back")
        .rule(RESERVED, "another agent has reserved it")
        .rule(UNCLAIMED, "agents may write only files that they have reserved")
        .rule(FREE, "no other agent has reserved it")
        .rule(OWN, "the first agent to write a file reserves it")
        .rule(UNKNOWN, "no writes while the reservations are unknown")
        .handles(ActionKinds::FILE | ActionKinds::COMMAND | ActionKinds::TOOL)
        .config_schema(include_str!("../config.schema.json"))
    }

    fn configure(config: Config) -> Result<Self, Vec<ConfigError>> {
        config.check().map(|config| Self { config })
    }

    fn evaluate(&self, request: &Request, context: &Context) -> Evaluation {
        match &request.action {
            Action::File(access) => self.file(request, access),
            Action::Command(_) => {
                Evaluation::allow(COMMAND, "it runs in the sandbox, under the rules on files and hosts")
            }
            Action::Tool(call) if self.reserves() => claims::tool(&self.config, request, context, call),
            Action::Tool(_)
            | Action::Network(_)
            | Action::Socket(_)
            | Action::Escalation(_)
            | Action::Other(_) => Evaluation::abstain(),
        }
    }

    fn standing(&self, context: &Context) -> Profile {
        let profile = Profile { files: files::standing(&self.config, context), ..Profile::new() };
        if self.reserves() { profile.with_reservations() } else { profile }
    }

    fn for_command(&self, request: &Request, context: &Context) -> Option<Profile> {
        let mut files = if self.is_read_only(context) { files::read_only(context) } else { Vec::new() };
        if self.reserves() {
            // Without a list of claims nothing is written.
            files.extend(claims::command(request).unwrap_or_else(|| files::read_only(context)));
        }
        (!files.is_empty()).then(|| Profile { files, ..Profile::new() })
    }

    fn brief(&self, context: &Context) -> String {
        let list = |entries: &[String]| entries.join(", ");
        let mut text = format!(
            "You work in `{}`. Files are written only in {} and in the temporary directory, and never those named in \
             {}. Nobody reads {}.",
            context.cwd(),
            list(&self.config.allow_write),
            list(&self.config.deny_write),
            list(&self.config.deny_read),
        );
        if self.is_read_only(context) {
            text.push_str(" Your commands write nothing: change files with `write` and `edit`.");
        }
        text.push_str(match self.config.reservations {
            Reservations::Off => "",
            Reservations::Claimed => {
                " Other agents work here too: reserve what you are about to change with `reserve`, and give it back."
            }
            Reservations::Required => " Reserve what you are about to change with `reserve`; nothing else is written.",
            Reservations::Automatic => {
                " Other agents work here too: the first one to write a file has it until it gives it back with \
                 `reserve`."
            }
        });
        text
    }
}

impl Bosun {
    fn file(&self, request: &Request, access: &FileAccess) -> Evaluation {
        if let Some(index) = files::unread_name(&self.config, &access.path.canonical) {
            return Evaluation::deny(DENY_READ, "`deny_read` names files like this one")
                .setting(format!("/deny_read/{index}"));
        }
        let changed = claims::changed(&access.path, &access.operation);
        if changed.is_empty() || !self.reserves() {
            return Evaluation::abstain();
        }
        claims::write(&self.config, request, &changed)
    }

    fn reserves(&self) -> bool {
        self.config.reservations != Reservations::Off
    }

    fn is_read_only(&self, context: &Context) -> bool {
        let name = match context.agent.sub_agent.as_str() {
            "" => "main",
            name => name,
        };
        self.config.read_only_bash.iter().any(|entry| entry == "*" || entry == name)
    }
}

portcullis_sdk::export_policy!(Bosun);

#[cfg(test)]
mod tests;
