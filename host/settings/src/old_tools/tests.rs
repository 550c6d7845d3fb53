//! Tests of the rules of other sandboxes.

use serde_json::json;

use super::*;

fn rules(tool: Foreign, settings: Json) -> OldRules {
    OldRules::new(tool, &settings, Path::new("/home/u"), Path::new("/work/project"))
}

fn check(rules: &OldRules, cases: &[(&str, &str, Effect)]) {
    for (verb, what, expected) in cases {
        let wish = match *verb {
            "read" => Wish::Read((*what).into()),
            "write" => Wish::Write((*what).into()),
            "run" => Wish::Run((*what).to_owned()),
            "command reads" => Wish::CommandRead((*what).into()),
            "command writes" => Wish::CommandWrite((*what).into()),
            _ => Wish::Connect((*what).to_owned()),
        };
        assert_eq!(rules.answer(&wish), *expected, "{:?}: {verb} {what}", rules.tool);
    }
}

use Effect::{Allow, Ask, Deny};

#[test]
fn the_first_asks_outside_of_its_lists() {
    let lists = json!({
        "network": { "allowedDomains": ["x.com"], "deniedDomains": ["*.evil.test"] },
        "filesystem": { "denyRead": ["/Users", "/home", "~/.pi/agent/auth.json"], "allowRead": [".", "~/.pi"],
            "allowWrite": ["."], "denyWrite": ["~/.pi/agent/auth.json"] },
    });
    check(
        &rules(Foreign::Oddsjam, lists),
        &[
            ("read", "/work/project/a", Allow),
            ("read", "/home/u/notes", Ask),
            ("read", "/etc/passwd", Ask),
            ("read", "/home/u/.pi/agent/x", Allow),
            ("read", "/home/u/.pi/agent/auth.json", Deny),
            ("write", "/work/project/a", Allow),
            ("write", "/work/other/a", Ask),
            ("write", "/home/u/.pi/agent/auth.json", Deny),
            ("connect", "x.com", Allow),
            ("connect", "a.evil.test", Deny),
            ("connect", "b.test", Ask),
        ],
    );
}

/// The examples of "Enforcement Rules" in the documentation of the second.
#[test]
fn the_second_denies_names_first() {
    let rules = rules(Foreign::Sysid, Foreign::Sysid.complete(&json!({})));
    check(
        &rules,
        &[
            ("read", "/home/u/.ssh/id_rsa", Deny),
            ("read", "/home/u/notes", Allow),
            ("read", "/etc/passwd", Allow),
            ("write", "/work/project/.env.local", Deny),
            ("write", "/work/project/.env", Deny),
            ("write", "/work/project/certs/cert.pem", Deny),
            ("write", "/work/project/src/main.ts", Allow),
            ("write", "/tmp/x", Allow),
            ("write", "/etc/passwd", Ask),
            ("connect", "api.github.com", Allow),
            ("connect", "unlisted.example", Ask),
        ],
    );
    let wishes = rules.wishes();
    for wish in [
        Wish::Write("/work/project/.env.example".into()),
        Wish::Write("/work/project/example.pem".into()),
        Wish::Read("/home/u/.ssh".into()),
        Wish::Connect("example.github.com".to_owned()),
    ] {
        assert!(wishes.contains(&wish), "{wish:?} in {wishes:?}");
    }
}

#[test]
fn the_third_reads_the_codebase_and_nix_and_that_is_it() {
    let lists = json!({ "filesystem": { "denyRead": [".ssh", ".env", "*.pem"], "allowWrite": ["workspace", ".pi"],
        "denyWrite": ["config.toml"] } });
    check(
        &rules(Foreign::Bosun, lists),
        &[
            ("read", "/nix/store/x", Allow),
            ("read", "/work/project/src/a", Allow),
            ("read", "/etc/passwd", Deny),
            ("read", "/work/project/.env", Deny),
            ("read", "/home/u/.ssh/id", Deny),
            ("read", "/work/project/a.pem", Deny),
            ("write", "/work/project/workspace/a", Allow),
            ("write", "/work/project/workspace/.env", Deny),
            ("write", "/work/project/src/a", Deny),
            ("write", "/work/project/config.toml", Deny),
            ("connect", "anything.example", Allow),
        ],
    );
}

#[test]
fn plain_sandbox_runtime_asks_nothing() {
    let lists = json!({ "network": { "allowedDomains": ["a.test"], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home"], "allowRead": ["/home/u/p"], "allowWrite": ["."], "denyWrite": [] } });
    check(
        &rules(Foreign::Srt, lists),
        &[
            ("read", "/etc/passwd", Allow),
            ("read", "/home/u/x", Deny),
            ("read", "/home/u/p/x", Allow),
            ("write", "/etc/x", Deny),
            ("connect", "b.test", Deny),
            ("connect", "a.test", Allow),
        ],
    );
}

/// Commands see what is not denied, and what a tool would ask for is a prompt or an error for them.
#[test]
fn commands_have_answers_of_their_own() {
    let lists = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home"], "allowRead": [".", "~/.pi"], "allowWrite": ["."], "denyWrite": ["/work/project/vendor"] },
        "ignoreViolations": { "*": ["a"], "npm run build": ["/x"], " ": ["b"] }, "ripgrep": { "command": "rg" },
    });
    let rules = |tool| rules(tool, lists.clone());
    let reads = [
        ("command reads", "/etc/passwd", Allow),
        ("command reads", "/home/u/notes", Deny),
        ("command reads", "/home/u/.pi/x", Allow),
        ("command writes", "/work/project/a", Allow),
        ("command writes", "/work/project/vendor/a", Deny),
        ("run", "npm run build", Allow),
    ];
    for (tool, outside) in [(Foreign::Oddsjam, Ask), (Foreign::PiSandbox, Ask), (Foreign::Srt, Deny)] {
        check(&rules(tool), &reads);
        check(&rules(tool), &[("command writes", "/work/other/a", outside)]);
    }
    check(
        &rules(Foreign::Sysid),
        &[
            ("write", "/work/other/a", Ask),
            ("command writes", "/work/other/a", Deny),
            ("command reads", "/home/u/.pi/x", Deny),
        ],
    );
    let wishes = rules(Foreign::Oddsjam).wishes();
    let run: Vec<_> = wishes.iter().filter(|wish| matches!(wish, Wish::Run(_))).collect();
    let expected = ["echo hello", "npm run build", "rg"].map(|script| Wish::Run(script.to_owned()));
    assert_eq!(run, expected.iter().collect::<Vec<_>>());
    assert!(wishes.contains(&Wish::CommandWrite("/work/project/vendor".into())), "{wishes:?}");
}
