//! Conditions in an order in which the last counts.

use crate::filter::Filter;

/// Conditions of which the last that holds counts, each with its value.
pub(crate) struct LastMatch(Vec<(bool, Filter)>);

impl LastMatch {
    pub(crate) fn new(cases: impl IntoIterator<Item = (bool, Filter)>) -> Self {
        let mut groups: Vec<(bool, Vec<Filter>)> = Vec::new();
        for (value, filter) in cases {
            match groups.last_mut() {
                Some((last, filters)) if *last == value => filters.push(filter),
                _ => groups.push((value, vec![filter])),
            }
        }
        Self(groups.into_iter().map(|(value, filters)| (value, Filter::any(filters))).collect())
    }

    /// Returns the condition that the last one that holds is true.
    pub(crate) fn holds(&self) -> Filter {
        // A true one holds, and no later false one does.
        let is_later_false = |at: usize, filter: &Filter| {
            let later = self.0.iter().skip(at + 1).filter(|(value, _)| !value);
            let parts = later.flat_map(|(_, later)| later.parts()).filter(|part| !part.is_apart_from(filter));
            Filter::any(parts.cloned())
        };
        let cases = self.0.iter().enumerate().filter(|(_, (value, _))| *value);
        let cases = cases.flat_map(|(at, (_, filter))| filter.parts().iter().map(move |part| (at, part)));
        Filter::any(
            cases.map(|(at, part)| Filter::all([part.clone(), Filter::not(is_later_false(at, part))])),
        )
    }
}
