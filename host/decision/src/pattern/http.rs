//! Patterns over HTTP requests: methods and paths.

use super::{OperationPattern, name_matches};

/// The longest pattern, in bytes; users write short ones.
const PATTERN_MAX: usize = 1024;

/// A pattern over requests, such as `GET,HEAD /repos/*/issues/**`.
///
/// `*` as the method stands for every method. In a path, `*` and `?` stand for characters of one segment, and the
/// segment `**` stands for any number of segments. `%2F` stands for an encoded separator, as in the path of a package
/// with a scope, `/@me%2Fpackage`. The query is no part of it.
///
/// For GraphQL, [operations](OperationPattern) follow: `POST /graphql query:* mutation:createIssue`.
///
/// ```
/// use portcullis_decision::pattern::{RequestPath, RequestPattern};
/// let pattern = RequestPattern::parse("GET,HEAD /repos/*/issues/**").unwrap();
/// let path = RequestPath::parse("/repos/me/issues/7").unwrap();
/// assert!(pattern.matches("GET", &path) && !pattern.matches("POST", &path));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPattern {
    /// Empty for every method.
    methods: Vec<String>,
    /// With an encoded separator as a character of its segment, and as a separator.
    kept: Vec<String>,
    decoded: Vec<String>,
    /// The operations of GraphQL that it covers; empty for requests whose body does not matter.
    operations: Vec<OperationPattern>,
}

/// What patterns say about a request of which only the head is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Coverage {
    /// None covers it.
    None,
    /// It is covered, whatever its body is.
    Whole,
    /// It is covered if these cover all operations in its body.
    Operations(Vec<OperationPattern>),
}

impl Coverage {
    /// Compares a request with patterns.
    #[must_use]
    pub fn of(patterns: &[RequestPattern], method: &str, path: &RequestPath) -> Self {
        if patterns.iter().any(|pattern| pattern.matches(method, path)) {
            return Self::Whole;
        }
        let heads = patterns.iter().filter(|pattern| pattern.matches_head(method, path));
        let operations: Vec<_> = heads.flat_map(|pattern| pattern.operations.clone()).collect();
        if operations.is_empty() { Self::None } else { Self::Operations(operations) }
    }

    /// Returns true if patterns cover every request, whatever its path is.
    #[must_use]
    pub fn is_everything(patterns: &[RequestPattern]) -> bool {
        patterns.iter().any(|pattern| {
            pattern.methods.is_empty() && pattern.operations.is_empty() && pattern.kept == ["**"]
        })
    }
}

/// The path of a request, in both ways in which servers read it.
///
/// Some servers decode `%2F` to a separator, others keep it as a character of its segment. A pattern matches only if it
/// matches both readings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPath {
    kept: Vec<String>,
    decoded: Vec<String>,
}

impl RequestPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// When the text has another form; the error says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > PATTERN_MAX {
            return Err(format!("it is longer than {PATTERN_MAX} bytes"));
        }
        let form = "write the methods and the path, such as `GET,HEAD /repos/**` or `* /**`";
        let (methods, rest) = text.split_once(' ').ok_or(form)?;
        let (path, operations) = match rest.split_once(' ') {
            Some((path, operations)) => (path, operations.split(' ').collect()),
            None => (rest, Vec::new()),
        };
        let operations: Vec<_> =
            operations.into_iter().map(OperationPattern::parse).collect::<Result<_, _>>()?;
        let is_method = |method: &str| {
            !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-')
        };
        let methods = match methods {
            "*" => Vec::new(),
            listed => listed.split(',').map(str::to_owned).collect(),
        };
        if !methods.iter().all(|method| is_method(method)) {
            return Err(format!("methods are words in capitals with commas between them; {form}"));
        }
        if !operations.is_empty() && methods != ["POST"] {
            return Err("operations of GraphQL are for the method `POST` alone".to_owned());
        }
        let path = path.strip_prefix('/').ok_or(form)?;
        let kept: Vec<String> =
            path.split('/').map(|segment| segment.replace("%2F", "/").replace("%2f", "/")).collect();
        let whole = kept.join("/");
        if whole.contains(['%', '#', '\\', ' ']) || whole.chars().any(char::is_control) {
            return Err("a path is written without `#`, spaces, backslashes, and `%` but in `%2F`".to_owned());
        }
        let decoded: Vec<String> = whole.split('/').map(str::to_owned).collect();
        if decoded.iter().any(|segment| is_dots(segment)) {
            return Err("a path has no segment `.` or `..`".to_owned());
        }
        let is_whole = |segment: &String| {
            !segment.contains('/') || segment.split('/').all(|part| !part.is_empty() && part != "**")
        };
        if !kept.iter().all(is_whole) {
            return Err("`%2F` stands between two names of a path".to_owned());
        }
        Ok(Self { methods, kept, decoded, operations })
    }

    /// Returns true if the pattern covers a request, whatever its body is.
    #[must_use]
    pub fn matches(&self, method: &str, path: &RequestPath) -> bool {
        self.operations.is_empty() && self.matches_head(method, path)
    }

    fn matches_head(&self, method: &str, path: &RequestPath) -> bool {
        let is_meant = self.methods.is_empty() || self.methods.iter().any(|known| known == method);
        is_meant && segments_match(&self.kept, &path.kept) && segments_match(&self.decoded, &path.decoded)
    }
}

