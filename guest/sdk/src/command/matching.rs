//! Patterns of commands: the program, its subcommands and first operands in order, and options in any spelling and
//! place.

use super::line::{CommandLine, CommandOption, Operand, OptionValue};
use crate::Word;

/// How surely something runs a command that a pattern describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommandMatch {
    /// It does not.
    No,
    /// A word, an option or a part of the script cannot be known for certain, so it may.
    Maybe,
    /// It certainly does.
    Yes,
}

/// Values that switch an option off.
const OFF: [&str; 5] = ["false", "no", "none", "off", "0"];
/// The number of commands that run another one in their words, one inside the other.
const DEPTH_MAX: usize = 16;

/// Matches the words of a command against a pattern, for example `git push --force`.
pub(super) fn of_words(pattern: &str, argv: &[Word]) -> CommandMatch {
    let words: Vec<Word> =
        pattern.split_whitespace().map(|word| Word { value: word.to_owned(), literal: true }).collect();
    let Some(wanted) = CommandLine::parse(&words) else { return CommandMatch::No };
    let path = words.first().map(|word| word.value.as_str()).filter(|name| name.contains('/'));
    let mut best = CommandMatch::No;
    let mut rest = argv;
    for _ in 0..DEPTH_MAX {
        let Some(program) = rest.first() else { return best };
        let Some(line) = CommandLine::parse(rest) else { return best.max(CommandMatch::Maybe) };
        let is_program = path.map_or_else(|| line.program == wanted.program, |path| path == program.value);
        if is_program {
            best = best.max(of_line(&wanted, &line));
        }
        if line.may_run_inside(&wanted.program) {
            best = best.max(CommandMatch::Maybe);
        }
        let Some(inner) = line.inner.and_then(|at| rest.get(at..)) else { return best };
        rest = inner;
    }
    best.max(CommandMatch::Maybe)
}

fn of_line(wanted: &CommandLine, line: &CommandLine) -> CommandMatch {
    let names: Vec<&str> = wanted.operands.iter().filter_map(|operand| operand.text.as_deref()).collect();
    let options = wanted.options.iter().filter(|option| !option.letter);
    options.map(|option| of_option(wanted, option, line)).fold(of_operands(&names, &line.operands), Ord::min)
}

/// Matches the first operands, of which uncertain ones may stand for any words or for none.
fn of_operands(names: &[&str], operands: &[Operand]) -> CommandMatch {
    let certain = operands.iter().map(|operand| operand.text.as_deref().filter(|_| operand.certain));
    if operands.len() >= names.len() && certain.zip(names).all(|(word, name)| word == Some(*name)) {
        return CommandMatch::Yes;
    }
    // The numbers of names that the words so far may have matched.
    let mut reached = vec![true];
    reached.resize(names.len() + 1, false);
    for operand in operands {
        if reached.last() == Some(&true) {
            break;
        }
        let is_any = operand.alias || operand.text.is_none();
        let mut next = vec![false; reached.len()];
        let mut before = false;
        for (place, here) in reached.iter().enumerate() {
            let name = place.checked_sub(1).and_then(|place| names.get(place).copied());
            let stays = *here && (is_any || !operand.certain);
            let follows = before && (is_any || operand.text.as_deref() == name);
            if let Some(next) = next.get_mut(place) {
                *next = stays || follows;
            }
            before = *here || is_any && before;
        }
        reached = next;
    }
    if reached.last() == Some(&true) { CommandMatch::Maybe } else { CommandMatch::No }
}

fn of_option(wanted: &CommandLine, option: &CommandOption, line: &CommandLine) -> CommandMatch {
    let covered: Vec<&str> = wanted.rows.iter().flat_map(|row| row.covered(&option.name)).collect();
    let is_it = |given: &&CommandOption| given.name == option.name || covered.contains(&given.name.as_str());
    let given = line.options.iter().filter(is_it).map(|given| of_value(option, given));
    let words = line.operands.iter().filter(|operand| is_covered(&covered, operand));
    let best = given.chain(words.map(|operand| certainty(operand.certain))).max().unwrap_or(CommandMatch::No);
    let is_in_doubt = match best {
        CommandMatch::Yes => is_negated(option, line),
        CommandMatch::No => line.open || may_be_spelled(wanted, option, line),
        CommandMatch::Maybe => true,
    };
    if is_in_doubt { CommandMatch::Maybe } else { best }
}

fn of_value(wanted: &CommandOption, given: &CommandOption) -> CommandMatch {
    match (&wanted.value, &given.value) {
        (OptionValue::Text(_), OptionValue::Unknown) => CommandMatch::Maybe,
        (OptionValue::Text(wanted), OptionValue::Text(value)) if wanted != value => CommandMatch::No,
        (OptionValue::Text(_), OptionValue::None) => CommandMatch::No,
        (OptionValue::None, OptionValue::Text(value)) if OFF.contains(&value.as_str()) => CommandMatch::Maybe,
        _ => certainty(given.certain),
    }
}

fn is_covered(covered: &[&str], operand: &Operand) -> bool {
    let text = operand.text.as_deref().unwrap_or_default();
    covered.iter().any(|start| !start.starts_with('-') && text.starts_with(start))
}

fn is_negated(option: &CommandOption, line: &CommandLine) -> bool {
    let plain = option.name.strip_prefix("--").unwrap_or_default();
    line.options.iter().any(|given| given.name.strip_prefix("--no-") == Some(plain))
}

/// Returns true if an option that the table does not know may be a spelling of another unknown one: a word of letters,
/// or a letter and a long name that begins with it.
fn may_be_spelled(wanted: &CommandLine, option: &CommandOption, line: &CommandLine) -> bool {
    if wanted.entry(&option.name).is_some() {
        return false;
    }
    let letter =
        |name: &str| name.trim_start_matches('-').chars().next().map(|first| first.to_ascii_lowercase());
    let is_long = |name: &str| name.starts_with("--");
    let mut unknown = line.options.iter().filter(|given| line.entry(&given.name).is_none());
    let has = |name: &str| line.options.iter().any(|given| given.name == name);
    let mut letters = option.name.chars().skip(1);
    unknown.any(|given| {
        is_long(&given.name) != is_long(&option.name) && letter(&given.name) == letter(&option.name)
    }) || !is_long(&option.name) && letters.clone().count() > 1 && letters.all(|one| has(&format!("-{one}")))
}

fn certainty(certain: bool) -> CommandMatch {
    if certain { CommandMatch::Yes } else { CommandMatch::Maybe }
}
