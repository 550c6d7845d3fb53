//! Compares a manifest with the component that carries it.

use portcullis_policy_runtime::ComponentPolicy;

use crate::lint::{Finding, Severity, uses_output};
use crate::project::component::Component;

/// Returns the differences between the manifest and the component, which must be loaded with every capability.
#[must_use]
pub fn manifest_findings(component: &Component, policy: &ComponentPolicy) -> Vec<Finding> {
    let said = policy.description();
    if component.text.is_some() {
        return Vec::new();
    }
    let Some(pack) = &component.pack else {
        return vec![Finding {
            gravity: Severity::Note,
            check: "pack.none",
            message: "it carries no manifest; `portcullis policy build` puts one into it".to_owned(),
        }];
    };
    let about = &pack.manifest.policy;
    let pairs = [("id", &about.id, &said.id), ("version", &about.version, &said.version)];
    let different = pairs.into_iter().filter(|(_, one, two)| one != two);
    let mut found: Vec<Finding> = different
        .map(|(what, one, two)| Finding {
            gravity: Severity::Error,
            check: "pack.differs",
            message: format!("the {what} is `{one}` in the manifest and `{two}` in `describe`"),
        })
        .collect();
    if !pack.manifest.capabilities.output && uses_output(policy) {
        found.push(Finding {
            gravity: Severity::Error,
            check: "capability.output",
            message: "it changes or withholds outputs, and the manifest does not ask to see them, so it never does; \
                      write `output = true` under `[capabilities]`"
                .to_owned(),
        });
    }
    found
}
