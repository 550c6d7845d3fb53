use portcullis_decision::pattern::RefPattern;

use super::*;

fn host() -> SshHost {
    let request = |text: &str| RequestPattern::parse(text).unwrap();
    SshHost {
        name: "forge".to_owned(),
        host: Endpoint::Domain("forge.test".to_owned()),
        port: 22,
        user: None,
        fetch: vec![request("POST /me/*/git-upload-pack")],
        pushes: vec![PushRule {
            requests: vec![request("POST /me/proj.git/git-receive-pack")],
            refs: vec![RefPattern::parse("refs/heads/*").unwrap()],
            force: false,
            delete: false,
            secrets: false,
            bytes_max: 1000,
        }],
    }
}

fn judge(user: &str, protocol: &str, command: &str) -> Result<GitRequest, ConnectionRefusal> {
    host().judge(format!("{user}\0{protocol}\0{command}\0").as_bytes())
}

#[test]
fn the_commands_of_git_are_written_anew() {
    let accepted = judge("git", "version=2", r"git-upload-pack '/me/it'\''s'\!''").unwrap();
    assert_eq!(accepted.command.command, r"git-upload-pack '/me/it'\''s'\!''");
    assert_eq!((accepted.command.protocol, accepted.command.port), (Some("version=2"), None));
    assert_eq!(accepted.head.url, "ssh://forge.test:22/me/it's!");
    let accepted = judge("", "", "git-receive-pack 'me/proj.git'").unwrap();
    assert!(accepted.push.is_some() && accepted.command.user.is_none());
    assert!(judge("git", "", "git-upload-archive 'me/proj'").unwrap().push.is_none());
}

#[test]
fn everything_else_is_refused() {
    for (user, protocol, command) in [
        ("git", "", "ls"),
        ("git", "", ""),
        ("git", "", "git-shell"),
        ("git", "", "git-upload-pack"),
        ("git", "", "git-upload-pack me/a"),
        ("git", "", "git-upload-pack 'me/a' 'b'"),
        ("git", "", "git-upload-pack 'me/a'; id"),
        ("git", "", "git-upload-pack 'me/a'$(id)"),
        ("git", "", "git-upload-pack 'me/a"),
        ("git", "", "git-upload-pack 'me/a\n'"),
        ("git", "", "git-upload-pack --strict 'me/a'"),
        ("git", "", "git-upload-pack '--timeout=1'"),
        ("git", "", "git-upload-pack '-me/a'"),
        ("git", "", "git-upload-pack '/-me/a'"),
        ("git", "", "git-upload-pack '~me/a'"),
        ("git", "", "git-upload-pack '/~me/a'"),
        ("git", "", "git-upload-pack 'me/a/../b'"),
        ("git", "", "git-upload-pack 'me/../../a'"),
        ("git", "", "git-upload-pack '//me/a'"),
        ("git", "", "git-upload-pack 'me//a'"),
        ("git", "", "git-upload-pack 'me/a/'"),
        ("git", "", "git-upload-pack 'me/%61'"),
        ("git", "", "git-upload-pack 'other/a'"),
        ("git", "", "git-upload-pack ''"),
        ("git", "", "git-receive-pack 'me/other.git'"),
        ("git", "", "git-receive-pack 'me/proj'"),
        ("-oProxyCommand=id", "", "git-upload-pack 'me/a'"),
        ("git;id", "", "git-upload-pack 'me/a'"),
        ("git", "version=3", "git-upload-pack 'me/a'"),
        ("git", "version=2:x", "git-upload-pack 'me/a'"),
    ] {
        assert!(judge(user, protocol, command).is_err(), "{user} {protocol} {command}");
    }
    assert!(host().judge(b"git\0\0git-upload-pack 'me/a'").is_err(), "cut");
    assert!(host().judge(b"git\0\0git-upload-pack 'me/a'\0x\0").is_err(), "more");
    let own = SshHost { user: Some("git".to_owned()), ..host() };
    assert!(own.judge(b"root\0\0git-upload-pack 'me/a'\0").is_err());
    let accepted = own.judge(b"\0\0git-upload-pack 'me/a'\0").unwrap();
    assert_eq!(accepted.command.user.as_deref(), Some("git"));
}
