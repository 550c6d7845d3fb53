//! Positions in a text.

use std::fmt;

/// A line and a column, both from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl Place {
    /// Returns the position of a byte offset; the end of the text for a larger one.
    pub fn of_offset(text: &str, offset: usize) -> Self {
        let before = text.get(..text.floor_char_boundary(offset)).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before.get(start..).unwrap_or_default().chars().count() + 1;
        Self { line, column }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let place = |offset| Place::of_offset("ab\nüx\n", offset).to_string();
        assert_eq!(
            [place(0), place(2), place(3), place(5), place(7), place(99)],
            ["1:1", "1:3", "2:1", "2:2", "3:1", "3:1"]
        );
        assert_eq!(place(4), "2:1", "inside a character");
    }
}
