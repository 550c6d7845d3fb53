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

/// The path that a harmless address leads to, where it is one in the file system.
pub(crate) fn local(url: &str) -> Option<&str> {
    if let Some(path) = url.strip_prefix("file://") {
        // What stands before the path would be a host, which git leaves out.
        return Some(path.find('/').and_then(|slash| path.get(slash..)).unwrap_or(path));
    }
    let first = url.split('/').next().unwrap_or_default();
    (!first.contains([':', '['])).then_some(url)
}

fn is_scheme(scheme: &str) -> bool {
    SCHEMES.contains(&scheme)
}

fn has_plain_host(scheme: &str, rest: &str) -> bool {
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    // Over http the name and password go into a header; ssh is given them as words.
    let has_plain_user = ["http", "https"].contains(&scheme) || is_plain(user);
    (scheme == "file" || !host.is_empty()) && has_plain_user && is_plain(host)
}

/// Whether a host or a user of one cannot be taken for an option, and holds nothing that a shell would act on: the
/// user's ssh may hand it to one (CVE-2023-51385). Git decodes `%2d` before it hands the host to ssh.
fn is_plain(name: &str) -> bool {
    !name.starts_with('-')
        && name.chars().all(|letter| letter.is_alphanumeric() || "._-+:[]".contains(letter))
}

/// A path, or `host:path` as ssh takes it: git looks for the first colon before the first slash.
fn is_path_or_host(url: &str) -> bool {
    let first = url.split('/').next().unwrap_or_default();
    // An address of IPv6 stands in brackets and has colons of its own.
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
        for (url, path) in [
            ("/srv/a.git", Some("/srv/a.git")),
            ("../a", Some("../a")),
            ("./x:y", Some("./x:y")),
            ("file:///srv/a", Some("/srv/a")),
            ("file://localhost/srv/a", Some("/srv/a")),
            ("host.test:a", None),
            ("https://host.test/a", None),
            ("[::1]:a", None),
        ] {
            assert_eq!(local(url), path, "{url}");
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
