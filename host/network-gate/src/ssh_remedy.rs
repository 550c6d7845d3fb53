//! Failures of the user's own `ssh`, with what the user can do.

/// The exit status of `ssh` when it fails itself.
pub(crate) const OWN_FAILURE: u8 = 255;

/// Returns a sentence with the remedy if the user's `ssh` failed for a reason that only the user can mend.
#[must_use]
pub fn ssh_remedy(status: u8, said: &[u8], host: &str) -> Option<String> {
    let said = String::from_utf8_lossy(said);
    let has = |words: &str| said.contains(words);
    let remedy = match status {
        OWN_FAILURE if has("Permission denied") => {
            format!("unlock the key outside with `ssh-add`, and try `ssh -T {host}` in a terminal")
        }
        OWN_FAILURE if has("IDENTIFICATION HAS CHANGED") => {
            format!(
                "the key of the server is not the one that you know; find out why, then run `ssh-keygen -R {host}` outside"
            )
        }
        OWN_FAILURE if has("Host key verification failed") => {
            format!("run `ssh -T {host}` once in a terminal outside to check the key of the server")
        }
        OWN_FAILURE if has("timed out") || has("not responding") => {
            format!("the server does not answer; `ssh -T {host}` in a terminal outside shows when it does")
        }
        OWN_FAILURE => format!("`ssh -T {host}` in a terminal outside shows why"),
        _ => return None,
    };
    Some(format!("your own `ssh` could not connect to `{host}`: {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_ssh_have_a_remedy_and_those_of_git_have_none() {
        let remedy = |said: &str| ssh_remedy(OWN_FAILURE, said.as_bytes(), "forge.test").unwrap();
        assert!(remedy("git@forge.test: Permission denied (publickey).").contains("ssh-add"));
        assert!(remedy("Host key verification failed.").contains("check the key of the server"));
        let changed = "REMOTE HOST IDENTIFICATION HAS CHANGED!\nHost key verification failed.";
        assert!(remedy(changed).contains("find out why"));
        assert!(
            remedy("connect to host forge.test port 22: Connection timed out").contains("does not answer")
        );
        assert!(remedy("kex_exchange_identification").contains("shows why"));
        assert_eq!(ssh_remedy(1, b"ERROR: Repository not found.", "forge.test"), None);
    }
}
