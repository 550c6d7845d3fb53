//! A command line: the program with its subcommands, options and operands, by the table of known programs.

use super::rows::{Arity, Entry, Row, Trait, dashed, row};
use crate::Word;

/// A parsed command line.
///
/// The program and its subcommands have their main names of the table, options their first spelling: `-fu` of
/// `git push` is `--force` and `--set-upstream`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The name of the program without its directory.
    pub program: String,
    /// The words that are neither options nor their values, subcommands first.
    pub operands: Vec<Operand>,
    /// The options.
    pub options: Vec<CommandOption>,
    /// Whether an uncertain word may be an option.
    pub open: bool,
    /// The first word of the command that this one runs, for a known program that runs another: `npx npm publish`.
    pub inner: Option<usize>,
    pub(super) rows: Vec<Row>,
}

/// A word that is neither an option nor the value of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operand {
    /// The word; `None` for one that is uncertain, which may stand for any number of words.
    pub text: Option<String>,
    /// Whether it certainly is an operand: a word after an unknown option may be its value.
    pub certain: bool,
    /// Whether it may be an alias that stands for any words, as an unknown subcommand of git.
    pub alias: bool,
    /// Its index in the command's words.
    pub at: usize,
}

/// An option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOption {
    /// Its first spelling in the table; as written if it is unknown.
    pub name: String,
    /// Its value.
    pub value: OptionValue,
    /// Whether it certainly is this option.
    pub certain: bool,
    /// Whether it is one letter of a word that may be a single option, as `-rf` of an unknown program.
    pub letter: bool,
    /// Its index in the command's words.
    pub at: usize,
}

/// The value of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionValue {
    /// It has none.
    None,
    /// A certain value.
    Text(String),
    /// A value that is unknown before the script runs.
    Unknown,
}

impl CommandLine {
    /// Parses a command; `None` for one without a certain program.
    #[must_use]
    pub fn parse(argv: &[Word]) -> Option<Self> {
        let (program, words) = argv.split_first()?;
        let name = program.literal.then(|| program.value.rsplit('/').next().unwrap_or_default())?;
        let mut reader = Reader::new(name);
        let words: Vec<_> = words.iter().map(|word| word.literal.then_some(word.value.as_str())).collect();
        words.iter().enumerate().for_each(|(index, word)| reader.word(index + 1, *word));
        Some(reader.line)
    }

    /// Returns true if an option is given in any spelling, certainly or not.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let wanted = self.entry(name).map_or(name, |entry| entry.name());
        self.options.iter().any(|option| option.name == wanted)
    }

    /// Returns the table's entry of an option that is valid in this place.
    pub(super) fn entry(&self, name: &str) -> Option<Entry> {
        let everywhere = self.rows.first().is_some_and(|row| row.has(Trait::Everywhere));
        let places = if everywhere { self.rows.len() } else { 1 };
        self.rows.iter().rev().take(places).find_map(|row| row.entry(name))
    }

    /// Returns true if this line runs another command that cannot be known for certain and may be this program: it
    /// follows an unknown option, or a word or the value of an option mentions the program.
    pub(super) fn may_run_inside(&self, program: &str) -> bool {
        if !self.last_has(Trait::Runs) {
            return false;
        }
        let mentions = |text: &str| text.contains(program);
        let mut own =
            self.operands.iter().filter(|operand| self.inner.is_some_and(|inner| operand.at >= inner));
        let first = own.clone().next();
        let name = first.and_then(|first| first.text.as_deref()?.rsplit('/').next());
        first.is_some_and(|first| !first.certain)
            || name != Some(program) && own.any(|operand| operand.text.as_deref().is_some_and(mentions))
            || self
                .options
                .iter()
                .any(|option| matches!(&option.value, OptionValue::Text(text) if mentions(text)))
    }

    fn last_has(&self, wanted: Trait) -> bool {
        self.rows.last().is_some_and(|row| row.has(wanted))
    }

    fn program_has(&self, wanted: Trait) -> bool {
        self.rows.first().is_some_and(|row| row.has(wanted))
    }
}

/// Reads the words one after the other.
struct Reader {
    line: CommandLine,
    /// The name of the innermost subcommand, with the program.
    level: String,
    /// Whether no uncertain word came before.
    sure: bool,
    /// Whether options have ended.
    ended: bool,
    /// Whether no further subcommands follow.
    settled: bool,
    /// Whether the next word is the value of the last option.
    pending: bool,
    /// Whether the next word may be the value of an unknown option.
    doubtful: bool,
}

impl Reader {
    fn new(name: &str) -> Self {
        let mut reader = Self {
            line: CommandLine { program: name.to_owned(), ..CommandLine::default() },
            level: name.to_owned(),
            sure: true,
            ended: false,
            settled: false,
            pending: false,
            doubtful: false,
        };
        if let Some(row) = row(name) {
            reader.descend(row, 0);
        } else if let Some((row, subcommand)) = dashed(name) {
            reader.line.program = row.path.to_owned();
            reader.level = row.path.to_owned();
            reader.line.rows.push(row);
            reader.operand(0, subcommand);
        }
        reader
    }

    fn word(&mut self, at: usize, word: Option<&str>) {
        if std::mem::take(&mut self.pending) {
            self.value(at, word);
            return;
        }
        let Some(text) = word else {
            self.unknown_word(at);
            return;
        };
        if self.ended || text == "-" || !text.starts_with('-') {
            self.operand(at, text);
        } else if text == "--" {
            self.ended = true;
            self.doubtful = false;
        } else {
            self.doubtful = false;
            self.option(at, text);
        }
    }

