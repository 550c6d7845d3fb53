//! Table tests of settings: every field, every error, discovery, and rules over real directories.

#[cfg(test)]
mod discovery;
#[cfg(test)]
mod fields;
mod json_schema;
#[cfg(test)]
mod parsing;
#[cfg(test)]
mod policies;
#[cfg(test)]
mod reference;
mod report;
#[cfg(test)]
mod resolving;
#[cfg(test)]
mod validating;
mod world;
