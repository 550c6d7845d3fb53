//! Packages that a message, a page or a script tells people to install: each must belong to a known publisher.
//!
//! An attacker can register an unregistered name. The attacker's code then runs on the machine of every reader who
//! installs that package.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::project;
use crate::run::quiet;

/// Packages that may be named, each with its publisher.
const KNOWN: [(&str, &str); 8] = [
    ("@anthropic-ai/sandbox-runtime", "Anthropic, on npm"),
    ("@earendil-works/pi-coding-agent", "pi itself, on npm"),
    // Nothing of ours may be published, and no release made, before the scope is registered.
    ("@portcullis/pi", "ours, on npm"),
    ("cargo-fuzz", "rust-fuzz, on crates.io"),
    ("clang", "Debian"),
    ("lld", "Debian"),
    ("tmux", "Debian"),
    ("cargo-deny", "Embark, on crates.io"),
];

/// The commands that come before the names.
const VERBS: [&str; 9] = [
    "cargo install ",
    "npm install ",
    "npm i ",
    "pi install ",
    "pip install ",
    "pip3 install ",
    "pipx install ",
    "apt install ",
    "apt-get install ",
];
/// Files that people read.
const ENDINGS: [&str; 8] = ["rs", "ts", "md", "mjs", "sh", "py", "json", "toml"];

pub(super) fn problems() -> Result<Vec<String>> {
    let listed = quiet(Command::new("git").args(["ls-files", "-z"]).current_dir(project::root()))
        .context("listing the files of the clone")?;
    let mut problems = Vec::new();
    for file in listed.split('\0').filter(|file| is_read_by_people(file)) {
        let Ok(text) = fs::read_to_string(project::root().join(file)) else { continue };
        problems.extend(unknown(&text).into_iter().map(|name| {
            format!(
                "{file} tells people to install `{name}`: whose it is stands in xtask/src/tidy/installs.rs"
            )
        }));
    }
    Ok(problems)
}

/// Tests run such commands in their own directories, and are not read as instructions.
fn is_read_by_people(file: &str) -> bool {
    let ending = file.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_a_test = file.split('/').any(|part| matches!(part, "tests" | "test" | "tests.rs"));
    ENDINGS.contains(&ending) && !is_a_test && !file.ends_with("tidy/installs.rs")
}

/// Unknown names after a verb, in the order of the text. Options and paths are not names.
fn unknown(text: &str) -> Vec<String> {
    // A name may be on the line below its verb, and before a quotation mark.
    let words = text.replace("\\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ");
    let mut unknown = Vec::new();
    for verb in VERBS {
        for (at, _) in words.match_indices(verb) {
            let before = words.get(..at).and_then(|before| before.chars().next_back());
            if before.is_some_and(|before| before.is_alphanumeric() || before == '-') {
                continue;
            }
            let rest = words.get(at + verb.len()..).unwrap_or_default();
            // pi names the registry as well.
            let rest = rest.strip_prefix("npm:").unwrap_or(rest);
            let end = rest.find(['`', '\'', '"', ')', ';', '&', '|', '\\', ',', ':']).unwrap_or(rest.len());
            let named = rest.get(..end).unwrap_or_default().split(' ');
            unknown.extend(named.filter(|name| is_name(name)).take(MOST).map(str::to_owned));
        }
    }
    unknown
}

/// In a sentence that continues after the command.
const MOST: usize = 2;

fn is_name(word: &str) -> bool {
    let is_known = KNOWN
        .iter()
        .any(|(name, _)| word.rsplit_once('@').is_some_and(|(known, _)| known == *name) || word == *name);
    let begins = word.chars().next().is_some_and(|first| first.is_ascii_lowercase() || first == '@');
    let is_a_place = word.contains('/') && !word.starts_with('@');
    begins && !is_known && !is_a_place && !word.contains(['{', '$', '<']) && word.len() > 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_behind_verbs_are_found() {
        for (text, expected) in [
            ("run `cargo install portcullis-cli`", &["portcullis-cli"][..]),
            ("needs `cargo install cargo-fuzz`.", &[]),
            ("`cargo install --path host/cli`", &[]),
            ("install it with `npm install -g \\\n   @earendil-works/pi-coding-agent`", &[]),
            ("npm install -g somebody's", &["somebody"]),
            ("pnpm install x-y", &[]),
            ("(Debian: `apt install clang lld`)", &[]),
            ("apt-get install unknown-package", &["unknown-package"]),
            ("how npm installs", &[]),
            ("`pi install npm:@portcullis/pi`", &[]),
            ("`pi install npm:@portcullis/pi@0.1.0`", &[]),
            ("`pi install npm:@portcullis/other`", &["@portcullis/other"]),
        ] {
            assert_eq!(unknown(text), expected, "{text}");
        }
    }
}