    fn value(&mut self, at: usize, word: Option<&str>) {
        if let Some(option) = self.line.options.last_mut() {
            option.value = word.map_or(OptionValue::Unknown, |text| OptionValue::Text(text.to_owned()));
        }
        if word.is_none() {
            self.unknown_word(at);
        }
    }

    fn unknown_word(&mut self, at: usize) {
        self.push(at, None, false);
        self.line.open |= !self.ended;
        self.sure = false;
        self.doubtful = false;
        if self.line.last_has(Trait::Runs) {
            self.line.inner.get_or_insert(at);
        }
    }

    fn operand(&mut self, at: usize, text: &str) {
        let certain = self.sure && !std::mem::take(&mut self.doubtful);
        if !self.settled {
            if let Some(row) = row(&format!("{} {text}", self.level)) {
                self.push(at, Some(text), certain);
                self.descend(row, at);
                return;
            }
            if certain && self.line.rows.len() == 1 && self.line.program_has(Trait::UserAliases) {
                self.line.operands.push(Operand { text: Some(text.to_owned()), certain, alias: true, at });
                self.line.open = true;
                self.settled = true;
                return;
            }
        }
        self.push(at, Some(text), certain);
        self.settled |= certain;
        if self.line.last_has(Trait::Runs) {
            self.line.inner.get_or_insert(at);
        }
        self.ended |= self.line.last_has(Trait::Runs) || self.line.last_has(Trait::OperandEnds);
    }

    fn push(&mut self, at: usize, text: Option<&str>, certain: bool) {
        self.line.operands.push(Operand { text: text.map(str::to_owned), certain, alias: false, at });
    }

    /// Enters a row, or the one that it is the same as.
    fn descend(&mut self, entered: Row, at: usize) {
        let Some(target) = entered.same_as() else {
            self.level = entered.path.to_owned();
            self.line.rows.push(entered);
            return;
        };
        let certain = self.line.operands.iter().all(|operand| operand.certain);
        self.line.operands.clear();
        self.line.rows.clear();
        for (index, name) in target.split(' ').enumerate() {
            self.level = if index == 0 { name.to_owned() } else { format!("{} {name}", self.level) };
            self.line.rows.extend(row(&self.level));
            if index == 0 {
                self.line.program = name.to_owned();
            } else {
                self.push(at, Some(name), certain);
            }
        }
    }

    fn option(&mut self, at: usize, text: &str) {
        let single = self.line.program_has(Trait::SingleDash);
        let is_long = text.starts_with("--");
        if !is_long && !single {
            self.letters(at, text);
            return;
        }
        let text = if single && is_long { text.get(1..).unwrap_or_default() } else { text };
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        match self.line.entry(name) {
            Some(entry) => self.known(at, entry, value, self.sure),
            None => self.abbreviated(at, name, value),
        }
    }

    fn known(&mut self, at: usize, entry: Entry, value: Option<&str>, certain: bool) {
        self.give(at, entry.name(), value, certain, false);
        self.pending = entry.arity == Arity::One && value.is_none();
    }

    fn abbreviated(&mut self, at: usize, name: &str, value: Option<&str>) {
        let entries: Vec<Entry> = if name.len() > 2 && self.line.program_has(Trait::Abbreviated) {
            self.line.rows.last().map(|row| row.abbreviated(name)).unwrap_or_default()
        } else {
            Vec::new()
        };
        match entries.as_slice() {
            [] => {
                self.give(at, name, value, self.sure, false);
                self.doubtful = value.is_none();
            }
            [entry] => self.known(at, *entry, value, self.sure),
            several => {
                several.iter().for_each(|entry| self.give(at, entry.name(), value, false, false));
                self.doubtful = value.is_none() && several.iter().any(|entry| entry.arity == Arity::One);
            }
        }
    }

    /// Reads a word of short options: `-fu`, `-mtext`.
    fn letters(&mut self, at: usize, text: &str) {
        let mut is_known = true;
        let mut starts_unknown = false;
        for (start, letter) in text.char_indices().skip(1) {
            let name = format!("-{letter}");
            let rest = text.get(start + letter.len_utf8()..).filter(|rest| !rest.is_empty());
            let Some(entry) = self.line.entry(&name) else {
                starts_unknown |= start == 1;
                self.give(at, &name, None, self.sure && is_known, starts_unknown && text.len() > 2);
                is_known = false;
                self.doubtful = true;
                continue;
            };
            let certain = self.sure && is_known;
            if entry.arity == Arity::None {
                self.give(at, entry.name(), None, certain, starts_unknown);
                continue;
            }
            self.give(at, entry.name(), rest, certain, starts_unknown);
            self.pending = is_known && rest.is_none() && entry.arity == Arity::One;
            break;
        }
        if starts_unknown && text.len() > 2 {
            let (name, value) =
                text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
            self.give(at, name, value, self.sure, false);
        }
    }

    fn give(&mut self, at: usize, name: &str, value: Option<&str>, certain: bool, letter: bool) {
        let value = value.map_or(OptionValue::None, |text| OptionValue::Text(text.to_owned()));
        self.line.options.push(CommandOption { name: name.to_owned(), value, certain, letter, at });
    }
}
