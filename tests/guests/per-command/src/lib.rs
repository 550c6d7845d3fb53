//! Gives each command the rules that its script contains between two marks: `: @@wall-ms=500 drop=HOME@@; sleep 9`.

use portcullis_sdk::{
    Action, ActionKinds, ConfigError, Context, Descriptor, Effect, EnvironmentRule, Evaluation, FilePattern,
    FileRights, FileRule, Never, Policy, Profile, Request,
};

const RULE: &str = "per-command.rule";

struct PerCommand;

impl Policy for PerCommand {
    type Config = Never;

    fn describe() -> Descriptor {
        Descriptor::new("test:per-command", "0.1.0", "Gives each command the rules that its script names")
            .handles(ActionKinds::COMMAND)
            .rule(RULE, "The script said so")
    }

    fn configure(_config: Never) -> Result<Self, Vec<ConfigError>> {
        Ok(Self)
    }

    fn evaluate(&self, _request: &Request, _context: &Context) -> Evaluation {
        Evaluation::allow(RULE, "every command runs")
    }

    fn for_command(&self, request: &Request, _context: &Context) -> Option<Profile> {
        let Action::Command(command) = &request.action else { return None };
        let words = command.script.split("@@").nth(1)?;
        Some(words.split_whitespace().filter_map(|word| word.split_once('=')).fold(Profile::new(), add))
    }
}

fn add(mut profile: Profile, (key, value): (&str, &str)) -> Profile {
    let number = value.parse().ok();
    let limits = &mut profile.limits;
    match key {
        "wall-ms" => limits.wall_ms = number,
        "cpu-ms" => limits.cpu_ms = number,
        "memory-mib" => limits.memory_mib = number,
        "processes" => limits.processes = number,
        "open-files" => limits.open_files = number,
        "file-mib" => limits.file_mib = number,
        "output-kib" => limits.output_kib = number,
        "drop" => profile.environment.push(variable(value, Effect::Deny)),
        "keep" => profile.environment.push(variable(value, Effect::Allow)),
        "set" => profile.variables.push((value.to_owned(), "given".to_owned())),
        "allow" => return profile.file(file(value, Effect::Allow)),
        "ask" => return profile.file(file(value, Effect::Ask)),
        "deny" => return profile.file(file(value, Effect::Deny)),
        _ => {}
    }
    profile
}

fn variable(name: &str, effect: Effect) -> EnvironmentRule {
    EnvironmentRule {
        id: RULE.to_owned(),
        name: name.to_owned(),
        effect,
        reason: "the script said so".to_owned(),
        setting: String::new(),
    }
}

fn file(path: &str, effect: Effect) -> FileRule {
    let rights = FileRights::READ | FileRights::WRITE;
    FileRule::new(RULE, FilePattern::Tree(path.to_owned()), rights, effect)
}

portcullis_sdk::export_policy!(PerCommand);
