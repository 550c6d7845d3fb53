//! The arguments that git gives to `ssh`.

/// Options of ssh(1) with a value.
const WITH_VALUE: &str = "BbcDEeFIiJLlmOopPQRSWw";
/// The port of ssh.
const SSH_PORT: u16 = 22;

/// What the arguments ask for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// The host as it was written.
    pub(crate) host: String,
    /// The port.
    pub(crate) port: u16,
    /// The user name; empty for none.
    pub(crate) user: String,
    /// The command for the server.
    pub(crate) command: String,
}

impl Arguments {
    /// Parses the arguments. Returns `None` for those that name no host and command.
    pub(crate) fn parse(words: &[String]) -> Option<Self> {
        let (mut user, mut port, mut rest) = (String::new(), SSH_PORT, words.iter());
        let destination = loop {
            let word = rest.next()?;
            let Some(option) = word.strip_prefix('-') else { break word };
            if word == "--" {
                break rest.next()?;
            }
            // Flags can stand before an option in one word: `-Tp 22`.
            let Some(at) = option.find(|letter| WITH_VALUE.contains(letter)) else { continue };
            let (letter, value) = option.split_at_checked(at)?.1.split_at_checked(1)?;
            let value = if value.is_empty() { rest.next()?.as_str() } else { value };
            match letter {
                "p" => port = value.parse().ok()?,
                "l" => value.clone_into(&mut user),
                _ => {}
            }
        };
        let (named, host) = destination.rsplit_once('@').unwrap_or(("", destination));
        if !named.is_empty() {
            named.clone_into(&mut user);
        }
        let command: Vec<&str> = rest.map(String::as_str).collect();
        let is_whole = !host.is_empty() && !command.is_empty();
        is_whole.then(|| Self { host: host.to_owned(), port, user, command: command.join(" ") })
    }

    /// Returns true if the host is declared.
    pub(crate) fn is_for_one_of(&self, declared: &str) -> bool {
        let own = format!("{}:{}", self.host, self.port);
        declared.split(' ').any(|known| known.eq_ignore_ascii_case(&own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Option<Arguments> {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        Arguments::parse(&words)
    }

    #[test]
    fn what_git_gives_is_read() {
        for words in [
            "git@forge.test git-upload-pack 'a'",
            "-o SendEnv=GIT_PROTOCOL git@forge.test git-upload-pack 'a'",
            "-4 -l git forge.test git-upload-pack 'a'",
            "-o ProxyCommand=x -Tlgit -- forge.test git-upload-pack 'a'",
        ] {
            let parsed = parse(words).unwrap();
            let wanted = ("git", "forge.test", 22, "git-upload-pack 'a'");
            assert_eq!((&*parsed.user, &*parsed.host, parsed.port, &*parsed.command), wanted, "{words}");
        }
        let parsed = parse("-p 2222 forge.test git-receive-pack 'a'").unwrap();
        assert_eq!((parsed.port, parsed.user.as_str()), (2222, ""));
        assert!(parsed.is_for_one_of("a:22 FORGE.test:2222") && !parsed.is_for_one_of("forge.test:22"));
    }

    #[test]
    fn other_uses_are_not_for_the_gate() {
        for words in ["", "-V", "forge.test", "-G forge.test", "-p x forge.test a", "-p", "--"] {
            assert_eq!(parse(words), None, "{words}");
        }
    }
}
