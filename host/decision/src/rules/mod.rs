//! The rule set: the standing rules of all policies and the settings' ceiling, compiled once and used by confinement,
//! file tools, `check` and the summary alike.
//!
//! Within one layer the last matching rule answers. Across layers the strictest answer counts, for each path and right.
//! If no layer has an opinion, the [`Base`] answers. A layer that can only tighten is applied last, and only where it
//! is stricter than the result without it. Live path grants turn `ask` into `allow` and never affect a `deny`.

mod base;
mod below;
mod data;
mod facts;
mod network;
mod own_places;
mod places;
mod rule_set;
mod ruling;
mod tops;
mod trie;

pub use base::{Base, HIDDEN_BY_DEFAULT};
pub use data::{DataError, RuleData};
pub use facts::{Availability, FileFacts, HostFact, HostFacts, NameFact, PlaceFact};
pub use network::BUDGET_KIB;
pub use own_places::{OwnHome, OwnPlaces};
pub use places::{Reach, RulePlace};
pub use rule_set::RuleSet;
pub use ruling::{Caller, RuleAnswer, RuleLayer, Ruling};
pub use tops::Tops;

#[cfg(test)]
mod tests;
