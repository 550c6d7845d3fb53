//! Words and phrases that texts for users must not contain.

use std::path::Path;

use anyhow::Result;

use crate::project;

/// Words that texts for users must not contain, and what to write instead.
const BANNED: [(&str, &str); 40] = [
    ("whoever", "name the person or program"),
    ("somebody", "name the person: the user, a publisher"),
    ("mended", "fix"),
    ("nobody vouches", "without a trusted signature"),
    ("nobody has signed", "unsigned"),
    ("nobody had an opinion", "no rule matched"),
    ("nobody is trusted", "no trusted publishers"),
    ("keep blocked", "No"),
    ("holds here", "applies here"),
    ("hold here", "apply here"),
    ("comes to grief", "fails"),
    ("put right", "fix"),
    ("nothing is in the lock", "No extra policies installed"),
    ("say whose packs", "show trusted publishers"),
    ("tell every mistake", "check"),
    ("taken into the lock", "added"),
    ("nobody is there to ask", "nobody could be asked"),
    ("nobody was there", "nobody could be asked"),
    ("nothing is permitted: ", "every tool is blocked: "),
    ("nothing holds a command", "this runs with your full rights, unprotected"),
    ("nothing that counts here", "say nothing"),
    ("cannot be seen from outside", "Portcullis cannot confine it"),
    ("settings files have no words", "this cannot be stored in a settings file"),
    ("seen by whoever", "that a command can see"),
    ("takes settings from it", "reads settings from it"),
    ("all that it makes", "creating and writing files"),
    ("outside of the box", "outside the sandbox"),
    ("outside the box", "outside the sandbox"),
    ("in the box", "in the sandbox"),
    ("nobody has ", "no user, no program: say which"),
    ("what is said", "name it: the plan, the verdict"),
    ("what it says counts", "its verdict counts"),
    ("what was said", "name it: the answer"),
    ("says of itself", "the description"),
    ("so long an ", "how long"),
    ("after so long", "the time after which"),
    ("is told of", "hears about"),
    ("the least that", "the weakest accepted"),
    ("it only loosens", "it would loosen the rules"),
    ("this very ", "exactly this"),
];

/// Sources whose string literals and help texts users read.
const SOURCES: [&str; 25] = [
    "guest/text-policy/src",
    "guest/workspace/src",
    "host/approvals/src",
    "host/audit/src",
    "host/bootstrap/src",
    "host/cli/src",
    "host/command-line/src",
    "host/credential-broker/src",
    "host/decision/src",
    "host/exec-surface/src",
    "host/export/src",
    "host/network-gate/src",
    "host/packs/src",
    "host/policy-commands/src",
    "host/policy-tools/src",
    "host/settings-format/src",
    "host/sandbox/src",
    "host/server/src",
    "host/session/src",
    "host/session-sandbox/src",
    "host/settings/src",
    "host/teams/src",
    "host/vcs/src",
    "pi/src",
    "policies",
];

/// Files and directories of documents.
const DOCUMENTS: [&str; 4] = ["README.md", "docs", "pi/README.md", "wit"];

/// Texts of the questions, which have a check of their own, and the page that shows the earlier ones.
const EXCEPT: [&str; 2] = ["pi/src/prompt.ts", "docs/decisions/0025-before-and-after.md"];

/// Returns a line for each banned word.
pub(super) fn problems() -> Result<Vec<String>> {
    let root = project::root();
    let mut problems = Vec::new();
    for place in SOURCES.iter().chain(&DOCUMENTS) {
        for file in files(&root.join(place))? {
            let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
            if EXCEPT.iter().any(|except| name.starts_with(except)) || is_test(&name) {
                continue;
            }
            let text = std::fs::read_to_string(&file)?;
            let is_document = name.ends_with(".md") || name.ends_with(".wit");
            let is_help = name.contains("/args");
            for (number, line) in without_tests(&text).lines().enumerate() {
                let shown = if is_document { line.to_owned() } else { user_text(line, is_help) };
                for (banned, better) in found(&shown) {
                    problems.push(format!("{name}:{}: “{banned}”; better: {better}", number + 1));
                }
            }
        }
    }
    Ok(problems)
}

/// Returns a source without the module of tests at its end. Modules in files of their own are looked at by their names.
fn without_tests(text: &str) -> &str {
    text.match_indices("\n#[cfg(test)]\n")
        .find(|(at, begin)| {
            let rest = text.get(at + begin.len()..).unwrap_or_default();
            rest.lines().next().is_some_and(|line| line.starts_with("mod ") && line.ends_with('{'))
        })
        .and_then(|(at, _)| text.get(..at))
        .unwrap_or(text)
}

/// Returns the banned words of a text, with what is better.
fn found(text: &str) -> Vec<(&'static str, &'static str)> {
    let text = text.to_lowercase();
    BANNED.into_iter().filter(|(banned, _)| text.contains(banned)).collect()
}

fn is_test(name: &str) -> bool {
    name.contains("tests") || name.contains("/test/") || name.contains("_test")
}

/// Returns the parts of a line of code that users may read: no comments, except those of arguments, which are help.
fn user_text(line: &str, is_help: bool) -> String {
    let line = line.trim();
    match line.strip_prefix("///") {
        Some(help) if is_help => return help.to_owned(),
        Some(_) => return String::new(),
        None => {}
    }
    let is_comment = ["//", "*", "/*"].iter().any(|start| line.starts_with(start));
    // Names in code are `camelCase` or `snake_case`; several words of prose are a text, or part of one.
    if is_comment || !line.contains(' ') { String::new() } else { line.to_owned() }
}

/// Returns the texts below a path.
fn files(path: &Path) -> Result<Vec<std::path::PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut all = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        let is_text = path.extension().is_some_and(|kind| {
            ["rs", "ts", "md", "py", "js", "toml", "wit"].iter().any(|known| kind == *known)
        });
        if path.is_dir() || is_text {
            all.extend(files(&path)?);
        }
    }
    all.sort();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_looked_at_and_code_is_not() {
        assert_eq!(user_text("/// Whoever asks.", false), "");
        assert_eq!(user_text("/// Whoever asks.", true), " Whoever asks.");
        assert_eq!(user_text("// whoever", true), "");
        assert_eq!(user_text("whoever();", false), "");
        assert!(found(&user_text("page.line(\"Whoever asks\");", false)).len() == 1);
        assert!(found("Fix the file. Applies here.").is_empty());
    }

    #[test]
    fn only_the_tests_at_the_end_are_left_out() {
        let source = "mod a;\n#[cfg(test)]\nmod a_tests;\n\nfn one() {}\n";
        assert_eq!(without_tests(source), source);
        let with_tests = format!("{source}\n#[cfg(test)]\nmod tests {{\n}}\n");
        assert_eq!(without_tests(&with_tests), source);
    }

    #[test]
    fn banned_words_are_in_lower_case() {
        assert!(BANNED.iter().all(|(banned, _)| banned.chars().all(|letter| !letter.is_uppercase())));
    }
}
