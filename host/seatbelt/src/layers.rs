//! The rule set as one condition for each right.

use portcullis_decision::profile::{FileRight, FileRule};
use portcullis_decision::{Effect, RuleLayer, RuleSet};

use crate::error::CompileError;
use crate::filter::Filter;
use crate::last_match::LastMatch;
use crate::pattern::covers;
use crate::regions;

/// Returns the condition that the rules allow commands `right`.
///
/// As the rule set answers: the base where no layer has an opinion, the strictest opinion elsewhere, and a grant where
/// that asks.
pub(crate) fn allowed(rules: &RuleSet, right: FileRight) -> Result<Filter, CompileError> {
    let mut opened = vec![regions::allowed(rules.base(), right)?];
    let (mut restricted, mut denied) = (Vec::new(), Vec::new());
    for layer in rules.layers() {
        let speaking = speaking(rules, layer, right)?;
        if !layer.tightens {
            let opening = speaking.iter().filter(|(effect, _)| *effect == Effect::Allow);
            opened.extend(opening.map(|(_, filter)| filter.clone()));
        }
        let last_is = |wanted: fn(Effect) -> bool| {
            LastMatch::new(speaking.iter().map(|(effect, filter)| (wanted(*effect), filter.clone()))).holds()
        };
        restricted.push(last_is(|effect| effect != Effect::Allow));
        denied.push(last_is(|effect| effect == Effect::Deny));
    }
    let granted = rules
        .granted()
        .filter(|(_, rights)| rights.contains(right) || right == FileRight::Read && rights.write);
    // A grant that the language cannot say opens nothing.
    let granted: Vec<Filter> = granted.filter_map(|(pattern, _)| covers(pattern).ok()).collect();
    Ok(Filter::any([
        Filter::all([Filter::any(opened), Filter::not(Filter::any(restricted))]),
        Filter::all([Filter::any(granted), Filter::not(Filter::any(denied))]),
    ]))
}

/// Returns a condition that holds wherever commands may write, and perhaps elsewhere.
pub(crate) fn may_be_written(rules: &RuleSet) -> Result<Filter, CompileError> {
    let mut opened = vec![regions::allowed(rules.base(), FileRight::Write)?];
    for layer in rules.layers().iter().filter(|layer| !layer.tightens) {
        let speaking = speaking(rules, layer, FileRight::Write)?;
        opened.extend(
            speaking.into_iter().filter(|(effect, _)| *effect == Effect::Allow).map(|(_, filter)| filter),
        );
    }
    let granted = rules.granted().filter(|(_, rights)| rights.write);
    opened.extend(granted.filter_map(|(pattern, _)| covers(pattern).ok()));
    Ok(Filter::any(opened))
}

/// Returns the rules of a layer on `right`, in order, with their conditions.
fn speaking(
    rules: &RuleSet,
    layer: &RuleLayer,
    right: FileRight,
) -> Result<Vec<(Effect, Filter)>, CompileError> {
    let mut speaking = Vec::new();
    for rule in layer.profile.files.iter().filter(|rule| speaks(rule, right)) {
        match covers(&rule.pattern) {
            Ok(filter) => {
                let filter = if regions::opens_temp(rules.base(), rule) {
                    Filter::all([filter, Filter::not(regions::shown_in_temp(rules.base())?)])
                } else {
                    filter
                };
                speaking.push((rule.effect, filter));
            }
            // It opens nothing, and earlier rules go on restricting.
            Err(_) if rule.effect == Effect::Allow => {}
            Err(_) => return Err(CompileError::of_rule(layer, rule)),
        }
    }
    Ok(speaking)
}

/// Returns true if a rule applies to `right`: a condition counts as met by a restricting rule, and as unmet by an allowing
/// one.
pub(crate) fn speaks(rule: &FileRule, right: FileRight) -> bool {
    rule.rights.contains(right) && (rule.condition.is_empty() || rule.effect != Effect::Allow)
}
