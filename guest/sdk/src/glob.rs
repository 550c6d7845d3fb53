//! Globs over contract paths, with the semantics the host enforces.

use std::str::Chars;

use thiserror::Error;

/// The longest accepted glob, in bytes; the host has the same limit.
const GLOB_MAX: usize = 1024;

/// The maximum number of alternatives to which `{a,b}` groups may multiply.
const ALTERNATIVES_MAX: usize = 256;

/// A compiled glob: `*`, `**`, `?`, `[...]`, `{a,b}` and `\` before a literal character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    alternatives: Vec<Vec<Segment>>,
}

/// Why a glob was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{glob}` is not a valid glob: {detail}")]
pub struct GlobError {
    glob: String,
    detail: &'static str,
}

/// The part between two slashes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    /// `**`: any number of components.
    Deep,
    One(Vec<Token>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Literal(char),
    AnyChar,
    Star,
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl Glob {
    /// Parses a glob over whole paths; without a leading `/` it matches at any depth.
    ///
    /// # Errors
    ///
    /// If it is empty, negated, too long or malformed.
    pub fn path(text: &str) -> Result<Self, GlobError> {
        let floating = !text.starts_with('/');
        Self::read(text, |alternative| {
            let mut segments = if floating { vec![Segment::Deep] } else { Vec::new() };
            for part in split(alternative).filter(|part| !part.is_empty()) {
                segments.push(if part == "**" { Segment::Deep } else { Segment::One(tokens(part)?) });
            }
            if segments.iter().any(|segment| matches!(segment, Segment::One(_))) || text.contains("**") {
                Ok(segments)
            } else {
                Err("it names nothing; name a directory with `tree`")
            }
        })
    }

    /// Parses a glob over one component.
    ///
    /// # Errors
    ///
    /// As [`Glob::path`], and if it contains a `/`.
    pub fn name(text: &str) -> Result<Self, GlobError> {
        Self::read(text, |alternative| {
            if alternative.contains('/') {
                return Err("it is for the last component and must not hold `/`");
            }
            Ok(vec![Segment::One(tokens(alternative)?)])
        })
    }

    fn read(
        text: &str,
        segments: impl Fn(&str) -> Result<Vec<Segment>, &'static str>,
    ) -> Result<Self, GlobError> {
        let refused = |detail| GlobError { glob: text.to_owned(), detail };
        if text.is_empty() || text.starts_with('!') || text.len() > GLOB_MAX {
            return Err(refused("it is empty, negated or longer than 1024 bytes"));
        }
        let alternatives = expand(text).and_then(|all| all.iter().map(|one| segments(one)).collect());
        alternatives.map(|alternatives| Self { alternatives }).map_err(refused)
    }

    /// Returns true if the glob matches an absolute path or a directory above it.
    pub fn matches_path(&self, path: &str) -> bool {
        self.alternatives.iter().any(|segments| matches_components(segments, path))
    }

    /// Returns true if the glob matches one component.
    pub fn matches_name(&self, name: &str) -> bool {
        self.alternatives.iter().any(|segments| match segments.as_slice() {
            [Segment::One(tokens)] => matches_tokens(tokens, name.chars()),
            _ => false,
        })
    }
}

/// Matches the components against the set of segments that could come next.
fn matches_components(segments: &[Segment], path: &str) -> bool {
    let mut next = vec![false; segments.len() + 1];
    reach(segments, &mut next, 0);
    for component in path.split('/').filter(|component| !component.is_empty()) {
        let mut after = vec![false; segments.len() + 1];
        for (index, segment) in
            segments.iter().enumerate().filter(|(index, _)| next.get(*index) == Some(&true))
        {
            match segment {
                Segment::Deep => {
                    reach(segments, &mut after, index);
                    reach(segments, &mut after, index + 1);
                }
                Segment::One(tokens) if matches_tokens(tokens, component.chars()) => {
                    reach(segments, &mut after, index + 1);
                }
                Segment::One(_) => {}
            }
        }
        // Paths below a match match too.
        if after.last() == Some(&true) {
            return true;
        }
        next = after;
    }
    false
}

/// Marks a segment as possible, and those that a preceding `**` may skip to. A `**` at the end stands for at least one
/// component: `a/**` does not match `a`.
fn reach(segments: &[Segment], states: &mut [bool], index: usize) {
    for (position, state) in states.iter_mut().enumerate().skip(index) {
        *state = true;
        let last = position + 1 >= segments.len();
        if last || segments.get(position) != Some(&Segment::Deep) {
            return;
        }
    }
}

/// Matches one component; after a mismatch the last `*` takes one more character.
fn matches_tokens(tokens: &[Token], text: Chars<'_>) -> bool {
    let (mut rest, mut pattern) = (text, tokens);
    let mut retry: Option<(Chars<'_>, &[Token])> = None;
    loop {
        let mut ahead = rest.clone();
        let matched = match (pattern.split_first(), ahead.next()) {
            (None, None) => return true,
            (Some((Token::Star, after)), _) => {
                retry = Some((rest.clone(), after));
                pattern = after;
                continue;
            }
            (Some((token, after)), Some(character)) if token.matches(character) => {
                pattern = after;
                true
            }
            _ => false,
        };
        if matched {
            rest = ahead;
            continue;
        }
        let Some((mut from, after)) = retry.take() else { return false };
        if from.next().is_none() {
            return false;
        }
        retry = Some((from.clone(), after));
        (rest, pattern) = (from, after);
    }
}

impl Token {
    fn matches(&self, character: char) -> bool {
        match self {
            Self::Literal(literal) => *literal == character,
            Self::AnyChar => true,
            Self::Star => false,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&character)) != *negated
            }
        }
    }
}

