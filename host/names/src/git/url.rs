//! Where a remote repository may lie.

/// Protocols that git itself speaks, and that run no program chosen by the address.
const SCHEMES: [&str; 7] = ["ssh", "git", "git+ssh", "ssh+git", "http", "https", "file"];

/// Whether git would reach `url` by ssh, git, http, https or in the file system, and by nothing else.
///
/// A remote helper (`ext::command`, `name://…`), an option in the place of a host or path (CVE-2017-1000117)
/// and control characters (CVE-2020-5260) are refused.
pub(crate) fn is_harmless(url: &str) -> bool {
    if url.starts_with('-') || url.chars().any(char::is_control) {
        return false;
    }
    let helper =
        url.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
    if helper.starts_with("::") {
        return false;
    }
    match url.split_once("://") {
        // What stands before `://` is a scheme only if it looks like one; else it is a path or a host.
        Some((scheme, rest)) if helper.starts_with("://") => {
            is_scheme(scheme) && has_plain_host(scheme, rest)
        }
        _ => is_path_or_host(url),
    }
}

fn is_scheme(scheme: &str) -> bool {
    SCHEMES.contains(&scheme)
}

/// Git decodes `%2d` before it hands the host to ssh.
fn has_plain_host(scheme: &str, rest: &str) -> bool {
    let authority = rest.split('/').next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let is_plain = |text: &str| !text.starts_with(['-', '%']);
    (scheme == "file" || !host.is_empty()) && is_plain(authority) && is_plain(host)
}

/// A path, or `host:path` as ssh takes it: git looks for the first colon before the first slash.
fn is_path_or_host(url: &str) -> bool {
    let is_plain = |text: &str| !text.starts_with('-');
    match url.split_once(':') {
        Some((host, path)) if !host.contains('/') => {
            is_plain(host) && is_plain(host.rsplit('@').next().unwrap_or_default()) && is_plain(path)
        }
        Some(_) | None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_reaches_by_itself() {
        for url in [
            "",
            "https://github.com/a/b.git",
            "http://localhost:8080/a",
            "https://user:p%40ss@host.test/a b",
            "ssh://git@host.test:22/a.git",
            "git+ssh://host.test/a",
            "ssh://[::1]/a",
            "git://host.test/a",
            "git@host.test:a/b.git",
            "host.test:a",
            "[::1]:a",
            "user@[::1]:a",
            "/srv/a.git",
            "../a",
            "./x:y",
            "dir/x://y",
            "file:///srv/a",
            "a",
        ] {
            assert!(is_harmless(url), "{url}");
        }
    }

    #[test]
    fn what_runs_a_program_or_passes_an_option() {
        for url in [
            "ext::sh -c touch% /tmp/x",
            "::x",
            "foo::bar",
            "ftp://host/x",
            "rsync://host/x",
            "HTTPS://host/x",
            "evil://x",
            "a+b-c.d://x",
            "-x",
            "--upload-pack=evil",
            "-oProxyCommand=evil:x",
            "user@-oProxyCommand=evil:x",
            "host:-x",
            "ssh://-oProxyCommand=evil/x",
            "ssh://%2doProxyCommand=evil/x",
            "ssh://user@-x/y",
            "ssh://user@%2dx/y",
            "ssh:///x",
            "https://host/x\ny",
            "a\u{7f}",
            "fd::3",
        ] {
            assert!(!is_harmless(url), "{url}");
        }
    }
}
