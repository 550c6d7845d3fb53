//! Shapes of values that limit a key of git's configuration to its own harmless effect.

use super::url;

/// The required form of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `true`, `false` and git's other spellings.
    Bool,
    /// A switch that enables a protection: on, but not off.
    On,
    /// A switch whose other values name programs: off.
    Off,
    /// An integer, with or without a unit.
    Number,
    /// A switch, a number, or one of these words.
    Words(&'static [&'static str]),
    /// One of these words and nothing else.
    OneOf(&'static [&'static str]),
    /// One line of text.
    Text,
    /// The name of a branch, a tag or another reference.
    Reference,
    /// A refspec for fetching or pushing.
    Refspec,
    /// The address of a repository.
    Url,
    /// The name of a remote, or the address of a repository.
    Remote,
    /// Names of remotes.
    Remotes,
    /// A path that stays below its starting directory.
    PathBelow,
    /// Patterns over paths.
    Paths,
    /// A switch for bare repositories: in others it makes a push delete refs of the remote.
    InBare,
    /// Judged by the position of the file, see [`super::place`].
    Worktree,
}

impl Shape {
    /// Returns true if `value` has this shape; `None` means true.
    pub(crate) fn admits(self, value: Option<&[u8]>) -> bool {
        let Some(value) = value else {
            return matches!(self, Self::Bool | Self::On | Self::Words(_));
        };
        let Ok(value) = std::str::from_utf8(value) else { return false };
        match self {
            Self::Bool => is_bool(value),
            Self::On => is_bool(value) && !is_off(value) && !is_zero(value),
            Self::Off => is_off(value),
            Self::Number => is_number(value),
            Self::Words(words) => {
                is_bool(value)
                    || is_number(value)
                    || words.iter().any(|word| value.eq_ignore_ascii_case(word))
            }
            Self::OneOf(words) => words.contains(&value),
            Self::Text => is_plain(value),
            // A dot stands for the branch with the same name.
            Self::Reference => value == "." || is_reference(value),
            Self::Refspec => value.split(':').all(is_refspec_side) && !value.starts_with('-'),
            Self::Url => url::is_harmless(value),
            Self::Remote => value == "." || is_remote_name(value) || url::is_harmless(value),
            Self::Remotes => value.split_ascii_whitespace().all(is_remote_name),
            Self::PathBelow => is_path_below(value),
            Self::Paths => is_plain(value) && !value.starts_with('-'),
            // These depend on more than the value.
            Self::InBare | Self::Worktree => false,
        }
    }
}

/// Returns true if git accepts this as a switch; numbers are accepted too.
fn is_bool(value: &str) -> bool {
    is_off(value) || is_number(value) || ["true", "yes", "on"].iter().any(|on| value.eq_ignore_ascii_case(on))
}

fn is_off(value: &str) -> bool {
    value.is_empty() || ["false", "no", "off", "0"].iter().any(|off| value.eq_ignore_ascii_case(off))
}

/// Returns true for a number that means off, in any spelling: `00`, `-0`, `0k`.
fn is_zero(value: &str) -> bool {
    is_number(value) && !value.contains(|digit| ('1'..='9').contains(&digit))
}

fn is_number(value: &str) -> bool {
    let digits = value.strip_prefix(['-', '+']).unwrap_or(value);
    let digits = digits.strip_suffix(['k', 'm', 'g', 'K', 'M', 'G']).unwrap_or(digits);
    (1..=18).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns true for one line without control characters.
fn is_plain(value: &str) -> bool {
    !value.chars().any(char::is_control)
}

/// Applies the rules of git-check-ref-format(1), and refuses a leading dash, which could be taken for an option.
pub(crate) fn is_reference(value: &str) -> bool {
    !value.is_empty()
        && !value.starts_with('-')
        && !value.contains("..")
        && !value.contains("@{")
        && !value.ends_with('.')
        && is_plain(value)
        && !value.contains([' ', '~', '^', ':', '?', '*', '[', '\\'])
        && value.split('/').all(|part| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock"))
}

fn is_refspec_side(side: &str) -> bool {
    let side = side.strip_prefix(['+', '^']).unwrap_or(side);
    let stars = side.matches('*').count();
    side.is_empty() || side == "@" || stars <= 1 && is_reference(&side.replace('*', "x"))
}

/// Returns true for a name that git itself would give to a remote.
pub(crate) fn is_remote_name(value: &str) -> bool {
    is_reference(value)
}

/// Returns true for a relative path without `..`; `.` is one.
fn is_path_below(value: &str) -> bool {
    !value.is_empty()
        && !value.starts_with(['/', '-', '~'])
        && is_plain(value)
        && value.split('/').all(|part| part != ".." && !part.eq_ignore_ascii_case(".git"))
}

/// Returns true for a submodule name, which is a path below `.git/modules`.
pub(crate) fn is_submodule_name(value: &str) -> bool {
    is_path_below(value) && value.split('/').all(|part| !part.is_empty() && part != ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(shape: Shape, admitted: &[&str], refused: &[&str]) {
        for value in admitted {
            assert!(shape.admits(Some(value.as_bytes())), "{shape:?} refuses {value:?}");
        }
        for value in refused {
            assert!(!shape.admits(Some(value.as_bytes())), "{shape:?} admits {value:?}");
        }
    }

    #[test]
    fn switches_and_numbers() {
        check(Shape::Bool, &["true", "Off", "1", "0", "", "yes", "-1"], &["truee", "!sh", "/bin/sh"]);
        check(Shape::On, &["true", "1", "yes", "010"], &["false", "0", "", "no", "00", "0k", "-0", "+00g"]);
        check(Shape::Off, &["false", "0", ""], &["true", "1", "/bin/sh"]);
        check(Shape::Number, &["10", "1k", "512M", "-1"], &["", "k", "1x", "9999999999999999999"]);
        check(Shape::Words(&["input"]), &["Input", "true", "3"], &["output", "in put"]);
        assert!(Shape::Bool.admits(None) && Shape::On.admits(None) && Shape::Words(&[]).admits(None));
        assert!(!Shape::Off.admits(None) && !Shape::Text.admits(None) && !Shape::Url.admits(None));
    }

    #[test]
    fn references_and_refspecs() {
        let good = ["refs/heads/main", "a/b.c", "v1.0", "ä", "."];
        let bad = ["", "-x", "a..b", "a b", "a:b", "/a", "a/", ".a", "a.lock", "a\nb", "a\\b", "a*"];
        check(Shape::Reference, &good, &bad);
        let good = ["+refs/heads/*:refs/remotes/o/*", "refs/tags/x", ":", "^refs/heads/no", "a:b", "@"];
        check(Shape::Refspec, &good, &["a b", "-x", "a*b*", "x\n[core]"]);
    }

    #[test]
    fn names_and_paths() {
        check(Shape::Remote, &["origin", "team/fork", ".", "git@a.test:b/c.git"], &["-u", "ext::sh", "a\tb"]);
        check(Shape::Remotes, &["a b/c", ""], &["a -x", "a b:c"]);
        check(
            Shape::PathBelow,
            &["sub", "a/b", "./a", "."],
            &["", "../a", "a/../b", "/a", "~/a", "-a", "x/.GIT/hooks"],
        );
        check(Shape::Text, &["Ünï Cöde <x>", ""], &["a\nb", "a\u{1b}[0m"]);
        assert!(is_submodule_name("lib/a.b") && !is_submodule_name("../x") && !is_submodule_name("a//b"));
    }

    #[test]
    fn what_is_not_utf_8_has_no_shape() {
        assert!(!Shape::Text.admits(Some(b"\xff")));
    }
}