/// Splits at slashes.
fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split('/')
}

/// Parses the text between two slashes.
fn tokens(text: &str) -> Result<Vec<Token>, &'static str> {
    let mut characters = text.chars();
    let mut tokens = Vec::new();
    while let Some(character) = characters.next() {
        tokens.push(match character {
            '*' => Token::Star,
            '?' => Token::AnyChar,
            '[' => class(&mut characters)?,
            '\\' => Token::Literal(characters.next().ok_or("it ends with a lone `\\`")?),
            literal => Token::Literal(literal),
        });
    }
    Ok(tokens)
}

/// Parses a class up to its `]`; a `]` at the very start is literal.
fn class(characters: &mut Chars<'_>) -> Result<Token, &'static str> {
    const OPEN: &str = "a `[` has no `]`";
    let mut character = characters.next().ok_or(OPEN)?;
    let negated = matches!(character, '!' | '^');
    if negated {
        character = characters.next().ok_or(OPEN)?;
    }
    let mut ranges = Vec::new();
    loop {
        let mut ahead = characters.clone();
        let high = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(high)) if high != ']' => Some(high),
            _ => None,
        };
        ranges.push((character, high.unwrap_or(character)));
        if high.is_some() {
            *characters = ahead;
        }
        if ranges.last().is_some_and(|(low, high)| low > high) {
            return Err("a range runs backwards");
        }
        match characters.next().ok_or(OPEN)? {
            ']' => return Ok(Token::Class { negated, ranges }),
            next => character = next,
        }
    }
}

/// Expands `{a,b}`, including nested groups.
fn expand(text: &str) -> Result<Vec<String>, &'static str> {
    let Some((before, choices, after)) = first_group(text)? else { return Ok(vec![text.to_owned()]) };
    let mut expanded = Vec::new();
    for choice in choices {
        expanded.extend(expand(&format!("{before}{choice}{after}"))?);
        if expanded.len() > ALTERNATIVES_MAX {
            return Err("its `{…}` groups multiply to more than 256 alternatives");
        }
    }
    Ok(expanded)
}

