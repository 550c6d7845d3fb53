//! A question as `input`.

use portcullis_text_policy::{Entity, Question};
use serde_json::{Value, json};

/// Returns the `input` of a question.
pub(crate) fn input(question: &Question) -> Value {
    json!({
        "principal": entity(&question.principal),
        "action": question.action,
        "group": question.group().unwrap_or_default(),
        "resource": entity(&question.resource),
        "context": question.context,
    })
}

/// Returns an entity: its attributes with its type and id, and the groups that contain it.
fn entity(entity: &Entity) -> Value {
    let mut all = entity.attributes.clone();
    all.insert("type".into(), entity.kind.into());
    all.insert("id".into(), entity.id.as_str().into());
    if !entity.parents.is_empty() {
        let parents: Vec<&str> = entity.parents.iter().map(|(_, id)| id.as_str()).collect();
        all.insert("parents".into(), parents.into());
    }
    if entity.kind == "Tool" {
        all.insert("arguments".into(), entity.arguments.clone().into());
    }
    all.into()
}
