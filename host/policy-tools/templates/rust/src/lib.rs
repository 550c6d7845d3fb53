//! Protects files by name, and keeps the agent from publishing.
//!
//! An example to change: rules (`standing`) hold for tools and commands, verdicts
//! (`evaluate`) are for what rules cannot say.

use portcullis_sdk::{
    ActionKinds, ConfigError, Context, Descriptor, Evaluation, FilePattern, FileRights, FileRule, Policy,
    Profile, Request,
};
use serde::Deserialize;

/// `config.schema.json` says the same for people and editors.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// Files below the working directory that nobody changes.
    #[serde(default = "licence")]
    keep: Vec<String>,
}

fn licence() -> Vec<String> {
    vec!["LICENSE".to_owned()]
}

pub struct Example {
    keep: Vec<String>,
}

impl Policy for Example {
    type Config = Config;

    fn describe() -> Descriptor {
        Descriptor::new("__ID__", env!("CARGO_PKG_VERSION"), "Files that stay, and no publishing")
            .rule("files.keep", "these files stay as they are")
            .rule("command.publish", "publishing is for people")
            .rule("command.unread", "what may publish is asked for")
            .handles(ActionKinds::COMMAND)
            .config_schema(include_str!("../config.schema.json"))
    }

    fn configure(config: Config) -> Result<Self, Vec<ConfigError>> {
        for (index, name) in config.keep.iter().enumerate() {
            if name.is_empty() || name.starts_with('/') {
                let error = ConfigError::new(format!("/keep/{index}"), "write a path below the working directory");
                return Err(vec![error]);
            }
        }
        Ok(Self { keep: config.keep })
    }

    fn standing(&self, context: &Context) -> Profile {
        self.keep.iter().enumerate().fold(Profile::new(), |profile, (index, name)| {
            let path = FilePattern::exact(format!("{}/{name}", context.cwd()));
            profile.file(
                FileRule::deny("files.keep", path, FileRights::WRITE)
                    .reason("this file stays as it is")
                    .setting(format!("/keep/{index}")),
            )
        })
    }

    fn evaluate(&self, request: &Request, _context: &Context) -> Evaluation {
        let publishing = ["npm publish", "cargo publish"];
        if publishing.iter().any(|pattern| request.runs(pattern)) {
            return Evaluation::deny("command.publish", "publishing is for people")
                .hint("prepare the release and ask the user to publish it");
        }
        if publishing.iter().any(|pattern| request.could_run(pattern)) {
            return Evaluation::ask(
                "command.unread",
                "the command may publish something",
                "Run it all the same?",
            );
        }
        Evaluation::abstain()
    }
}

portcullis_sdk::export_policy!(Example);

#[cfg(test)]
mod tests {
    #[test]
    fn cases() {
        let file = include_str!("../tests/cases.toml");
        let report = portcullis_sdk::cases::run::<super::Example>(file).unwrap();
        assert_eq!(report.failures, Vec::<String>::new());
    }
}
