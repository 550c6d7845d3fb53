//! Commands that are known to need a credential, by their words.

use std::path::{Path, PathBuf};

use portcullis_decision::path_text;
use portcullis_decision::request::{CommandExecution, SimpleCommand};

use crate::credential_offers::CredentialNeed;

/// Options of git before its command that take the next word.
const GIT_OPTIONS: &[&str] = &["-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"];
/// Options of `git push` that take the next word.
const PUSH_OPTIONS: &[&str] = &["-o", "--push-option", "--receive-pack", "--exec", "--repo"];
/// Commands of `gh` that send no request.
const OFFLINE: &[&str] = &["help", "version", "--version", "--help", "completion", "alias", "config", "auth"];

/// Returns the needs of a command, in order.
pub(super) fn of(command: &CommandExecution, home: &Path) -> Vec<CredentialNeed> {
    let (Ok(parsed), Some(mut directory)) = (&command.parsed, path_text::decode(&command.cwd.canonical))
    else {
        return Vec::new();
    };
    let mut needs = Vec::new();
    let mut is_elsewhere = false;
    for simple in &parsed.commands {
        let set_here = simple.assignments.iter().any(|(name, _)| is_of_registry(name));
        let Some(words) = literal(simple) else { continue };
        let Some((program, rest)) = words.split_first() else {
            is_elsewhere |= set_here;
            continue;
        };
        let need = match program.rsplit('/').next().unwrap_or_default() {
            "cd" => {
                if let [to] = rest {
                    directory = joined(&directory, to, home);
                }
                None
            }
            "git" => push(rest, &directory, home),
            "export" | "declare" | "typeset" => {
                is_elsewhere |= rest.iter().any(|word| is_of_registry(word));
                None
            }
            "npm" | "pnpm" if !is_elsewhere && !set_here && is_publication(rest) => {
                Some(CredentialNeed::Publish { directory: directory.clone() })
            }
            "gh" => rest.first().filter(|verb| !OFFLINE.contains(verb)).map(|_| CredentialNeed::Forge),
            _ => None,
        };
        needs.extend(need.filter(|need| !needs.contains(need)));
    }
    needs
}

/// Returns the words of a command if the program gets exactly these.
fn literal(simple: &SimpleCommand) -> Option<Vec<&str>> {
    let is_plain = simple.argv.iter().all(|word| word.literal || word.value.starts_with("~/"));
    is_plain.then(|| simple.argv.iter().map(|word| word.value.as_str()).collect())
}

fn joined(directory: &Path, word: &str, home: &Path) -> PathBuf {
    let path = match word.strip_prefix("~/") {
        Some(below) => home.join(below),
        None => directory.join(word),
    };
    path_text::normalize(&path)
}

/// Returns true if a command of npm publishes at the registry that the settings of npm name. At another registry the
/// credential would be of no use.
fn is_publication(words: &[&str]) -> bool {
    let is_elsewhere = |word: &&str| *word == "--dry-run" || word.starts_with("--registry");
    words.first() == Some(&"publish") && !words.iter().any(is_elsewhere)
}

/// Returns true for a variable that names the registry of npm, or the file that names it, in any case of its letters.
fn is_of_registry(assignment: &str) -> bool {
    let name = assignment.split('=').next().unwrap_or_default().to_ascii_lowercase();
    let setting = name.strip_prefix("npm_config_").or_else(|| name.strip_prefix("pnpm_config_"));
    setting.is_some_and(|setting| setting.ends_with("registry") || setting.ends_with("userconfig"))
}

fn push(words: &[&str], directory: &Path, home: &Path) -> Option<CredentialNeed> {
    let mut directory = directory.to_owned();
    let mut words = words.iter().copied();
    let rest: Vec<&str> = loop {
        match words.next()? {
            "-C" => directory = joined(&directory, words.next()?, home),
            option if GIT_OPTIONS.contains(&option) => drop(words.next()?),
            option if option.starts_with('-') => {}
            "push" => break words.collect(),
            _ => return None,
        }
    };
    if rest.iter().any(|word| ["-n", "--dry-run", "-h", "--help"].contains(word)) {
        return None;
    }
    let mut rest = rest.into_iter();
    let remote = loop {
        match rest.next() {
            Some(option) if PUSH_OPTIONS.contains(&option) => drop(rest.next()),
            Some(option) if option.starts_with('-') => {}
            other => break other,
        }
    };
    Some(CredentialNeed::Push { directory, remote: remote.map(str::to_owned) })
}

#[cfg(test)]
mod tests {
    use portcullis_decision::request::{PathKind, PathRef, Zone};

    use super::*;

    fn needs(script: &str) -> Vec<CredentialNeed> {
        let cwd = PathRef {
            given: "/p".into(),
            absolute: "/p".into(),
            canonical: "/p".into(),
            zone: Zone::Workspace,
            relative: ".".into(),
            kind: PathKind::Directory,
        };
        let command = CommandExecution {
            script: script.to_owned(),
            shell: None,
            cwd,
            parsed: portcullis_shell::read(script).map_err(|error| error.to_string()),
            timeout_ms: None,
            background: false,
        };
        of(&command, Path::new("/home/u"))
    }

    fn push(directory: &str, remote: Option<&str>) -> CredentialNeed {
        CredentialNeed::Push { directory: directory.into(), remote: remote.map(str::to_owned) }
    }

    #[test]
    fn commands_that_need_a_credential_are_seen() {
        assert_eq!(needs("git push"), [push("/p", None)]);
        assert_eq!(
            needs("git add . && git commit -m x && git push -u origin main"),
            [push("/p", Some("origin"))]
        );
        assert_eq!(needs("cd sub; /usr/bin/git -c a=b push -o x up"), [push("/p/sub", Some("up"))]);
        assert_eq!(needs("git -C ~/lib push git@h:a/b.git"), [push("/home/u/lib", Some("git@h:a/b.git"))]);
        assert_eq!(
            needs("npm publish --access public"),
            [CredentialNeed::Publish { directory: "/p".into() }]
        );
        assert_eq!(
            needs("export A=b; npm_config_loglevel=warn npm publish"),
            [CredentialNeed::Publish { directory: "/p".into() }]
        );
        assert_eq!(needs("gh pr create --fill; gh pr list"), [CredentialNeed::Forge]);
    }

    #[test]
    fn other_commands_need_none() {
        for script in [
            "git status",
            "git commit -m 'git push'",
            "git push --dry-run",
            "git $VERB",
            "git push $REMOTE",
            "echo git push",
            "npm install",
            "npm publish --dry-run",
            "npm publish --registry http://registry.example.com",
            "pnpm publish --registry=http://registry.example.com",
            "npm_config_registry=http://registry.example.com npm publish",
            "NPM_CONFIG_REGISTRY=$R npm publish",
            "export npm_config_registry=http://registry.example.com && npm publish",
            "export NPM_CONFIG_REGISTRY; NPM_CONFIG_REGISTRY=http://registry.example.com; npm publish",
            "npm_config_userconfig=./own npm publish",
            "gh --version",
            "gh auth status",
            "gh",
        ] {
            assert_eq!(needs(script), [], "{script}");
        }
    }
}
