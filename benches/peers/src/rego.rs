//! The rules in Rego.

use regorus::languages::rego::compiler::Compiler;
use regorus::rvm::vm::RegoVM;
use regorus::{Engine, Value};
use serde_json::json;

use crate::rules::{Ask, Rules};

const ANSWER: &str = "data.gate.allow";

const POLICY: &str = r#"
package gate

default allow := false

path := concat("", [input.path, "/"])

allow if {
    input.action == "read"
    some below in data.read
    startswith(path, below)
}

allow if {
    input.action == "change"
    some below in data.write
    startswith(path, below)
}

allow if {
    input.action == "connect"
    some rule in data.domains
    rule.port == input.port
    endswith(input.host, rule.below)
}
"#;

fn engine(rules: &Rules) -> Engine {
    let mut engine = Engine::new();
    engine.add_policy("gate.rego".to_owned(), POLICY.to_owned()).expect("a policy");
    engine.add_data(data(rules)).expect("data");
    engine
}

fn data(rules: &Rules) -> Value {
    Value::from_json_str(&rules.data().to_string()).expect("data")
}

pub fn input(ask: &Ask) -> Value {
    let input = match ask {
        Ask::Read(path) => json!({ "action": "read", "path": path }),
        Ask::Change(path) => json!({ "action": "change", "path": path }),
        Ask::Connect(host, port) => json!({ "action": "connect", "host": host, "port": port }),
    };
    Value::from_json_str(&input.to_string()).expect("an input")
}

/// The interpreter of regorus, its default.
pub struct Interpreter(Engine);

impl Interpreter {
    pub fn load(rules: &Rules) -> Self {
        Self(engine(rules))
    }

    pub fn allows(&mut self, input: &Value) -> bool {
        self.0.set_input(input.clone());
        self.0.eval_rule(ANSWER.to_owned()).expect("an answer") == Value::from(true)
    }
}

/// The compiler of regorus and its virtual machine.
pub struct Machine(RegoVM);

impl Machine {
    pub fn load(rules: &Rules) -> Self {
        let compiled = engine(rules).compile_with_entrypoint(&ANSWER.into()).expect("a policy");
        let mut machine = RegoVM::new();
        machine.load_program(Compiler::compile_from_policy(&compiled, &[ANSWER]).expect("a program"));
        machine.set_data(data(rules)).expect("data");
        Self(machine)
    }

    pub fn allows(&mut self, input: &Value) -> bool {
        self.0.set_input(input.clone());
        self.0.execute().expect("an answer") == Value::from(true)
    }
}
