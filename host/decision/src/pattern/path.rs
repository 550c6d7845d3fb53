//! Patterns over canonical absolute paths.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};

use crate::path_text;

/// The longest accepted glob, in bytes; a longer one is a mistake or an attack.
const GLOB_MAX: usize = 1024;
/// The deepest nesting of braces: the regex engine refuses expressions that are nested deeper than about 120 pairs.
const BRACES_MAX: usize = 16;

/// The paths that a rule or a grant covers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilePattern {
    /// This path, taken literally.
    Exact(#[serde(with = "path_text::as_text")] PathBuf),
    /// This directory and all below it, taken literally.
    Tree(#[serde(with = "path_text::as_text")] PathBuf),
    /// A gitignore-style glob over the whole path; without a slash it matches at any depth. Paths below a matching
    /// directory match too.
    Glob(GlobText),
    /// A glob for the last component, anywhere below a directory.
    Name {
        /// The directory.
        #[serde(with = "path_text::as_text")]
        below: PathBuf,
        /// The glob.
        glob: GlobText,
    },
}

impl FilePattern {
    /// Parses [`FilePattern::Exact`] from contract text.
    ///
    /// # Errors
    /// If the text is not an absolute, normal path.
    pub fn exact(text: &str) -> Result<Self, PatternError> {
        absolute(text).map(Self::Exact)
    }

    /// Parses [`FilePattern::Tree`] from contract text.
    ///
    /// # Errors
    /// If the text is not an absolute, normal path.
    pub fn tree(text: &str) -> Result<Self, PatternError> {
        absolute(text).map(Self::Tree)
    }

    /// Parses [`FilePattern::Glob`].
    ///
    /// # Errors
    /// If the glob is not valid.
    pub fn glob(text: &str) -> Result<Self, PatternError> {
        GlobText::parse(text).map(Self::Glob)
    }

    /// Parses [`FilePattern::Name`].
    ///
    /// # Errors
    /// If the directory is not an absolute, normal path or the glob is not valid.
    pub fn name(below: &str, glob: &str) -> Result<Self, PatternError> {
        Ok(Self::Name { below: absolute(below)?, glob: GlobText::parse(glob)? })
    }

    /// Returns the path of a literal pattern; `None` for globs and names.
    #[must_use]
    pub fn literal(&self) -> Option<&Path> {
        match self {
            Self::Exact(path) | Self::Tree(path) => Some(path),
            Self::Glob(_) | Self::Name { .. } => None,
        }
    }

    /// Returns true if the pattern names literal paths only, so that it can be enforced without looking at names.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        matches!(self, Self::Exact(_) | Self::Tree(_))
    }

    /// Compiles the pattern for repeated matching.
    #[must_use]
    pub fn matcher(&self) -> PathMatcher {
        PathMatcher(match self {
            Self::Exact(path) => Inner::Exact(path.clone()),
            Self::Tree(path) => Inner::Tree(path.clone()),
            Self::Glob(glob) => Inner::Glob(glob.anywhere()),
            Self::Name { below, glob } => Inner::Name(below.clone(), glob.name_only()),
        })
    }
}

impl std::fmt::Display for FilePattern {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exact(path) => formatter.write_str(&path_text::encode(path)),
            Self::Tree(path) => write!(formatter, "{}/**", path_text::encode(path).trim_end_matches('/')),
            Self::Glob(glob) => formatter.write_str(&glob.0),
            Self::Name { below, glob } => {
                write!(formatter, "{}/**/{}", path_text::encode(below).trim_end_matches('/'), glob.0)
            }
        }
    }
}

/// A checked glob.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GlobText(String);

impl GlobText {
    /// Checks a glob: `*`, `**`, `?`, `[...]`, `{a,b}`; no leading `!`.
    ///
    /// # Errors
    /// If it is too long, negated or malformed.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        check_glob_size(text)?;
        if text.is_empty() || text.starts_with('!') {
            return Err(PatternError::Glob { glob: text.to_owned(), detail: "empty or negated".to_owned() });
        }
        let refused = |detail: String| PatternError::Glob { glob: text.to_owned(), detail };
        let glob = Self(text.to_owned());
        for form in glob.forms().iter().chain([&glob.0]) {
            compile(form).map_err(|error| refused(error.kind().to_string()))?;
        }
        Ok(glob)
    }

    /// Returns the glob that matches every name.
    #[must_use]
    pub fn any() -> Self {
        Self("*".to_owned())
    }

    /// Returns the glob as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a matcher for the last component only.
    pub(crate) fn name_only(&self) -> GlobSet {
        compiled(&self.0)
    }

    /// Returns matchers for whole paths: for the glob itself, and for paths below a match.
    pub(crate) fn anywhere(&self) -> [GlobSet; 2] {
        self.forms().map(|form| compiled(&form))
    }

    /// Returns the two globs over whole paths that this one stands for.
    pub(super) fn forms(&self) -> [String; 2] {
        let text = self.0.trim_end_matches("/**").trim_end_matches('/');
        let rooted = if text.starts_with('/') || text.starts_with("**") {
            text.to_owned()
        } else {
            format!("**/{text}")
        };
        let below = format!("{rooted}/**");
        if self.0.ends_with("/**") {
            // `a/**` matches paths below `a`, but not `a` itself.
            [below.clone(), below]
        } else {
            [rooted, below]
        }
    }
}

