//! The rules as data of a policy in Rego.

use regorus::{Engine as Interpreter, Value};
use serde_json::json;

use crate::{Engine, Question, Rules};

const POLICY: &str = r#"
package files

import rego.v1

default allow := false

within(path, place) if path == place
within(path, place) if startswith(path, concat("", [place, "/"]))

allow if {
    input.action == "read"
    some place in data.read
    within(input.path, place)
}

allow if {
    some place in data.write
    within(input.path, place)
}
"#;

pub(crate) struct Rego {
    interpreter: Interpreter,
}

impl Rego {
    pub(crate) fn new(rules: &Rules) -> Self {
        let mut interpreter = Interpreter::new();
        interpreter.add_policy("files.rego".to_owned(), POLICY.to_owned()).expect("a policy");
        let data = json!({ "read": rules.read, "write": rules.write }).to_string();
        interpreter.add_data(Value::from_json_str(&data).expect("JSON")).expect("data");
        Self { interpreter }
    }
}

impl Engine for Rego {
    fn allows(&mut self, question: Question<'_>) -> bool {
        let action = if question.write { "write" } else { "read" };
        let input = json!({ "path": question.path, "action": action }).to_string();
        self.interpreter.set_input(Value::from_json_str(&input).expect("JSON"));
        self.interpreter.eval_rule("data.files.allow".to_owned()).expect("an answer") == Value::from(true)
    }
}
