//! The temporary file that the host's tools write before it replaces another file.
//!
//! It is beside its target, in a directory that commands may write. Its content has been judged already, so no
//! command may create that name: a file put there would be installed in place of the target.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::change::{Change, Class};
use crate::rules::{Rule, Treatment};

/// The rule on those names. It is not among [`crate::RULES`], because it cannot be disabled.
static TEMPORARY_FILES: Rule = Rule {
    id: "host.portcullis",
    reason: "Portcullis writes a new file under this name before it replaces the old one",
    anywhere: Treatment::Denied,
};

const BEGINNING: &[u8] = b".portcullis-";
const END: &[u8] = b".tmp";

/// Classifies a change of such a name; `None` for any other name. Removing one, or moving it away, is harmless: the
/// host then does not find it.
pub(crate) fn class(path: &Path, change: Change) -> Option<Class> {
    let takes = change.is_new_name() || change == Change::Link;
    (takes && is_temporary(path.file_name()?)).then_some(Class::Denied(&TEMPORARY_FILES))
}

/// Returns true for names that the tools create: `.portcullis-<hexadecimal digits>.tmp`.
fn is_temporary(name: &OsStr) -> bool {
    let name = name.as_bytes().to_ascii_lowercase();
    let digits = name.strip_prefix(BEGINNING).and_then(|rest| rest.strip_suffix(END));
    digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_gets_the_name() {
        let name = Path::new("/p/.git/.portcullis-0123456789abcdef.tmp");
        let denied = |path: &Path, change| matches!(class(path, change), Some(Class::Denied(_)));
        for change in [
            Change::MakeDirectory,
            Change::Write,
            Change::Install,
            Change::Symlink,
            Change::MoveTree,
            Change::Special,
            Change::Link,
        ] {
            assert!(denied(name, change), "{change:?}");
        }
        for change in [Change::Remove, Change::MoveAway, Change::Metadata] {
            assert_eq!(class(name, change), None, "{change:?}");
        }
        // A file system may ignore case.
        assert!(denied(Path::new("/p/.PORTCULLIS-0123456789ABCDEF.Tmp"), Change::Install));
        for other in ["/p/.portcullis-notes.tmp", "/p/.portcullis-12.tmp.x", "/p/portcullis-12.tmp", "/"] {
            assert_eq!(class(Path::new(other), Change::Install), None, "{other}");
        }
    }
}
