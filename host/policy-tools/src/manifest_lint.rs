//! Compares a manifest with the component that carries it.

use crate::lint::{Finding, Severity};
use crate::project::component::Component;

/// Returns the differences between the manifest and the component.
#[must_use]
pub fn manifest_findings(
    component: &Component,
    said: &portcullis_policy_runtime::Description,
) -> Vec<Finding> {
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
    different
        .map(|(what, one, two)| Finding {
            gravity: Severity::Error,
            check: "pack.differs",
            message: format!("the {what} is `{one}` in the manifest and `{two}` in `describe`"),
        })
        .collect()
}
