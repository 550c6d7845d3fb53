//! Questions as requests of Cedar.

use std::error::Error;
use std::net::IpAddr;
use std::str::FromStr as _;

use cedar_policy::{
    Context, Entities, Entity as CedarEntity, EntityId, EntityTypeName, EntityUid, Request,
    RestrictedExpression,
};
use portcullis_text_policy::{Entity, Question};
use serde_json::{Map, Value};

/// Returns the request of a question, with its entities; `actions` are those of the schema.
pub(crate) fn request(
    question: &Question,
    actions: &Entities,
) -> Result<(Request, Entities), Box<dyn Error>> {
    let principal = entity(&question.principal)?;
    let resource = entity(&question.resource)?;
    let context = Context::from_pairs(attributes(&question.context))?;
    let request =
        Request::new(principal.uid(), uid("Action", question.action)?, resource.uid(), context, None)?;
    let entities = actions.clone().add_entities([principal, resource], None)?;
    Ok((request, entities))
}

fn entity(entity: &Entity) -> Result<CedarEntity, Box<dyn Error>> {
    let parents = entity.parents.iter().map(|(kind, id)| uid(kind, id)).collect::<Result<Vec<_>, _>>()?;
    let tags = entity.arguments.iter().map(|(name, value)| (name.clone(), tag(value)));
    Ok(CedarEntity::new_with_tags(
        uid(entity.kind, &entity.id)?,
        attributes(&entity.attributes),
        parents,
        tags,
    )?)
}

fn uid(kind: &str, id: &str) -> Result<EntityUid, Box<dyn Error>> {
    Ok(EntityUid::from_type_name_and_id(EntityTypeName::from_str(kind)?, EntityId::new(id)))
}

pub(crate) fn attributes(all: &Map<String, Value>) -> Vec<(String, RestrictedExpression)> {
    all.iter().filter_map(|(name, value)| Some((name.clone(), attribute(name, value)?))).collect()
}

/// Returns the value of an attribute. Only the attribute `address` is an address and not a text.
fn attribute(name: &str, value: &Value) -> Option<RestrictedExpression> {
    Some(match value {
        Value::String(text) if name == "address" => {
            RestrictedExpression::new_ip(text.parse::<IpAddr>().ok()?.to_string())
        }
        Value::String(text) => RestrictedExpression::new_string(text.clone()),
        Value::Bool(value) => RestrictedExpression::new_bool(*value),
        Value::Number(number) => RestrictedExpression::new_long(number.as_i64()?),
        Value::Array(items) => {
            RestrictedExpression::new_set(items.iter().filter_map(|item| attribute("", item)))
        }
        Value::Object(fields) => RestrictedExpression::new_record(attributes(fields)).ok()?,
        Value::Null => return None,
    })
}

fn tag(value: &Value) -> RestrictedExpression {
    RestrictedExpression::new_string(match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    })
}