impl RequestPattern {
    /// Returns a path that the pattern covers for a method; `None` if it has none that can be told from it.
    ///
    /// ```
    /// use portcullis_decision::pattern::RequestPattern;
    /// let path = |text| RequestPattern::parse(text).unwrap().example("GET");
    /// assert_eq!(path("GET /api/**").as_deref(), Some("/api"));
    /// assert_eq!((path("POST /api"), path("GET /a/*/b")), (None, None));
    /// ```
    #[must_use]
    pub fn example(&self, method: &str) -> Option<String> {
        let segments: Vec<String> =
            self.kept.iter().filter(|segment| *segment != "**").map(|one| one.replace('/', "%2F")).collect();
        let path = format!("/{}", segments.join("/"));
        let is_literal = !segments.iter().any(|segment| segment.contains(['*', '?']));
        let is_covered = RequestPath::parse(&path).is_some_and(|parsed| self.matches(method, &parsed));
        (is_literal && is_covered).then_some(path)
    }
}

impl RequestPath {
    /// Parses the path of a request, without its query.
    ///
    /// Returns `None` for a path that servers read in different ways: with dot segments, empty segments, also before a
    /// parameter such as `;a`, backslashes, control characters, or characters that are encoded twice.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        let rest = path.strip_prefix('/')?;
        if rest.contains(['\\', '#', '?']) {
            return None;
        }
        let kept = rest.split('/').map(decoded).collect::<Option<Vec<_>>>()?;
        let whole = kept.join("/");
        let decoded: Vec<String> = whole.split('/').map(str::to_owned).collect();
        let inner = decoded.split_last().map(|(_, inner)| inner).unwrap_or_default();
        // Some servers cut off what follows `;`, which would leave an empty segment.
        let is_parameter = |segment: &String| segment.starts_with(';');
        // Some systems replace these by `/` or a backslash.
        let is_ambiguous = whole.contains(['\\', '\0', '\u{2044}', '\u{2215}', '\u{ff0f}', '\u{ff3c}'])
            || decoded.iter().any(is_parameter)
            || whole.chars().any(char::is_control)
            || has_escape(&whole)
            || inner.iter().any(String::is_empty)
            || decoded.iter().any(|segment| is_dots(segment));
        (!is_ambiguous).then_some(Self { kept, decoded })
    }

    /// Returns its segments, decoded.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.decoded.iter().map(String::as_str)
    }
}

/// Returns true for `.` and `..`, also before a parameter such as `..;a`, which some servers cut off, beside spaces,
/// which systems may remove, and in forms of the dot that systems may replace by it.
fn is_dots(segment: &str) -> bool {
    let is_dot = |character: char| matches!(character, '.' | '\u{2024}' | '\u{fe52}' | '\u{ff0e}');
    let name = segment.split(';').next().unwrap_or_default().trim();
    name == "\u{2025}" || matches!(name.chars().count(), 1 | 2) && name.chars().all(is_dot)
}

