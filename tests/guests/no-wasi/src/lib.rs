//! The minimal policy: `lifecycle` and `evaluator`, no SDK, no imports. It allows paths in the workspace and abstains
//! otherwise.

wit_bindgen::generate!({ path: "../../../wit", world: "pure-policy" });

use exports::portcullis::policy::{evaluator, lifecycle};
use portcullis::policy::types::{
    Action, ActionKinds, Allowance, Cause, ConfigError, Context, Evaluation, Request, Severity, Verdict, Zone,
};

struct Component;

impl lifecycle::Guest for Component {
    fn describe() -> lifecycle::Descriptor {
        lifecycle::Descriptor {
            id: "test:no-wasi".into(),
            version: "0.1.0".into(),
            title: "The workspace and no more".into(),
            handles: ActionKinds::FILE,
            rules: Vec::new(),
            config_schema: String::new(),
        }
    }

    fn configure(_config: String) -> Result<(), Vec<ConfigError>> {
        Ok(())
    }
}

impl evaluator::Guest for Component {
    fn evaluate(request: Request, _context: Context) -> Evaluation {
        let inside = matches!(&request.action, Action::File(access) if access.path.zone == Zone::Workspace);
        let (verdict, rule, reason) = if inside {
            (Verdict::Allow(Allowance { obligations: Vec::new() }), "workspace", "lies in the workspace")
        } else {
            (Verdict::Abstain, "", "")
        };
        let (rule, reason, setting) = (rule.into(), reason.into(), String::new());
        Evaluation {
            verdict,
            cause: Cause { rule, reason, setting, severity: Severity::Info },
            trace: Vec::new(),
        }
    }
}

export!(Component);
