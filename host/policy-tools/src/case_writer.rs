//! Requests that were put to a policy, written as cases.

use std::fmt::Write as _;

use portcullis_decision::Context;
use portcullis_decision::request::{
    Action, Content, FileAccess, FileOperation, NetworkAccess, Origin, PathKind, Request, Stage, Text,
};
use portcullis_text::is_unsafe;
use serde_json::Value;

/// The `[given]` table that holds for all cases of a file.
#[must_use]
pub fn given(configuration: &Value) -> String {
    inline(configuration).map(|config| format!("[given]\nconfig = {config}\n")).unwrap_or_default()
}

/// A request as a case that expects this verdict and rule; none where cases have no form for it, or it is not whole.
#[must_use]
pub fn case(name: &str, request: &Request, context: &Context, verdict: &str, rule: &str) -> Option<String> {
    let mut keys = vec![("name", quoted(name)), ("given", surroundings(request, context)?)];
    keys.extend(asked(request)?);
    keys.push(("expect", quoted(verdict)));
    if !rule.is_empty() {
        keys.push(("rule", quoted(rule)));
    }
    let mut text = "\n[[case]]\n".to_owned();
    for (key, value) in keys {
        writeln!(text, "{key} = {value}").ok()?;
    }
    Some(text)
}

/// What the host said of the request beside what is asked, where cases can say it.
fn surroundings(request: &Request, context: &Context) -> Option<String> {
    let list = |texts: &[String]| inline(&texts.into());
    let mut keys = vec![
        ("cwd", quoted(context.workspace.roots.first()?)),
        ("home", quoted(&context.machine.home)),
        ("temp", quoted(&context.machine.temp)),
        ("agent-directory", quoted(&context.agent.directory)),
        ("path", list(&context.machine.path)?),
        ("toolchains", list(&context.machine.toolchains)?),
        ("interactive", context.interactive.to_string()),
        ("sub-agent", quoted(&context.agent.sub_agent)),
    ];
    let branch = context.workspace.vcs.as_ref().and_then(|vcs| vcs.branch.as_deref());
    keys.extend(branch.map(|branch| ("branch", quoted(branch))));
    let facts = request.facts.iter().map(|fact| {
        let attribute = fact.attribute();
        let value: Value = serde_json::from_str(&attribute.value).ok()?;
        Some(format!("{} = {}", quoted(&attribute.name), inline(&value)?))
    });
    keys.push(("attributes", format!("{{ {} }}", facts.collect::<Option<Vec<_>>>()?.join(", "))));
    let keys: Vec<String> = keys.into_iter().map(|(key, value)| format!("{key} = {value}")).collect();
    Some(format!("{{ {} }}", keys.join(", ")))
}

fn asked(request: &Request) -> Option<Vec<(&'static str, String)>> {
    Some(match (&request.action, request.origin) {
        (Action::File(access), _) => file(access)?,
        (Action::Command(command), Origin::Agent) => vec![("command", quoted(&command.script))],
        (Action::Command(command), Origin::User) => vec![("user-command", quoted(&command.script))],
        (Action::Escalation(command), Origin::Agent) => vec![("escalation", quoted(&command.script))],
        (Action::Network(NetworkAccess { target, port, process, stage: Stage::Connect, .. }), _) => {
            let host = target.to_string();
            let host = if host.contains(':') { format!("[{host}]") } else { host };
            vec![("connect", quoted(&format!("{host}:{port}"))), ("program", quoted(&process.program))]
        }
        (Action::Tool(call), _) => vec![
            ("tool", quoted(&call.name)),
            ("provider", quoted(&call.provider)),
            ("input", quoted(&call.input)),
        ],
        (
            Action::Command(_)
            | Action::Escalation(_)
            | Action::Network(_)
            | Action::Socket(_)
            | Action::Other(_),
            _,
        ) => return None,
    })
}

fn file(access: &FileAccess) -> Option<Vec<(&'static str, String)>> {
    let whole = |text: &Text| (!text.truncated).then(|| quoted(&text.value));
    let (key, content) = match &access.operation {
        FileOperation::Read => ("read", None),
        FileOperation::Write(Content::Text(text)) => ("write", Some(whole(text)?)),
        FileOperation::Edit(edits) => match edits.as_slice() {
            [edit] => ("edit", Some(whole(&edit.new)?)),
            _ => return None,
        },
        FileOperation::List => ("list", None),
        FileOperation::Search(_) => ("search", None),
        FileOperation::Delete => ("delete", None),
        FileOperation::CreateDirectory => ("create-directory", None),
        FileOperation::Write(_)
        | FileOperation::Move(_)
        | FileOperation::Link(_)
        | FileOperation::Symlink(_)
        | FileOperation::ChangeMetadata
        | FileOperation::Other(_) => return None,
    };
    let mut keys = vec![
        (key, quoted(&access.path.absolute)),
        ("canonical", quoted(&access.path.canonical)),
        ("directory", (access.path.kind == PathKind::Directory).to_string()),
    ];
    keys.extend(content.map(|content| ("content", content)));
    Some(keys)
}