impl TryFrom<String> for GlobText {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        Self::parse(&text)
    }
}

impl From<GlobText> for String {
    fn from(glob: GlobText) -> Self {
        glob.0
    }
}

/// A compiled [`FilePattern`].
#[derive(Debug, Clone)]
pub struct PathMatcher(Inner);

#[derive(Debug, Clone)]
enum Inner {
    Exact(PathBuf),
    Tree(PathBuf),
    Glob([GlobSet; 2]),
    Name(PathBuf, GlobSet),
}

impl PathMatcher {
    /// Returns true if `path`, absolute and canonical, is covered.
    #[must_use]
    pub fn matches(&self, path: &Path) -> bool {
        match &self.0 {
            Inner::Exact(exact) => path == exact,
            Inner::Tree(top) => path.starts_with(top),
            Inner::Glob(globs) => globs.iter().any(|glob| glob.is_match(path)),
            Inner::Name(below, glob) => {
                path != below
                    && path.starts_with(below)
                    && path.file_name().is_some_and(|name| glob.is_match(name))
            }
        }
    }
}

/// Why a pattern was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum PatternError {
    /// Not an absolute path without `.`, `..` and doubled slashes.
    #[error("`{path}` is not an absolute, normal path; write it from `/` and without `.` and `..`")]
    Path { path: String },
    /// A malformed glob.
    #[error("`{glob}` is not a valid glob: {detail}")]
    Glob { glob: String, detail: String },
    /// A glob that is too long.
    #[error("a glob of {length} bytes is too long; at most {GLOB_MAX} are allowed")]
    GlobLength { length: usize },
    /// A malformed host pattern.
    #[error("`{host}` is not a host pattern: {detail}")]
    Host { host: String, detail: &'static str },
}

fn absolute(text: &str) -> Result<PathBuf, PatternError> {
    let refused = || PatternError::Path { path: text.to_owned() };
    let path = path_text::decode(text).ok_or_else(refused)?;
    if !path.is_absolute() || path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(refused());
    }
    let clean = path_text::normalize(&path);
    if clean.as_os_str() == path.as_os_str() { Ok(path) } else { Err(refused()) }
}

/// Compiles a glob to its automaton. A set of one, because `Glob::compile_matcher` panics if the regex engine refuses
/// the expression, while a set returns an error.
fn compile(text: &str) -> Result<GlobSet, globset::Error> {
    let glob = GlobBuilder::new(text).literal_separator(true).backslash_escape(true).build()?;
    GlobSetBuilder::new().add(glob).build()
}

#[expect(clippy::expect_used, reason = "`GlobText::parse` has compiled these very texts")]
fn compiled(text: &str) -> GlobSet {
    compile(text).expect("a glob that was checked compiles")
}

/// Checks the length of a glob and the nesting of its braces before it is parsed: glob parsers recurse, and overflow
/// the stack on many nested braces.
///
/// # Errors
/// If it is longer than 1,024 bytes, or nested deeper than 16 pairs of braces.
pub fn check_glob_size(text: &str) -> Result<(), PatternError> {
    if text.len() > GLOB_MAX {
        return Err(PatternError::GlobLength { length: text.len() });
    }
    if brace_depth(text) > BRACES_MAX {
        let detail = format!("braces are nested deeper than {BRACES_MAX}");
        return Err(PatternError::Glob { glob: text.to_owned(), detail });
    }
    Ok(())
}