/// The text before a group, its choices, and the text after it.
type Group<'a> = (&'a str, Vec<&'a str>, &'a str);

/// Finds the first `{…}` and splits it at its own commas.
fn first_group(text: &str) -> Result<Option<Group<'_>>, &'static str> {
    let mut depth = 0_usize;
    let mut open = 0;
    let mut cuts = Vec::new();
    let mut escaped = false;
    let mut bracket = false;
    for (index, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ']' => bracket = false,
            _ if bracket => {}
            '[' => bracket = true,
            '{' => {
                if depth == 0 {
                    open = index;
                }
                depth += 1;
            }
            ',' if depth == 1 => cuts.push(index),
            '}' if depth == 1 => {
                cuts.push(index);
                return Ok(Some(group(text, open, &cuts)));
            }
            '}' if depth == 0 => return Err("a `}` has no `{`"),
            '}' => depth -= 1,
            _ => {}
        }
    }
    if depth > 0 { Err("a `{` has no `}`") } else { Ok(None) }
}

fn group<'a>(text: &'a str, open: usize, cuts: &[usize]) -> Group<'a> {
    let mut start = open + 1;
    let mut choices = Vec::new();
    for cut in cuts {
        choices.push(text.get(start..*cut).unwrap_or_default());
        start = cut + 1;
    }
    (text.get(..open).unwrap_or_default(), choices, text.get(start..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for (glob, path, expected) in [
            ("/a/*.pem", "/a/x.pem", true),
            ("/a/*.pem", "/a/b/x.pem", false),
            ("*.pem", "/a/b/x.pem", true),
            ("**/*.pem", "/x.pem", true),
            ("/a/**/b", "/a/b", true),
            ("/a/**/b", "/a/x/y/b", true),
            ("/a/**/b", "/a/x/y/bc", false),
            ("/a/**", "/a", false),
            ("/a/**", "/a/b/c", true),
            ("/a/*", "/a/b/c", true),
            ("node_modules/.bin", "/w/node_modules/.bin/tsc", true),
            (".env{,.*}", "/w/.env", true),
            (".env{,.*}", "/w/.env.local", true),
            (".env{,.*}", "/w/.environment", false),
            ("/a/{b,c/{d,e}}/f", "/a/c/e/f", true),
            ("/a/{b,c/{d,e}}/f", "/a/c/f", false),
            ("/a/[!x-z]b", "/a/ab", true),
            ("/a/[!x-z]b", "/a/yb", false),
            ("/a/[]a]", "/a/]", true),
            ("/a/\\*", "/a/*", true),
            ("/a/\\*", "/a/b", false),
            ("/a/?", "/a/ü", true),
            ("/**", "/a", true),
            ("/a/*a*b*c", "/a/xaybzc", true),
            ("/a/*a*b*c", "/a/xaybz", false),
        ] {
            assert_eq!(Glob::path(glob).unwrap().matches_path(path), expected, "{glob} on {path}");
        }
    }

    #[test]
    fn names() {
        assert!(Glob::name("*.pem").unwrap().matches_name("a.pem"));
        assert!(Glob::name("id_{rsa,ed25519}").unwrap().matches_name("id_ed25519"));
        assert!(!Glob::name("*.pem").unwrap().matches_name("a.pem.txt"));
    }

    #[test]
    fn refused() {
        for glob in ["", "!a", "/a/[b", "/a/{b", "/a}b", "/", "a\\", "[z-a]", &"a".repeat(1025)] {
            assert!(Glob::path(glob).is_err(), "{glob}");
        }
        assert!(Glob::name("a/b").is_err());
        let explosive = "{a,b}".repeat(20);
        assert!(Glob::path(&explosive).is_err());
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let glob = Glob::path(&format!("/{}b", "*a".repeat(200))).unwrap();
        assert!(!glob.matches_path(&format!("/{}", "a".repeat(4000))));
    }
}
