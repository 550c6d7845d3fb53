//! The table of known programs.

use super::table::ROWS;

/// A program or a subcommand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    /// Its name, with the program and outer subcommands.
    pub(super) path: &'static str,
    /// The first letters of its traits; `=` if it is another name, which is in `options`.
    traits: &'static str,
    /// Its options, as in `tables/commands.toml`, then `option>what,covers,it`.
    options: &'static str,
}

/// A trait of a program or a subcommand; `tables/commands.toml` describes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trait {
    Abbreviated,
    SingleDash,
    Everywhere,
    UserAliases,
    OperandEnds,
    Runs,
}

/// An option of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    names: &'static str,
    pub(super) arity: Arity,
}

/// The value of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arity {
    None,
    /// The rest of the word, or the next word.
    One,
    /// The rest of the word only.
    Attached,
}

/// Returns the row of a program or subcommand.
pub(super) fn row(path: &str) -> Option<Row> {
    let index = ROWS.binary_search_by(|(known, ..)| (*known).cmp(path)).ok()?;
    let (path, traits, options) = ROWS.get(index)?;
    Some(Row { path, traits, options })
}

/// Returns the row of git and the subcommand for `git-push`.
pub(super) fn dashed(name: &str) -> Option<(Row, &str)> {
    let (program, subcommand) = name.split_once('-')?;
    let row = row(program).filter(|row| row.traits.contains('d'))?;
    Some((row, subcommand))
}

impl Row {
    pub(super) fn has(&self, wanted: Trait) -> bool {
        let letter = match wanted {
            Trait::Abbreviated => 'a',
            Trait::SingleDash => 's',
            Trait::Everywhere => 'e',
            Trait::UserAliases => 'u',
            Trait::OperandEnds => 'o',
            Trait::Runs => 'r',
        };
        self.traits.contains(letter)
    }

    /// Returns the main name if this is another name.
    pub(super) fn same_as(&self) -> Option<&'static str> {
        (self.traits == "=").then_some(self.options)
    }

    /// Returns the option with this spelling.
    pub(super) fn entry(&self, name: &str) -> Option<Entry> {
        self.entries().find(|entry| entry.spellings().any(|spelling| spelling == name))
    }

    /// Returns the options that have a long spelling with this beginning.
    pub(super) fn abbreviated(&self, start: &str) -> Vec<Entry> {
        self.entries().filter(|entry| entry.spellings().any(|spelling| spelling.starts_with(start))).collect()
    }

    /// Returns the options, and beginnings of operands, that count as this option.
    pub(super) fn covered(&self, name: &str) -> impl Iterator<Item = &'static str> {
        let lists = self.options.split(' ').filter_map(|entry| entry.split_once('>'));
        lists.filter(move |(covering, _)| *covering == name).flat_map(|(_, covered)| covered.split(','))
    }

    fn entries(&self) -> impl Iterator<Item = Entry> {
        self.options.split(' ').filter(|entry| entry.starts_with('-') && !entry.contains('>')).map(|entry| {
            if let Some(names) = entry.strip_suffix('=') {
                Entry { names, arity: Arity::One }
            } else if let Some(names) = entry.strip_suffix('?') {
                Entry { names, arity: Arity::Attached }
            } else {
                Entry { names: entry, arity: Arity::None }
            }
        })
    }
}

impl Entry {
    /// Returns its first spelling.
    pub(super) fn name(&self) -> &'static str {
        self.spellings().next().unwrap_or_default()
    }

    fn spellings(&self) -> impl Iterator<Item = &'static str> {
        self.names.split('|')
    }
}
