//! The rules in JavaScript, in a separate Node process.

use std::process::Command;

use portcullis_benches::Told;
use serde_json::{Value, json};

use crate::rules::{Ask, Rules};

/// Starts Node with the rules, and with the requests of its in-process race.
pub fn start(rules: &Rules, asks: &[Ask]) -> Told {
    let mut node = Command::new("node");
    node.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/policy.mjs"));
    node.arg(rules.data().to_string());
    node.arg(asks.iter().map(request).collect::<Value>().to_string());
    Told::start(node)
}

/// Returns a request as a line for the Node process.
pub fn line(ask: &Ask) -> String {
    request(ask).to_string()
}

pub fn allows(node: &mut Told, line: &str) -> bool {
    node.ask(line) == "true"
}

fn request(ask: &Ask) -> Value {
    match ask {
        Ask::Read(path) => json!({ "action": "read", "path": path }),
        Ask::Change(path) => json!({ "action": "change", "path": path }),
        Ask::Connect(host, port) => json!({ "action": "connect", "host": host, "port": port }),
    }
}
