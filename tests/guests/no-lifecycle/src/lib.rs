//! Exports an evaluator and no lifecycle: not a policy, and no host may accept it as one, although it would allow
//! everything.

wit_bindgen::generate!({
    path: "../../../wit",
    inline: "
        package test:no-lifecycle;
        world no-lifecycle {
            export portcullis:policy/evaluator@0.1.0;
        }
    ",
    generate_all,
});

use exports::portcullis::policy::evaluator;
use portcullis::policy::types::{Allowance, Cause, Context, Evaluation, Request, Severity, Verdict};

struct Component;

impl evaluator::Guest for Component {
    fn evaluate(_request: Request, _context: Context) -> Evaluation {
        let (rule, reason, setting) = ("all".into(), "everything is fine".into(), String::new());
        let cause = Cause { rule, reason, setting, severity: Severity::Info };
        Evaluation {
            verdict: Verdict::Allow(Allowance { obligations: Vec::new() }),
            cause,
            trace: Vec::new(),
        }
    }
}

export!(Component);
