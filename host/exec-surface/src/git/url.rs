//! Addresses of remote repositories.

/// Protocols that git itself implements, and that run no program chosen by the address.
const SCHEMES: [&str; 7] = ["ssh", "git", "git+ssh", "ssh+git", "http", "https", "file"];

/// Returns true if git would access `url` by ssh, git, http, https or the file system, and not otherwise.
///
/// Remote helpers (`ext::command`, `name://…`), options in place of a host or path (CVE-2017-1000117) and control
/// characters (CVE-2020-5260) are refused.
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
        // The text before `://` is a scheme only if it looks like one; otherwise it is a path or a host.
        Some((scheme, rest)) if helper.starts_with("://") => {
            is_scheme(scheme) && has_plain_host(scheme, rest)
        }
        _ => is_path_or_host(url),
    }
}

/// The path of an address in the file system.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Local<'a> {
    /// This literal path.
    Path(&'a str),
    /// A path that git computes: a home (`~`), or one after an escape (`%2e`) or a host (`file://host/`).
    Derived,
}

/// Returns the path of a harmless address, if it is in the file system.
pub(crate) fn local(url: &str) -> Option<Local<'_>> {
    if let Some(path) = url.strip_prefix("file://") {
        let is_plain = path.starts_with('/') && !path.contains('%');
        return Some(if is_plain { Local::Path(path) } else { Local::Derived });
    }
    if url.starts_with('~') {
        return Some(Local::Derived);
    }
    let first = url.split('/').next().unwrap_or_default();
    (!first.contains([':', '['])).then_some(Local::Path(url))
}

fn is_scheme(scheme: &str) -> bool {
    SCHEMES.contains(&scheme)
}

fn has_plain_host(scheme: &str, rest: &str) -> bool {
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    // For http the name and password go into a header; ssh gets them as arguments.
    let has_plain_user = ["http", "https"].contains(&scheme) || is_plain(user);
    (scheme == "file" || !host.is_empty()) && has_plain_user && is_plain(host)
}

/// Returns true if a host or user name cannot be taken for an option, and contains nothing that a shell interprets: the
/// user's ssh may pass it to one (CVE-2023-51385). Git decodes `%2d` before it passes the host to ssh.
fn is_plain(name: &str) -> bool {
    !name.starts_with('-')
        && name.chars().all(|letter| letter.is_alphanumeric() || "._-+:[]".contains(letter))
}

/// Checks a path, or `host:path` in the form for ssh: git looks for the first colon before the first slash.
fn is_path_or_host(url: &str) -> bool {
    let first = url.split('/').next().unwrap_or_default();
    // An IPv6 address is in brackets and contains colons.
    let bracketed = first.contains('[');
    let Some((host, _)) = first.split_once(if bracketed { "]:" } else { ":" }) else { return !bracketed };
    let path = url.get(host.len()..).unwrap_or_default().trim_start_matches([']', ':']);
    let host = host.replace('[', "");
    let (user, host) = host.rsplit_once('@').unwrap_or(("", &host));
    is_plain(user) && is_plain(host) && !path.starts_with('-')
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
            "https://user:p%40s!s@host.test/a b",
            "ssh://git@b\u{fc}cher.test/a",
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
    fn what_lies_in_the_file_system() {
        for path in ["/srv/a.git", "../a", "./x:y", "./~a", "/p/%2e"] {
            assert_eq!(local(path), Some(Local::Path(path)));
        }
        assert_eq!(local("file:///srv/a"), Some(Local::Path("/srv/a")));
        for url in ["~/a", "~user/a", "~", "file://localhost/srv/a", "file:///p/%2e%2e/a", "file://~/a"] {
            assert_eq!(local(url), Some(Local::Derived), "{url}");
        }
        for url in ["host.test:a", "https://host.test/a", "[::1]:a"] {
            assert_eq!(local(url), None, "{url}");
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
            "ssh://$(evil)/x",
            "ssh://`evil`@host/x",
            "host;evil:x",
            "a|b@host:x",
            "[::1]$(x):y",
            "https://$(evil)/x",
            "https://host/x\ny",
            "a\u{7f}",
            "fd::3",
        ] {
            assert!(!is_harmless(url), "{url}");
        }
    }
}
