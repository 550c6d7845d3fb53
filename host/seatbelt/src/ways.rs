//! Directories on the way to what commands can read.
//!
//! Programs look at each directory on the way to their own, as `realpath` does. They see that it is there, as on Linux,
//! but not what is in it.

use std::collections::BTreeSet;
use std::path::Path;

use portcullis_decision::{Effect, RuleSet};

use crate::filter::Filter;
use crate::pattern::text;
use crate::regions;

/// Returns the condition that a path is a directory on the way to one that is opened.
pub(crate) fn ways(rules: &RuleSet) -> Filter {
    let layers = rules.layers().iter().filter(|layer| !layer.tightens);
    let allowing = layers.flat_map(|layer| &layer.profile.files).filter(|rule| rule.effect == Effect::Allow);
    let opened = allowing.filter_map(|rule| rule.pattern.literal());
    let granted = rules.granted().filter_map(|(pattern, _)| pattern.literal());
    let tops = regions::open_tops(rules.base()).chain(opened).chain(granted);
    let above: BTreeSet<&Path> = tops.flat_map(|top| top.ancestors().skip(1)).collect();
    // A path that cannot be named leads to nothing that can.
    Filter::any(above.into_iter().filter_map(|path| Some(Filter::Literal(text(path).ok()?.to_owned()))))
}
