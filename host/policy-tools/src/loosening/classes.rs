//! Examples for every way in which patterns can match, found by walking one automaton of all patterns.

use std::collections::{BTreeSet, HashMap, VecDeque};

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{self, NFA};
use regex_automata::util::start;
use regex_automata::{Anchored, MatchKind, PatternID};
use regex_syntax::hir::{Class, Hir, HirKind};

/// The most states that are walked. A test compares 300 rules below this limit.
const STATES_MAX: usize = 40_000;
/// The memory for the automaton.
const CACHE_BYTES: usize = 128 << 20;

/// The patterns are too many or too intricate to be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the patterns are too many or too intricate to be compared exactly")]
pub(super) struct TooIntricate;

/// Returns a text for each set of `patterns` that some text in `universe` matches: the shortest one, of letters if
/// possible.
pub(super) fn examples(universe: Hir, patterns: Vec<Hir>) -> Result<Vec<Vec<u8>>, TooIntricate> {
    let mut all = vec![universe];
    all.extend(patterns);
    let mut walk = Walk::new(&all)?;
    let start = start::Config::new().anchored(Anchored::Yes);
    let start = walk.dfa.start_state(&mut walk.cache, &start).map_err(|_| TooIntricate)?;
    let mut steps = vec![SearchState { state: start, from: 0, byte: 0 }];
    let mut known = HashMap::from([(start, 0)]);
    let mut waiting = VecDeque::from([0]);
    let (mut seen, mut examples) = (BTreeSet::new(), Vec::new());
    while let Some(index) = waiting.pop_front() {
        let Some(step) = steps.get(index).copied() else { continue };
        let matching = walk.matching(step.state)?;
        if matching.contains(&PatternID::ZERO) && seen.insert(matching) {
            examples.push(text(&steps, index));
        }
        for byte in walk.bytes.clone() {
            let next = walk.dfa.next_state(&mut walk.cache, step.state, byte).map_err(|_| TooIntricate)?;
            if next.is_dead() || next.is_quit() || known.contains_key(&next) {
                continue;
            }
            if steps.len() == STATES_MAX {
                return Err(TooIntricate);
            }
            known.insert(next, steps.len());
            waiting.push_back(steps.len());
            steps.push(SearchState { state: next, from: index, byte });
        }
    }
    Ok(examples)
}

/// A state of the automaton, with the state and the byte that lead to it.
#[derive(Clone, Copy)]
struct SearchState {
    state: LazyStateID,
    from: usize,
    byte: u8,
}

struct Walk {
    dfa: DFA,
    cache: Cache,
    /// One byte for each class of bytes that no pattern distinguishes.
    bytes: Vec<u8>,
}

impl Walk {
    fn new(patterns: &[Hir]) -> Result<Self, TooIntricate> {
        let bytes_only = thompson::Config::new().utf8(false).nfa_size_limit(Some(CACHE_BYTES));
        let nfa = NFA::compiler().configure(bytes_only).build_many_from_hir(patterns);
        // A cleared cache would give known states other numbers.
        let config = DFA::config()
            .match_kind(MatchKind::All)
            .cache_capacity(CACHE_BYTES)
            .minimum_cache_clear_count(Some(0));
        let nfa = nfa.map_err(|_| TooIntricate)?;
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa).map_err(|_| TooIntricate)?;
        let cache = dfa.create_cache();
        let (mut classes, mut bytes) = (BTreeSet::new(), Vec::new());
        let readable = (b'a'..=b'z').chain(b'0'..=b'9').chain(b'-'..=b'/');
        for byte in readable.chain(b'!'..=b'~').chain(0..=u8::MAX) {
            if classes.insert(dfa.byte_classes().get(byte)) {
                bytes.push(byte);
            }
        }
        Ok(Self { dfa, cache, bytes })
    }

    /// Returns the patterns that match a text which ends in this state.
    fn matching(&mut self, state: LazyStateID) -> Result<Vec<PatternID>, TooIntricate> {
        let end = self.dfa.next_eoi_state(&mut self.cache, state).map_err(|_| TooIntricate)?;
        if !end.is_match() {
            return Ok(Vec::new());
        }
        let count = self.dfa.match_len(&self.cache, end);
        let mut matching: Vec<PatternID> =
            (0..count).map(|index| self.dfa.match_pattern(&self.cache, end, index)).collect();
        matching.sort_unstable();
        Ok(matching)
    }
}

/// Returns the text that leads to a state.
fn text(steps: &[SearchState], mut index: usize) -> Vec<u8> {
    let mut text = Vec::new();
    while let Some(step) = steps.get(index).filter(|_| index != 0) {
        text.push(step.byte);
        index = step.from;
    }
    text.reverse();
    text
}

/// Parses an expression over bytes.
pub(super) fn parse(expression: &str) -> Result<Hir, TooIntricate> {
    let mut parser = regex_syntax::ParserBuilder::new().utf8(false).unicode(true).build();
    parser.parse(expression).map_err(|_| TooIntricate)
}

/// Restricts an expression to texts without a slash.
pub(super) fn without_slash(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Literal(literal) if literal.0.contains(&b'/') => Hir::fail(),
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) => hir.clone(),
        HirKind::Class(class) => Hir::class(class_without_slash(class)),
        HirKind::Repetition(repetition) => {
            let sub = Box::new(without_slash(&repetition.sub));
            Hir::repetition(regex_syntax::hir::Repetition { sub, ..repetition.clone() })
        }
        HirKind::Capture(capture) => without_slash(&capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(without_slash).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(without_slash).collect()),
    }
}

fn class_without_slash(class: &Class) -> Class {
    let mut class = class.clone();
    match &mut class {
        Class::Unicode(class) => {
            let slash = regex_syntax::hir::ClassUnicodeRange::new('/', '/');
            class.difference(&regex_syntax::hir::ClassUnicode::new([slash]));
        }
        Class::Bytes(class) => {
            let slash = regex_syntax::hir::ClassBytesRange::new(b'/', b'/');
            class.difference(&regex_syntax::hir::ClassBytes::new([slash]));
        }
    }
    class
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(universe: &str, patterns: &[&str]) -> Vec<String> {
        let patterns = patterns.iter().map(|pattern| parse(pattern).unwrap()).collect();
        let found = examples(parse(universe).unwrap(), patterns).unwrap();
        found.into_iter().map(|text| String::from_utf8(text).unwrap()).collect()
    }

    #[test]
    fn one_example_for_each_way_to_match() {
        let mut texts = found("^[a-c]+$", &["^a+$", "^.*b$"]);
        texts.sort();
        assert_eq!(texts, ["a", "b", "c"]);
        assert_eq!(found("^x$", &["^y$"]), ["x"]);
        assert_eq!(found("^[a-z]+$", &["^(?:key|token)$", "^t.*$"]).len(), 4);
    }

    #[test]
    fn slashes_can_be_removed() {
        let name = parse("(?-u)^[^a].b$").unwrap();
        let texts = examples(parse("(?-u)^(?:/|c)*b$").unwrap(), vec![without_slash(&name)]).unwrap();
        assert_eq!(texts, [b"b".to_vec(), b"ccb".to_vec()]);
    }
}
