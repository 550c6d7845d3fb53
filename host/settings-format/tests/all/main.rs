//! Table tests of settings as text: every field, every error, the published schema.

#[cfg(test)]
mod fields;
#[cfg(test)]
mod json_schema;
#[cfg(test)]
mod parsing;