/// Returns true if a text has percent-encoding.
fn has_escape(text: &str) -> bool {
    text.as_bytes().windows(3).any(
        |three| matches!(three, [b'%', high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit()),
    )
}

/// Decodes percent-encoding, or returns `None` if it is invalid.
fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// Compares segments; `**` stands for any number of them.
pub(super) fn segments_match(pattern: &[String], path: &[String]) -> bool {
    let (mut at, mut here) = (0, 0);
    // Where to continue if the last `**` has to take one more segment.
    let mut star: Option<(usize, usize)> = None;
    while let Some(segment) = path.get(here) {
        match pattern.get(at) {
            Some(wanted) if wanted == "**" => {
                star = Some((at + 1, here));
                at += 1;
            }
            Some(wanted) if name_matches(wanted, segment) => {
                at += 1;
                here += 1;
            }
            _ => match star {
                Some((after, taken)) => {
                    star = Some((after, taken + 1));
                    (at, here) = (after, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern.get(at..).is_some_and(|rest| rest.iter().all(|wanted| wanted == "**"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, method: &str, path: &str) -> bool {
        let pattern = RequestPattern::parse(pattern).unwrap();
        RequestPath::parse(path).is_some_and(|path| pattern.matches(method, &path))
    }

    #[test]
    fn methods_and_paths_match() {
        for (pattern, method, path) in [
            ("* /**", "DELETE", "/"),
            ("* /**", "GET", "/a/b/"),
            ("GET /a", "GET", "/a"),
            ("GET,HEAD /a/*", "HEAD", "/a/b"),
            ("GET /a/**/z", "GET", "/a/z"),
            ("GET /a/**/z", "GET", "/a/b/z/z"),
            ("GET /a/**", "GET", "/a"),
            ("GET /**", "GET", "/@scope%2fname"),
            ("GET /a/b?.*", "GET", "/a/bc.git"),
            ("PUT /@me%2Fname", "PUT", "/@me%2fname"),
            ("PUT /@me%2fname/**", "PUT", "/@me%2Fname/-rev/1"),
            ("PUT /@me%2F*", "PUT", "/@me%2fname"),
        ] {
            assert!(check(pattern, method, path), "{pattern} {method} {path}");
        }
    }

    #[test]
    fn others_do_not() {
        for (pattern, method, path) in [
            ("GET /a", "POST", "/a"),
            ("GET /a", "get", "/a"),
            ("GET /a", "GET", "/A"),
            ("GET /a", "GET", "/a/"),
            ("GET /a/*", "GET", "/a/b/c"),
            ("GET /a/*", "GET", "/a/b%2fc"),
            ("GET /a/b/**", "GET", "/a%2fb/c"),
            ("GET /a/**", "GET", "/b"),
            ("PUT /@me%2Fname", "PUT", "/@me/name"),
            ("PUT /@me/name", "PUT", "/@me%2fname"),
            ("PUT /@me%2Fname", "PUT", "/@me%2fname%2fx"),
            ("PUT /@me%2Fname", "PUT", "/@me%2fother"),
            ("PUT /@me%2F*", "PUT", "/@me%2fname%2fx"),
        ] {
            assert!(!check(pattern, method, path), "{pattern} {method} {path}");
        }
    }

    #[test]
    fn operations_need_the_body() {
        let all = |texts: &[&str]| -> Vec<RequestPattern> {
            texts.iter().map(|text| RequestPattern::parse(text).unwrap()).collect()
        };
        let coverage = |texts: &[&str], method: &str| {
            Coverage::of(&all(texts), method, &RequestPath::parse("/graphql").unwrap())
        };
        let operations = |texts: &[&str]| {
            Coverage::Operations(texts.iter().map(|text| OperationPattern::parse(text).unwrap()).collect())
        };
        let (reads, writes) = ("POST /graphql query:*", "POST /** mutation:createIssue subscription:*");
        assert!(!all(&[reads])[0].matches("POST", &RequestPath::parse("/graphql").unwrap()));
        assert_eq!(coverage(&[reads], "POST"), operations(&["query:*"]));
        assert_eq!(
            coverage(&[reads, writes], "POST"),
            operations(&["query:*", "mutation:createIssue", "subscription:*"])
        );
        assert_eq!(coverage(&[reads, "POST /**"], "POST"), Coverage::Whole);
        assert_eq!(coverage(&[reads], "GET"), Coverage::None);
        assert_eq!(coverage(&["POST /other query:*"], "POST"), Coverage::None);
    }

    #[test]
    fn paths_that_servers_read_differently_match_nothing() {
        for path in [
            "",
            "a",
            "/a/../b",
            "/a/./b",
            "/a/%2e%2e/b",
            "/a%2f..%2fb",
            "/a/..;x/b",
            "/a/;x/b",
            "/a/..%20/b",
            "/a/%20../b",
            "/a/..%C2%A0/b",
            "/a/%EF%BC%8E%EF%BC%8E/b",
            "/a/%E2%80%A5/b",
            "/a%EF%BC%8Fb",
            "/a/%3bx",
            "/a//b",
            "//a",
            "/a\\b",
            "/a%5cb",
            "/a%00",
            "/a%0d%0a",
            "/a%252e",
            "/a%2",
            "/a%zz",
            "/a%+1",
            "/a%ff",
            "/a#b",
            "/a?b",
        ] {
            assert_eq!(RequestPath::parse(path), None, "{path}");
        }
    }

    #[test]
    fn patterns_of_another_form_are_refused() {
        for text in [
            "",
            "GET",
            "/a",
            "get /a",
            "GET,, /a",
            "GET a",
            "GET /a/../b",
            "GET /%41",
            "GET  /a",
            "GET /a%2F..",
            "GET /%2Fa",
            "GET /a%2F/b",
            "GET /a%2F**",
            "GET /a%252F",
            "GET /graphql query:*",
            "* /graphql query:*",
            "GET,POST /graphql query:*",
            "POST /graphql query",
            "POST /graphql  query:*",
            "POST /graphql query:* ",
        ] {
            assert!(RequestPattern::parse(text).is_err(), "{text}");
        }
    }
}
