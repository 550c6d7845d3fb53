//! One question about several connections of a command.

use portcullis_decision::pattern::{HostPattern, NetworkPattern, PortSet};
use portcullis_decision::request::{Endpoint, NetworkAccess};
use portcullis_decision::{GrantPattern, GrantScope};
use portcullis_text::escape;

use super::GRANT_TEXT_MAX;
use super::words::{self, CONTEXT, NOTHING_SENT};
use crate::connections::{HostAndPort, place};
use crate::open_questions::{Choice, ChoiceKind, Question};
use crate::special_addresses;

/// Returns the distinct places of some connections, in order.
#[must_use]
pub fn places<'a>(accesses: impl Iterator<Item = &'a NetworkAccess>) -> Vec<HostAndPort> {
    let mut places: Vec<HostAndPort> = Vec::new();
    for access in accesses {
        let place = place(access);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// A preset that a question can offer: a named set of hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresetOffer {
    /// Its name.
    pub name: String,
    /// A description: "npm's package registry".
    pub title: String,
    /// Its hosts, or other presets.
    pub holds: Vec<String>,
}

/// The beginning of the id of a place that stores a preset: followed by its name, `@`, and the id of the place itself.
const PRESET_PLACE: &str = "preset:";

/// Returns the name of the preset and the id of the place, if a place's id is for a preset.
#[must_use]
pub fn preset_place(place: &str) -> Option<(&str, &str)> {
    place.strip_prefix(PRESET_PLACE)?.split_once('@')
}

/// Offers presets beside the host itself, wherever an answer for the host can be stored for ever.
pub fn offer_presets(question: &mut Question, presets: &[PresetOffer]) {
    if let Some(preset) = presets.first().filter(|_| question.context == NOTHING_SENT) {
        question.context = words::cut(&format!("{}. {NOTHING_SENT}", escape(&preset.title)), CONTEXT);
    }
    let keys: Vec<char> =
        question.choices.iter().filter(|choice| is_for_ever(choice)).map(|choice| choice.key).collect();
    for key in keys {
        let Some(last) = question.choices.iter().rposition(|choice| choice.key == key && is_for_ever(choice))
        else {
            continue;
        };
        let Some(host) = question.choices.get(last).cloned() else { continue };
        let offer = |(preset, width): (&PresetOffer, u32)| Choice {
            covers: Some(preset.covers()),
            place: host.place.as_ref().map(|place| format!("{PRESET_PLACE}{}@{place}", preset.name)),
            width: host.width + width,
            ..host.clone()
        };
        let offers = presets.iter().filter(|preset| preset.covers().chars().count() <= GRANT_TEXT_MAX);
        let offers: Vec<Choice> = offers.zip(1..).map(offer).collect();
        question.choices.splice(last + 1..last + 1, offers);
    }
}

fn is_for_ever(choice: &Choice) -> bool {
    choice.kind == ChoiceKind::Allow && choice.place.is_some() && choice.lifetime == 0
}

impl PresetOffer {
    fn covers(&self) -> String {
        format!("{} (preset {}): {}", self.title, self.name, self.holds.join(", "))
    }
}

/// Turns the question about the first of several places into one about all of them: its choices apply to each.
///
/// `details` is the policy's text, which is the same for each.
#[must_use]
pub fn about_all(mut question: Question, places: &[HostAndPort], details: Option<&str>) -> Question {
    let [_, _, ..] = places else { return question };
    let who = question.title.split(" wants to ").next().unwrap_or_default().to_owned();
    question.title = format!("{who} wants to connect to these {} hosts", places.len());
    question.subject = listed(places, "\n");
    question.quote = details.map(escape);
    for meaning in places.iter().filter_map(|(target, _)| special_addresses::meaning_of(target)) {
        if !question.reason.contains(&meaning) {
            question.reason.push_str(&format!("; and {meaning}"));
            question.context = format!("Careful: {meaning}.");
            question.is_sensitive = true;
        }
    }
    // A choice that covers only one of them would be no answer.
    let covers = format!("connections to {}", listed(places, ", "));
    // A grant that is too long to be read in full is not offered.
    let is_readable = covers.chars().count() <= GRANT_TEXT_MAX;
    let may_be_kept =
        |scope| places.iter().all(|(target, _)| special_addresses::may_be_kept_for(target, scope));
    question.choices.retain(|choice| match (choice.scope, choice.kind) {
        (GrantScope::Once, _) | (GrantScope::Session, ChoiceKind::Deny) => true,
        (scope, ChoiceKind::Allow) => is_readable && choice.width == 0 && may_be_kept(scope),
        (GrantScope::Project | GrantScope::User, ChoiceKind::Deny) => false,
    });
    for choice in question.choices.iter_mut().filter(|choice| choice.scope != GrantScope::Once) {
        choice.covers = Some(match choice.kind {
            ChoiceKind::Deny if !is_readable => format!("connections to these {} hosts", places.len()),
            ChoiceKind::Allow | ChoiceKind::Deny => covers.clone(),
        });
    }
    question
}

/// Lets the answers that last cover every port of the hosts in the question, not only the one that was asked about.
///
/// An address keeps its port: another port of it is another service of the same machine.
pub fn at_every_port(question: &mut Question, places: &[HostAndPort]) {
    let name = |(host, port): &HostAndPort| match host {
        Endpoint::Domain(name) => format!("{name} at every port"),
        Endpoint::Address(_) => host.with_port(*port),
    };
    let hosts: Vec<String> = places.iter().map(name).collect();
    let lasts = |choice: &&mut Choice| choice.kind == ChoiceKind::Allow && choice.scope != GrantScope::Once;
    for choice in question.choices.iter_mut().filter(lasts) {
        let GrantPattern::Network(network) = &mut choice.pattern else { continue };
        let before = format!("connections to {network}");
        *network = every_port_of(network.clone());
        let narrow = choice.covers.take().unwrap_or_default();
        // What follows says for how long.
        let rest = narrow.strip_prefix(before.as_str()).filter(|_| places.len() == 1).unwrap_or_default();
        choice.covers = Some(format!("connections to {}{rest}", hosts.join(", ")));
    }
}

/// Returns the pattern for every port of a host that is named; that of an address is not changed.
#[must_use]
pub fn every_port_of(network: NetworkPattern) -> NetworkPattern {
    match network.host {
        HostPattern::Name(_) => NetworkPattern { ports: PortSet::Every, ..network },
        HostPattern::Any | HostPattern::Below(_) | HostPattern::Block(_) => network,
    }
}

/// Turns the question into one about sending more than the budget.
#[must_use]
pub fn about_more(mut question: Question, sent: u64) -> Question {
    let who = question.title.split(" wants to ").next().unwrap_or_default().to_owned();
    question.title = format!("{who} wants to send more to");
    question.context = format!("{} MiB were sent there in this session.", sent >> 20);
    // "Once" allows the same amount again. A grant for the host does not set an amount, so it is not offered.
    question.choices.retain(|choice| choice.scope == GrantScope::Once || choice.kind == ChoiceKind::Deny);
    for choice in &mut question.choices {
        match choice.kind {
            ChoiceKind::Allow => choice.label = "As much again".to_owned(),
            ChoiceKind::Deny => {
                choice.covers = choice.covers.take().map(|covers| format!("sending more over {covers}"));
            }
        }
    }
    question
}

/// Formats places. Canonical host names are safe to show.
fn listed(places: &[HostAndPort], between: &str) -> String {
    let shown: Vec<String> = places.iter().map(|(host, port)| host.with_port(*port)).collect();
    shown.join(between)
}
