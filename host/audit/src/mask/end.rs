//! Finds the end of a value. If a text can be read in several ways, the longest reading counts.

/// Returns the length of a shell word, with its quotes, escapes and substitutions.
///
/// `outer` is the enclosing quote; with `to_quote` the word ends only at that quote.
pub(super) fn of_shell_word(rest: &str, outer: Option<char>, to_quote: bool) -> usize {
    let mut at = 0;
    while let Some(tail) = rest.get(at..).filter(|tail| !tail.is_empty()) {
        let inner = inner_quote(tail, outer);
        let first = tail.chars().next().unwrap_or_default();
        at += match first {
            _ if inner.is_some() => inner.unwrap_or_default(),
            _ if Some(first) == outer => return at,
            '\\' => first.len_utf8() + tail.chars().nth(1).map_or(0, char::len_utf8),
            '\'' | '"' => 1 + of_quoted(tail.get(1..).unwrap_or_default(), first, 0, true),
            '$' if tail.starts_with("$(") => 2 + of_nested(tail.get(2..).unwrap_or_default(), '(', ')'),
            '$' if tail.starts_with("${") => 2 + of_nested(tail.get(2..).unwrap_or_default(), '{', '}'),
            '`' => 1 + of_quoted(tail.get(1..).unwrap_or_default(), '`', 0, true),
            _ if !to_quote && (first.is_whitespace() || ";&|<>)".contains(first)) => return at,
            _ => first.len_utf8(),
        };
    }
    rest.len()
}

/// Returns the length of a quoted part inside a quoted word: `\"…\"` in `"`, `'\''…'\''` in `'`.
fn inner_quote(tail: &str, outer: Option<char>) -> Option<usize> {
    let quote = match outer? {
        '"' => "\\\"",
        _ => "'\\''",
    };
    let inner = tail.strip_prefix(quote)?;
    Some(inner.find(quote).map_or(tail.len(), |end| end + 2 * quote.len()))
}

/// Returns the length of a text opened by `quote` with `escapes` backslashes before it.
///
/// `whole` includes the closing quote.
pub(super) fn of_quoted(rest: &str, quote: char, escapes: usize, whole: bool) -> usize {
    // A nested quote has one more level of escapes than the opening one, and each backslash before it is escaped too.
    let period = 2 * (escapes + 1);
    let closing = rest.match_indices(quote).find_map(|(at, _)| {
        let before = rest.get(..at)?;
        let backslashes = before.len() - before.trim_end_matches('\\').len();
        (backslashes % period == escapes).then_some(at)
    });
    match closing {
        Some(at) if whole => at + quote.len_utf8(),
        Some(at) => at.saturating_sub(escapes),
        None => rest.len(),
    }
}

fn of_nested(rest: &str, open: char, close: char) -> usize {
    let mut depth = 1_usize;
    for (at, character) in rest.char_indices() {
        if character == open {
            depth += 1;
        } else if character == close {
            depth -= 1;
        }
        if depth == 0 {
            return at + close.len_utf8();
        }
    }
    rest.len()
}

/// Returns the length of a line inside the quote `outer`.
pub(super) fn of_line(rest: &str, outer: Option<char>) -> usize {
    let ends = |character: char| {
        character == '\n' || outer.map_or("\"'`".contains(character), |quote| character == quote)
    };
    let mut from = 0;
    // `\"` inside `"` is part of the line.
    while let Some(at) = rest.get(from..).and_then(|tail| tail.find(ends)).map(|at| from + at) {
        let before = rest.get(..at).unwrap_or_default();
        if outer != Some('"')
            || !before.ends_with('\\')
            || rest.get(at..).is_some_and(|tail| tail.starts_with('\n'))
        {
            return at;
        }
        from = at + 1;
    }
    rest.len()
}

/// Returns the length of a plain value that is not a shell word.
pub(super) fn of_plain(rest: &str) -> usize {
    rest.find(|character: char| character.is_whitespace() || ";&|\"'`),}".contains(character))
        .unwrap_or(rest.len())
}
