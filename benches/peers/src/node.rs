//! The rules in JavaScript, in a Node of their own.

use std::process::Command;

use portcullis_benches::Told;
use serde_json::{Value, json};

use crate::rules::{Ask, Rules};

/// Starts it with rules, and with the requests that its own race goes over.
pub fn start(rules: &Rules, asks: &[Ask]) -> Told {
    let mut node = Command::new("node");
    node.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/policy.mjs"));
    node.arg(rules.data().to_string());
    node.arg(asks.iter().map(request).collect::<Value>().to_string());
    Told::start(node)
}

/// A request, as a line for it.
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
