//! Uses every function that each policy is given, and allows only if all of them answer as the contract says.

wit_bindgen::generate!({ path: "../../../wit", world: "policy" });

use exports::portcullis::policy::{evaluator, lifecycle};
use portcullis::policy::types::{
    Action, ActionKinds, Allowance, Cause, ConfigError, Context, Denial, Evaluation, Request, Severity, Verdict,
};
use portcullis::policy::{logging, net_tools, path_tools};

struct Component;

impl lifecycle::Guest for Component {
    fn describe() -> lifecycle::Descriptor {
        lifecycle::Descriptor {
            id: "test:asks-host".into(),
            version: "0.1.0".into(),
            title: "Everything that the host gives".into(),
            handles: ActionKinds::FILE,
            rules: Vec::new(),
            config_schema: String::new(),
        }
    }

    fn configure(_config: String) -> Result<(), Vec<ConfigError>> {
        Ok(())
    }
}

/// Returns what is wrong.
fn faults(path: &str, root: &str) -> Vec<&'static str> {
    logging::log(logging::Level::Info, "asked");
    let below = path_tools::normalize("a/../b", root);
    [
        ("is-within", path_tools::is_within(path, root)),
        ("normalize", path_tools::is_within(&below, root) && below.ends_with("/b")),
        ("glob-match", path_tools::glob_match("**/*.rs", "/x/y.rs") == Ok(true)),
        ("glob-match refuses", path_tools::glob_match("[", "/x").is_err()),
        ("host-match", net_tools::host_match("*.a.test", "b.a.test") == Ok(true)),
        ("cidr-contains", net_tools::cidr_contains("10.0.0.0/8", "10.1.2.3") == Ok(true)),
        ("address-class", net_tools::address_class("127.0.0.1").as_deref() == Ok("loopback")),
    ]
    .into_iter()
    .filter_map(|(name, holds)| (!holds).then_some(name))
    .collect()
}

impl evaluator::Guest for Component {
    fn evaluate(request: Request, context: Context) -> Evaluation {
        let path = match &request.action {
            Action::File(access) => access.path.canonical.as_str(),
            _ => "",
        };
        let faults = faults(path, context.workspace.roots.first().map_or("", String::as_str));
        let verdict = if faults.is_empty() {
            Verdict::Allow(Allowance { obligations: Vec::new() })
        } else {
            Verdict::Deny(Denial { hint: None, overridable: false })
        };
        let (rule, reason) = ("host.asked".into(), faults.join(", "));
        Evaluation {
            verdict,
            cause: Cause { rule, reason, setting: String::new(), severity: Severity::Info },
            trace: Vec::new(),
        }
    }
}

export!(Component);
