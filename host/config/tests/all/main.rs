//! Table tests of settings: every field, every error, discovery, and rules over real directories.

#[cfg(test)]
mod discovery;
#[cfg(test)]
mod fields;
#[cfg(test)]
mod json_schema;
#[cfg(test)]
mod keeping;
#[cfg(test)]
mod layered;
#[cfg(test)]
mod links;
#[cfg(test)]
mod parsing;
#[cfg(test)]
mod policies;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod report;
#[cfg(test)]
mod resolving;
#[cfg(test)]
mod sensitive;
#[cfg(test)]
mod validating;
#[cfg(test)]
mod world;
