//! Prints the test cases of command matching with the facts that a policy sees, as JSON: `spellings FILE`.

use std::collections::BTreeMap;

use portcullis_shell::read;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize)]
struct Spellings {
    pattern: Vec<Pattern>,
}

#[derive(Debug, Deserialize)]
struct Pattern {
    words: String,
    #[serde(flatten)]
    lines: BTreeMap<String, Vec<String>>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("name a file")?;
    let spellings: Spellings = toml::from_str(&std::fs::read_to_string(file)?)?;
    let mut cases = Vec::new();
    for pattern in &spellings.pattern {
        for (expected, lines) in &pattern.lines {
            if !["yes", "maybe", "no"].contains(&expected.as_str()) {
                return Err(format!("`{expected}` is not an answer").into());
            }
            cases.extend(lines.iter().map(|line| case(&pattern.words, expected, line).to_string()));
        }
    }
    print(&format!("[\n{}\n]\n", cases.join(",\n")))
}

/// Returns a case: `hides` if the script may do more than its commands, `commands` as words with whether each is literal.
fn case(pattern: &str, expected: &str, line: &str) -> Value {
    let script = read(line).ok();
    let commands = script.as_ref().map(|script| {
        let words = |argv: &[portcullis_decision::request::Word]| -> Value {
            argv.iter().map(|word| json!([word.value, word.literal])).collect()
        };
        script.commands.iter().map(|command| words(&command.argv)).collect::<Value>()
    });
    let hides = script.is_none_or(|script| script.features.dynamic || script.features.redefinition);
    json!({ "pattern": pattern, "expect": expected, "line": line, "hides": hides, "commands": commands.unwrap_or(json!([])) })
}

fn print(text: &str) -> Result<(), Box<dyn std::error::Error>> {
    use std::io::Write as _;
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}
