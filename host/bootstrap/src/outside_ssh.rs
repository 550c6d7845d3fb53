//! Starts the user's own `ssh` for git inside.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use portcullis_session::SshCommand;
use portcullis_sys::terminal_free::without_terminal;

/// Options that override the user's configuration: git needs no terminal and no forwarding, nobody can be asked,
/// a server that does not answer must not hold the command for ever, commands see no paths and names of keys, and no
/// process stays behind for later connections.
const OPTIONS: &[&str] = &[
    "BatchMode=yes",
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "ControlMaster=no",
    "LogLevel=INFO",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "RequestTTY=no",
    "Tunnel=no",
    "EscapeChar=none",
    "ConnectTimeout=20",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=4",
    "SendEnv=GIT_PROTOCOL",
];

/// Starts `ssh`. The command comes from the gate, which has written it anew. `path` is the PATH for the programs that
/// the user's configuration names.
pub(crate) fn start(program: &Path, path: &OsStr, wanted: &SshCommand) -> io::Result<Child> {
    let mut command = Command::new(program);
    // The `ssh` to a jump host takes none of the options, and would ask at the user's terminal.
    without_terminal(&mut command);
    command.env("PATH", path).env("SSH_ASKPASS_REQUIRE", "never");
    command.arg("-T");
    for option in OPTIONS {
        command.args(["-o", option]);
    }
    if let Some(port) = wanted.port {
        command.args(["-p", &port.to_string()]);
    }
    if let Some(user) = &wanted.user {
        command.args(["-l", user]);
    }
    command.args(["--", &wanted.host, &wanted.command]);
    match wanted.protocol {
        Some(protocol) => command.env("GIT_PROTOCOL", protocol),
        None => command.env_remove("GIT_PROTOCOL"),
    };
    command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_one_argument_behind_the_host() {
        let wanted = SshCommand {
            host: "forge.test".to_owned(),
            port: Some(2222),
            user: Some("git".to_owned()),
            command: "git-upload-pack 'a b'".to_owned(),
            protocol: Some("version=2"),
        };
        let started =
            start(Path::new("/bin/echo"), OsStr::new("/bin"), &wanted).unwrap().wait_with_output().unwrap();
        let said = String::from_utf8(started.stdout).unwrap();
        assert!(said.ends_with("-p 2222 -l git -- forge.test git-upload-pack 'a b'\n"), "{said}");
        assert!(said.contains("-o ForwardAgent=no") && said.contains("-o BatchMode=yes"), "{said}");
    }
}
