//! Path patterns as regular expressions, for comparing the rules of two policies.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use globset::GlobBuilder;

use super::{FilePattern, GlobText};

/// The paths that a pattern covers, as regular expressions over the bytes of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathExpression {
    /// The paths that match one of these.
    Paths(Vec<String>),
    /// The paths that match.
    Tree {
        /// The top.
        top: String,
        /// Whether the top itself is covered, besides the paths below it.
        covers_top: bool,
        /// The rest of a path below the top.
        below: String,
    },
    /// Paths anywhere below a directory, whose last component matches the expression.
    Name {
        /// The directory.
        below: PathBuf,
        /// The expression; only its matches without a slash count.
        name: String,
    },
}

impl FilePattern {
    /// Returns the pattern as regular expressions in the syntax of the `regex` crate.
    #[must_use]
    pub fn expression(&self) -> PathExpression {
        match self {
            Self::Exact(path) => PathExpression::Paths(vec![format!("^{}$", literal(path))]),
            Self::Tree(path) => PathExpression::Tree {
                top: if path == Path::new("/") { String::new() } else { literal(path) },
                covers_top: true,
                below: "(?s-u)/.*".to_owned(),
            },
            Self::Glob(glob) => glob.whole_expression(),
            Self::Name { below, glob } => {
                PathExpression::Name { below: below.clone(), name: expression(glob.as_str()) }
            }
        }
    }
}

impl GlobText {
    /// Returns an expression over whole paths, as [`GlobText::anywhere`] matches them.
    fn whole_expression(&self) -> PathExpression {
        let [itself, below] = self.forms();
        let covers_top = itself != below;
        let tree = expression(&below);
        let flags = tree.split_once(')').map(|(flags, _)| format!("{flags})"));
        match (tree.strip_suffix(BELOW), flags) {
            (Some(top), Some(flags)) if !covers_top || expression(&itself) == format!("{top}$") => {
                PathExpression::Tree { top: format!("{top}$"), covers_top, below: format!("{flags}/.*") }
            }
            _ => PathExpression::Paths(vec![expression(&itself), tree]),
        }
    }
}

/// The end of the expression for `top/**`.
const BELOW: &str = "/.*$";

#[expect(clippy::expect_used, reason = "`GlobText::parse` has compiled these very texts")]
fn expression(glob: &str) -> String {
    let glob = GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build();
    glob.expect("a glob that was checked compiles").regex().to_owned()
}

/// Returns an expression for exactly these bytes.
fn literal(path: &Path) -> String {
    let bytes: String = path.as_os_str().as_bytes().iter().map(|byte| format!("\\x{byte:02X}")).collect();
    format!("(?-u:{bytes})")
}
