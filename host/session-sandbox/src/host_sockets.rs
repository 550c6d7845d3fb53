//! Sockets of the host's programs that commands would see. A sandbox hides those that exist when it is built.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use portcullis_decision::RuleSet;
use portcullis_sandbox::bound_sockets_where;

/// The sockets in directories that commands see, each with its device and inode: one that is bound again under its old
/// name is another one, which no mount hides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostSockets(BTreeMap<PathBuf, Option<(u64, u64)>>);

impl HostSockets {
    /// Finds those that exist now.
    pub fn now(rules: &RuleSet) -> Self {
        let is_visible = |directory: &Path| {
            let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
            rules.shows(&directory) && !rules.base().is_own(&directory)
        };
        let found = bound_sockets_where(is_visible, &rules.base().workspace).into_iter().map(|path| {
            let inode = path.symlink_metadata().ok().map(|found| (found.dev(), found.ino()));
            (path, inode)
        });
        Self(found.collect())
    }

    /// Returns true if nothing is in `now` that is not in `self`.
    pub fn has_all_of(&self, now: &Self) -> bool {
        now.0.iter().all(|(path, inode)| inode.is_none() || self.0.get(path) == Some(inode))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use portcullis_decision::Base;

    use super::*;

    #[test]
    fn a_socket_that_is_bound_later_or_again_is_new() {
        let (seen, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let place = |directory: &tempfile::TempDir| directory.path().canonicalize().unwrap();
        let workspace = vec![place(&seen)];
        let base = Base { workspace, temp: "/tmp/x".into(), closed: vec![place(&other)], ..Base::default() };
        let rules = RuleSet::compile(Vec::new(), base, &[]);
        let first = HostSockets::now(&rules);
        let _hidden = UnixListener::bind(place(&other).join("hidden")).unwrap();
        assert!(first.has_all_of(&HostSockets::now(&rules)), "commands do not see it");
        let name = place(&seen).join("s");
        let socket = UnixListener::bind(&name).unwrap();
        let second = HostSockets::now(&rules);
        assert!(!first.has_all_of(&second) && second.has_all_of(&second));
        let unused = UnixListener::bind(place(&seen).join("unused")).unwrap();
        std::fs::remove_file(&name).unwrap();
        let _again = UnixListener::bind(&name).unwrap();
        assert!(!second.has_all_of(&HostSockets::now(&rules)), "another program has the name");
        let third = HostSockets::now(&rules);
        drop((socket, unused));
        std::fs::remove_file(place(&seen).join("unused")).unwrap();
        assert!(third.has_all_of(&HostSockets::now(&rules)), "one has gone");
    }
}
