//! Decides on all changes of a branch together: denies those with a file called `forbidden`, and asks about more than
//! three.

use portcullis_sdk::{Action, ActionKinds, ConfigError, Context, Descriptor, Evaluation, Never, Policy, Request};

struct WholeChange;

impl Policy for WholeChange {
    type Config = Never;

    fn describe() -> Descriptor {
        Descriptor::new("test:whole-change", "0.1.0", "Decides about commits of branches")
            .handles(ActionKinds::OTHER)
            .rule("whole.forbidden", "No forbidden files")
            .rule("whole.many", "Large changes are asked about")
    }

    fn configure(_config: Never) -> Result<Self, Vec<ConfigError>> {
        Ok(Self)
    }

    fn evaluate(&self, request: &Request, _context: &Context) -> Evaluation {
        let Action::Other(action) = &request.action else { return Evaluation::abstain() };
        if action.kind != "host:branch-commit" {
            return Evaluation::abstain();
        }
        if action.input.contains("/forbidden\"") {
            return Evaluation::deny("whole.forbidden", "forbidden files are among the changes");
        }
        if action.input.matches("\"what\":").count() > 3 {
            return Evaluation::ask("whole.many", "more than 3 names change", "Commit them?");
        }
        Evaluation::abstain()
    }
}

portcullis_sdk::export_policy!(WholeChange);