/// Returns the nesting depth of braces; escaped ones and those in a class count as well.
fn brace_depth(text: &str) -> usize {
    let depths = text.bytes().scan(0_usize, |depth, byte| {
        match byte {
            b'{' => *depth += 1,
            b'}' => *depth = depth.saturating_sub(1),
            _ => {}
        }
        Some(*depth)
    });
    depths.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: FilePattern, path: &str, expected: bool) {
        assert_eq!(pattern.matcher().matches(Path::new(path)), expected, "{pattern} on {path}");
    }

    #[test]
    fn literal_patterns() {
        let tree = || FilePattern::tree("/p").unwrap();
        check(tree(), "/p", true);
        check(tree(), "/p/a/b", true);
        check(tree(), "/pp", false);
        check(FilePattern::exact("/p").unwrap(), "/p/a", false);
        check(FilePattern::exact("/p/[x].env").unwrap(), "/p/[x].env", true);
        check(FilePattern::exact("/p/a*b").unwrap(), "/p/aXb", false);
    }

    #[test]
    fn globs() {
        for (glob, path, expected) in [
            ("*.pem", "/a/b/c.pem", true),
            ("*.pem", "/a/b/c.pem/inside", true),
            ("*.pem", "/a/b/c.pems", false),
            (".env.*", "/p/.env.local", true),
            (".env", "/p/.env.local", false),
            ("**/.git/hooks/**", "/p/x/.git/hooks/pre-commit", true),
            ("**/.git/hooks/**", "/p/x/.git/hooks", false),
            ("/p/*.txt", "/p/a.txt", true),
            ("/p/*.txt", "/p/q/a.txt", false),
            ("/p/**/a", "/p/x/y/a", true),
            ("{a,b}.c", "/p/b.c", true),
        ] {
            check(FilePattern::glob(glob).unwrap(), path, expected);
        }
    }

    #[test]
    fn names_below_a_directory() {
        let name = || FilePattern::name("/p", "*.pem").unwrap();
        check(name(), "/p/a/x.pem", true);
        check(name(), "/q/x.pem", false);
        check(name(), "/p", false);
    }

    /// Matching takes time proportional to path times expression. So it suffices that the expression grows no faster
    /// than the glob and has no counted repetitions.
    #[test]
    fn a_glob_bomb_is_linear() {
        for bomb in ["**/", "*a", "?", "{a,b}", "{a*,*b}", "[!a]", "{a,{b,c}}", "**/a*b*c*d/"] {
            let glob = bomb.repeat(GLOB_MAX / bomb.len());
            let glob = GlobText::parse(&glob).unwrap();
            for form in glob.forms() {
                let compiled = GlobBuilder::new(&form).literal_separator(true).backslash_escape(true).build();
                let compiled = compiled.unwrap();
                let expression = compiled.regex();
                assert!(expression.len() <= 24 * GLOB_MAX, "{bomb} makes {} bytes", expression.len());
                assert!(!expression.contains('{'), "{bomb} makes {expression}");
            }
        }
        let glob = FilePattern::glob(&format!("{}a*b*c*d", "**/".repeat(40))).unwrap();
        assert!(!glob.matcher().matches(Path::new(&format!("/{}", "abcabc/".repeat(500)))));
        assert!(glob.matcher().matches(Path::new(&format!("/{}abcd", "abcabc/".repeat(500)))));
    }

    /// A request once ended in a panic here: 170 nested braces are a valid glob and no valid expression.
    #[test]
    fn nested_braces_are_refused_and_do_not_panic() {
        let nested = |depth: usize| format!("{}a{}", "{a,".repeat(depth), "}".repeat(depth));
        let unchecked = |text: &str| GlobBuilder::new(text).build().unwrap().compile_matcher();
        let panics = |text: &str| std::panic::catch_unwind(|| unchecked(text)).is_err();
        assert!(panics(&nested(170)), "control: this is what happened");
        let refused = GlobText::parse(&nested(170)).unwrap_err().to_string();
        assert!(refused.contains("nested deeper than 16"), "{refused}");
        assert!(GlobText::parse(&nested(BRACES_MAX + 1)).is_err());
        for text in [nested(BRACES_MAX), format!("**/{}/**", nested(BRACES_MAX)), "{a,b}".repeat(100)] {
            let matchers = GlobText::parse(&text).unwrap();
            assert!(!matchers.anywhere()[0].is_match("/x"));
            assert!(!matchers.name_only().is_match("x"));
        }
        // Also in a rule that is deserialized, as the answers of policies are.
        assert!(serde_json::from_str::<FilePattern>(&format!("{{\"glob\": {:?}}}", nested(170))).is_err());
    }

    #[test]
    fn refuses() {
        for text in ["", "a", "/a/../b", "/a//b", "/a/", "/a/.", "/a\0b"] {
            assert!(FilePattern::tree(text).is_err(), "{text:?}");
        }
        for glob in ["", "!a", "[", "{a", &"a".repeat(2_000)] {
            assert!(FilePattern::glob(glob).is_err(), "{glob:?}");
        }
    }
}
