//! Environment variables that make git run programs or change its settings, and how commands set them.

use portcullis_sdk::{ParsedScript, SimpleCommand};

/// Variables that count with any value.
const ALWAYS: [&str; 14] = [
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_PROXY_COMMAND",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "GIT_EXTERNAL_DIFF",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_SYSTEM",
    "GIT_ALLOW_PROTOCOL",
];
/// Variables that count unless their value is a program without effect, which is a common way to suppress an editor.
const EDITORS: [&str; 5] = ["GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_PAGER", "EDITOR", "VISUAL"];
const HARMLESS: [&str; 6] = ["", ":", "true", "/bin/true", "/usr/bin/true", "cat"];
/// Commands that set variables for those after them.
const GIVING: [&str; 5] = ["export", "declare", "typeset", "readonly", "local"];

/// Returns the variable that makes this git command run something, if there is one.
pub(crate) fn running(script: &ParsedScript, command: &SimpleCommand) -> Option<String> {
    let mut commands = vec![command];
    // `env`, `sudo` and the like get variables in their own words.
    while let Some(parent) = commands.last().and_then(|last| last.parent) {
        let above = script.commands.get(usize::try_from(parent).ok()?)?;
        if commands.len() > script.commands.len() {
            break;
        }
        commands.push(above);
    }
    commands
        .extend(script.commands.iter().filter(|one| one.name().is_some_and(|name| GIVING.contains(&name))));
    let given = script.commands.iter().filter(|one| one.argv.is_empty());
    let assigned = commands.iter().copied().chain(given).flat_map(|one| {
        one.assignments
            .iter()
            .map(|(name, word)| (name.as_str(), word.literal.then_some(word.value.as_str())))
    });
    // Words of git itself are text, such as a message.
    let told = commands.iter().skip(1).flat_map(|one| {
        one.arguments()
            .flatten()
            .filter_map(|word| word.split_once('='))
            .map(|(name, value)| (name, Some(value)))
    });
    assigned.chain(told).find(|(name, value)| runs(name, *value)).map(|(name, _)| name.to_owned())
}

fn runs(name: &str, value: Option<&str>) -> bool {
    let is_numbered = ["GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"].iter().any(|prefix| name.starts_with(prefix));
    let is_harmless = value.is_some_and(|value| HARMLESS.contains(&value));
    is_numbered || ALWAYS.contains(&name) || EDITORS.contains(&name) && !is_harmless
}