/// Returns a text as a TOML string, in which unsafe characters are escapes: the file can be shown on a terminal.
fn quoted(text: &str) -> String {
    // JSON escapes what TOML escapes, and in the same way, but for the rest of the unsafe characters: TOML has no pairs
    // of surrogates.
    let json = Value::from(text).to_string();
    let mut quoted = String::with_capacity(json.len());
    for character in json.chars() {
        match is_unsafe(character) {
            true => quoted.push_str(&format!("\\U{:08X}", u32::from(character))),
            false => quoted.push(character),
        }
    }
    quoted
}

/// A JSON document as a TOML value; none where it holds null, which TOML has not.
fn inline(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(inline).collect::<Option<_>>()?;
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) => {
            let member =
                |(key, value): (&String, &Value)| Some(format!("{} = {}", quoted(key), inline(value)?));
            let members: Vec<_> = members.iter().map(member).collect::<Option<_>>()?;
            format!("{{ {} }}", members.join(", "))
        }
    })
}

#[cfg(test)]
mod tests {
    use portcullis_sdk::cases::read;
    use serde_json::json;

    use super::*;
    use crate::corpus::of_cases;

    #[test]
    fn texts_are_escaped_and_mean_the_same() {
        let text = "a\u{1b}[2J\u{9b}\u{7f}\u{202e}\u{200b}\u{e0041}\u{1f1e9} \"q\" 'ü'\t\r\n\\";
        let written = format!("a = {}", quoted(text));
        assert!(written.chars().all(|character| !is_unsafe(character)), "{written}");
        let cases = format!("[[case]]\nname = {}\nread = '/x'\nexpect = 'allow'\n", quoted(text));
        assert_eq!(read(&cases).unwrap().remove(0).name, text);
    }

    const CASES: &str = r#"
[given]
cwd = "/srv/a b"
home = "/home/\"q\""
sub-agent = "scout"
branch = "topic/ü"
attributes = { "vendor:fact" = [1, { a = "b" }] }
[[case]]
name = "files"
read = "/srv/a b/x\u007F\ty"
canonical = "/etc/é"
expect = "ask"
[[case]]
name = "texts"
given = { interactive = false }
write = "/srv/x"
content = "two\nlines \\ \"quoted\""
expect = "deny"
rule = "a.b"
[[case]]
name = "edits"
edit = "/srv/x"
content = ""
expect = "allow"
[[case]]
name = "directories"
list = "/srv"
directory = true
expect = "allow"
[[case]]
name = "commands"
command = "echo 'a\nb' | cat"
expect = "allow"
[[case]]
name = "the user's"
user-command = "ls"
expect = "allow"
[[case]]
name = "hosts"
connect = ["example.com:443", "[::1]:80"]
program = "/usr/bin/git"
expect = "allow"
[[case]]
name = "tools"
tool = "x"
provider = "mcp:x"
input = '{"a": null}'
expect = "allow"
"#;

    #[test]
    fn a_case_that_was_written_asks_the_same() {
        let items = of_cases("x", CASES).unwrap();
        assert_eq!(items.len(), 9);
        for item in items {
            let text = case("again", &item.request, &item.context, "ask", "a.b").unwrap();
            let again = of_cases("x", &text).unwrap();
            let [again] = again.as_slice() else { panic!("{text}") };
            assert_eq!((&again.request, &again.context), (&item.request, &item.context), "{text}");
        }
    }

    #[test]
    fn a_configuration_holds_for_all() {
        let configuration = json!({ "allow": ["a", { "b": 1.5 }], "strict": true });
        let text = given(&configuration) + "[[case]]\nname = 'x'\nread = '/a'\nexpect = 'allow'";
        let cases = read(&text).unwrap();
        let config: Value = serde_json::from_str(&cases.first().unwrap().given.config).unwrap();
        assert_eq!(config, configuration);
    }

    #[test]
    fn what_cases_cannot_say_is_left_out() {
        let item = of_cases("x", CASES).unwrap().remove(1);
        let Action::File(access) = item.request.action.clone() else { panic!("a file") };
        let texts = [
            FileOperation::Write(Content::Unknown),
            FileOperation::Write(Content::Text(Text { value: "a".into(), length: 9, truncated: true })),
            FileOperation::Symlink("x".into()),
        ];
        for operation in texts {
            let action = Action::File(FileAccess { operation, ..access.clone() });
            let request = Request { action, ..item.request.clone() };
            assert_eq!(case("x", &request, &item.context, "ask", ""), None);
        }
    }
}
