//! Reads credentials from the sources that the settings name. Nothing of them is logged, printed or kept in a file.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use portcullis_session::{CredentialReader, GitClientRole, Secret, SshCommand};
use portcullis_settings_format::{
    AWS_CREDENTIALS, CredentialForm, CredentialSource, SigningForm, aws_variables,
};
use portcullis_text::escape;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use zeroize::Zeroizing;

use crate::aws_keys;
use crate::git_client::GIT_CLIENT;
use crate::own_programs::{PATIENCE, ended};
use crate::process_env::{ProcessEnv, random_name};
use crate::untrusted_paths::UntrustedPaths;
use crate::{outside_signing, outside_ssh};

/// The most bytes that a source may give.
const ANSWER_MAX: usize = 64 * 1024;
/// How long the output of a program may stay open after its end.
const LEFT_BEHIND: Duration = Duration::from_secs(2);
/// The flag of open(2) for files that could block.
const NO_BLOCKING: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

/// The sources of credentials of a session.
#[derive(Debug)]
pub struct CredentialSources {
    around: ProcessEnv,
    /// No program is started from there.
    reach: UntrustedPaths,
    /// The session's temporary directory, of the host and as commands see it.
    temp: Option<(PathBuf, PathBuf)>,
}

impl CredentialSources {
    /// Makes the sources for an environment. `temp` is the session's temporary directory, of the host and as commands
    /// see it, if there are commands.
    #[must_use]
    pub fn new(around: &ProcessEnv, reach: UntrustedPaths, temp: Option<(PathBuf, PathBuf)>) -> Self {
        Self { around: around.clone(), reach, temp }
    }

    fn variable(&self, name: &str) -> Result<Zeroizing<String>, String> {
        let found = self.around.variables.iter().find(|(known, _)| known == name);
        let missing = || format!("the variable `{}` is not set where Portcullis was started", escape(name));
        found.map(|(_, value)| Zeroizing::new(value.clone())).ok_or_else(missing)
    }

    /// Returns the path of a file that no command can have written.
    fn own_path(&self, path: &str) -> Result<PathBuf, String> {
        let path = match path.strip_prefix("~/") {
            Some(rest) => self.around.home.join(rest),
            None => PathBuf::from(path),
        };
        match self.reach.holds(&path) {
            true => Err(format!("`{}` lies where commands can write", escape(&path.to_string_lossy()))),
            false => Ok(path),
        }
    }

    fn file(&self, path: &str) -> Result<Zeroizing<String>, String> {
        let path = self.own_path(path)?;
        let failed = |error: io::Error| format!("reading `{}`: {error}", escape(&path.to_string_lossy()));
        // A pipe would otherwise block until something writes to it.
        let mut options = OpenOptions::new();
        let file = options.read(true).custom_flags(NO_BLOCKING).open(&path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(format!("`{}` is no file", escape(&path.to_string_lossy())));
        }
        read_all(file).map_err(failed)
    }

    /// Writes a file in the session's temporary directory, and returns its path as commands see it.
    fn shown(&self, name: &str, ending: &str, (content, mode): (&[u8], u32)) -> io::Result<PathBuf> {
        let (host, inside) = self.temp.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        // Commands can write there, so the name must be a new one.
        let name = format!("{name}-{}{ending}", random_name().map_err(io::Error::other)?);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(host.join(&name))?;
        file.write_all(content)?;
        Ok(inside.join(name))
    }

    /// Returns a command that runs a program of the user outside the sandbox.
    fn own_program(&self, name: &str) -> Result<Command, String> {
        let program = self.around.find_program(name.as_ref(), &self.reach).ok_or_else(|| {
            format!("the program `{name}` is not on PATH outside of the places where commands can write")
        })?;
        let mut command = Command::new(program);
        command.env("PATH", self.around.trusted_path(&self.reach));
        Ok(command)
    }

    /// Runs a program outside the sandbox and returns its output.
    fn output(&self, words: &[&str]) -> Result<Zeroizing<String>, String> {
        let Some((name, arguments)) = words.split_first() else {
            return Err("no program is named".to_owned());
        };
        let shown = escape(name);
        let program = match Path::new(name).is_absolute() {
            true => Some(PathBuf::from(name)).filter(|path| !self.reach.holds(path)),
            false => self.around.find_program(name.as_ref(), &self.reach),
        };
        let program = program.ok_or_else(|| {
            format!("the program `{shown}` is not on PATH outside of the places where commands can write")
        })?;
        let mut command = Command::new(program);
        command.args(arguments).env("PATH", self.around.trusted_path(&self.reach));
        command.current_dir("/").stdin(Stdio::null()).stderr(Stdio::null());
        let failed = |error: io::Error| format!("running `{shown}`: {error}");
        let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
        let output = child.stdout.take();
        let (sender, receiver) = std::sync::mpsc::channel();
        // If the receiver has given up, the thread's answer has no use.
        std::thread::spawn(move || drop(sender.send(output.map(read_all))));
        let status = ended(&mut child).map_err(failed)?.ok_or_else(|| {
            format!(
                "`{shown}` did not answer within {} seconds; run it once in a terminal to unlock it",
                PATIENCE.as_secs()
            )
        })?;
        if !status.success() {
            return Err(format!("`{shown}` failed ({status}); run it in a terminal to see why"));
        }
        // A process that it has left behind can keep its output open.
        match receiver.recv_timeout(LEFT_BEHIND) {
            Ok(Some(read)) => read.map_err(failed),
            Ok(None) | Err(RecvTimeoutError::Disconnected) => Err(format!("`{shown}` has no output")),
            Err(RecvTimeoutError::Timeout) => Err(format!(
                "`{shown}` has ended, and left a process behind that keeps its output open; start that process first"
            )),
        }
    }

    /// Reads the text that a source gives.
    fn text(&self, source: &CredentialSource) -> Result<Zeroizing<String>, String> {
        match source {
            CredentialSource::Variable(name) => self.variable(name),
            CredentialSource::File(path) => self.file(path),
            CredentialSource::Command(words) => {
                self.output(&words.iter().map(String::as_str).collect::<Vec<_>>())
            }
            CredentialSource::Pass(entry) => {
                let text = self.output(&["pass", "show", "--", entry])?;
                Ok(Zeroizing::new(text.lines().next().unwrap_or_default().to_owned()))
            }
            CredentialSource::SecretTool(attributes) => {
                let words =
                    ["secret-tool", "lookup"].into_iter().chain(attributes.iter().map(String::as_str));
                self.output(&words.collect::<Vec<_>>())
            }
            CredentialSource::AwsProfile(name) => {
                let file = self.file(AWS_CREDENTIALS)?;
                aws_keys::profile(&file, name)
                    .ok_or_else(|| format!("`{AWS_CREDENTIALS}` has no profile `{}`", escape(name)))
            }
        }
    }

    /// Reads the text with keys of AWS that a source gives.
    fn aws_text(&self, source: &CredentialSource) -> Result<Zeroizing<String>, String> {
        match source {
            CredentialSource::Variable(id) => {
                let mut text = Zeroizing::new(String::new());
                for (name, variable) in aws_keys::NAMES.iter().zip(aws_variables(id)) {
                    let value = match self.variable(&variable) {
                        // Only temporary keys have a token.
                        Err(_missing) if *name == aws_keys::TOKEN => continue,
                        value => value?,
                    };
                    text.push_str(&format!("{name}={}\n", value.trim()));
                }
                Ok(text)
            }
            // All of its lines count.
            CredentialSource::Pass(entry) => self.output(&["pass", "show", "--", entry]),
            CredentialSource::File(_)
            | CredentialSource::Command(_)
            | CredentialSource::SecretTool(_)
            | CredentialSource::AwsProfile(_) => self.text(source),
        }
    }
}

impl CredentialReader for CredentialSources {
    fn read(&self, source: &CredentialSource, form: &CredentialForm) -> Result<Secret, String> {
        without_core_dumps();
        let unfit = |why| format!("what {} gave cannot be used: {why}", words(source));
        match form {
            CredentialForm::Aws { .. } => {
                let text = self.aws_text(source)?;
                aws_keys::parse(&text).map(Secret::from).map_err(unfit)
            }
            CredentialForm::Bearer | CredentialForm::Basic { .. } | CredentialForm::Header(_) => {
                Secret::new(self.text(source)?).map_err(unfit)
            }
        }
    }

    fn publish(&self, certificates: &str) -> io::Result<PathBuf> {
        self.shown("certificates", ".pem", (certificates.as_bytes(), 0o644))
    }

    fn publish_git_client(&self, role: GitClientRole) -> io::Result<PathBuf> {
        // The program knows its role by its name.
        let name = match role {
            GitClientRole::Ssh => "git-ssh",
            GitClientRole::SshKeygen => "git-ssh-keygen",
            GitClientRole::Gpg => "git-gpg",
        };
        self.shown(name, "", (GIT_CLIENT, 0o755))
    }

    fn publish_signer(&self) -> io::Result<(UnixListener, PathBuf)> {
        let (host, inside) = self.temp.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        let name = format!("signer-{}", random_name().map_err(io::Error::other)?);
        let directory = std::fs::File::open(host)?;
        // The address of a socket has room for 107 bytes, and the path of the directory can be longer.
        let short = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
        Ok((UnixListener::bind(short.join(&name))?, inside.join(name)))
    }

    fn signing_key(&self, form: &SigningForm) -> Result<String, String> {
        match form {
            SigningForm::Ssh { public_key } => {
                let text = self.file(public_key)?;
                let line = text.lines().next().unwrap_or_default();
                let is_key = ["ssh-", "ecdsa-", "sk-"].iter().any(|begin| line.starts_with(begin));
                let is_key = is_key && !line.contains(char::is_control);
                is_key
                    .then(|| format!("key::{line}"))
                    .ok_or_else(|| format!("`{public_key}` is no public key"))
            }
            SigningForm::Gpg { key } => Ok(key.clone()),
        }
    }

    fn sign(&self, form: &SigningForm, object: &[u8]) -> Result<Vec<u8>, String> {
        match form {
            SigningForm::Ssh { public_key } => {
                let mut command = self.own_program("ssh-keygen")?;
                outside_signing::with_ssh(&mut command, &self.own_path(public_key)?);
                outside_signing::sign(command, object, "unlock the key outside with `ssh-add`")
            }
            SigningForm::Gpg { key } => {
                let mut command = self.own_program("gpg")?;
                outside_signing::with_gpg(&mut command, key);
                let remedy =
                    format!("unlock the key outside, for example with `echo | gpg -u {key} --clearsign`");
                outside_signing::sign(command, object, &remedy)
            }
        }
    }

    fn start_ssh(&self, command: &SshCommand) -> io::Result<Child> {
        let missing = "it is not on PATH outside of the places where commands can write";
        let program = self.around.find_program("ssh".as_ref(), &self.reach);
        let program = program.ok_or_else(|| io::Error::other(missing))?;
        outside_ssh::start(&program, &self.around.trusted_path(&self.reach), command)
    }
}

/// Keeps credentials out of core dumps, which the kernel may write into the project.
fn without_core_dumps() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Core);
    // Lowering a limit needs no right.
    let _set = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum });
}

/// Names a source.
#[must_use]
pub fn words(source: &CredentialSource) -> String {
    match source {
        CredentialSource::Variable(name) => format!("the variable {name}"),
        CredentialSource::File(path) => format!("the file {path}"),
        CredentialSource::Command(words) => format!("the command {}", words.join(" ")),
        CredentialSource::Pass(entry) => format!("pass: {entry}"),
        CredentialSource::SecretTool(attributes) => format!("secret-tool: {}", attributes.join(" ")),
        CredentialSource::AwsProfile(name) => format!("the profile {name} in {AWS_CREDENTIALS}"),
    }
}

/// Reads a text of limited size, into memory that is overwritten afterwards.
fn read_all(mut from: impl io::Read) -> io::Result<Zeroizing<String>> {
    // Full size from the start: a buffer that grows would leave copies.
    let mut bytes = Zeroizing::new(vec![0; ANSWER_MAX]);
    let mut length = 0;
    while let Some(room) = bytes.get_mut(length..).filter(|room| !room.is_empty()) {
        match from.read(room)? {
            0 => break,
            count => length += count,
        }
    }
    let read = bytes.get(..length).unwrap_or_default();
    let text = std::str::from_utf8(read).map_err(|_| io::Error::other("it is not text"))?;
    Ok(Zeroizing::new(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(home: &Path, variables: &[(&str, &str)]) -> CredentialSources {
        let around = ProcessEnv {
            home: home.to_owned(),
            variables: variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            path: vec!["/usr/bin".into(), "/bin".into()],
            ..ProcessEnv::read().unwrap()
        };
        CredentialSources::new(&around, UntrustedPaths::of_project(&home.join("project"), &[]), None)
    }

    fn command(words: &[&str]) -> CredentialSource {
        CredentialSource::Command(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn each_source_is_read() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("token"), "from-a-file\n").unwrap();
        let sources = sources(home.path(), &[("TOKEN", "from-a-variable")]);
        let read = |source: &CredentialSource| sources.read(source, &CredentialForm::Bearer);
        assert!(read(&CredentialSource::Variable("TOKEN".to_owned())).is_ok());
        assert!(read(&CredentialSource::File("~/token".to_owned())).is_ok());
        assert!(read(&command(&["printf", "from-a-command"])).is_ok());
    }

    #[test]
    fn keys_of_aws_are_read_from_each_source() {
        let home = tempfile::tempdir().unwrap();
        let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
        std::fs::create_dir(home.path().join(".aws")).unwrap();
        let profiles = format!(
            "[default]\naws_access_key_id=AKIADEFAULTEXAMPLE\n\
             [work]\naws_access_key_id = AKIAWORKEXAMPLE00\naws_secret_access_key = {secret}\nregion = r-1\n"
        );
        std::fs::write(home.path().join(".aws/credentials"), profiles).unwrap();
        let json = format!(
            "{{\"Version\":1,\"AccessKeyId\":\"AKIAIOSFODNN7EXAMPLE\",\"SecretAccessKey\":\"{secret}\"}}"
        );
        let variables = [("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE"), ("AWS_SECRET_ACCESS_KEY", secret)];
        let sources = sources(home.path(), &variables);
        let aws = CredentialForm::Aws { services: Vec::new(), regions: Vec::new() };
        let profile = |name: &str| CredentialSource::AwsProfile(name.to_owned());
        let variable = |name: &str| CredentialSource::Variable(name.to_owned());
        for source in [variable("AWS_ACCESS_KEY_ID"), profile("work"), command(&["printf", "%s", &json])] {
            assert!(sources.read(&source, &aws).is_ok(), "{source:?}");
        }
        for (source, wanted) in [
            (variable("OTHER_ACCESS_KEY_ID"), "is not set"),
            (profile("none"), "has no profile `none`"),
            (profile("default"), "has no secret access key"),
            (command(&["printf", "{\"AccessKeyId\": 1}"]), "cannot be used"),
            (command(&["printf", "AKIAIOSFODNN7EXAMPLE"]), "has no id of an access key"),
        ] {
            let error = sources.read(&source, &aws).unwrap_err();
            assert!(error.contains(wanted) && !error.contains(secret), "{error}");
        }
    }

    #[test]
    fn a_program_starts_no_program_that_a_command_wrote() {
        let home = tempfile::tempdir().unwrap();
        for (directory, said) in [("project/bin", "from-the-project"), ("bin", "from-the-user")] {
            let directory = home.path().join(directory);
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join("helper"), format!("#!/bin/sh\necho {said}\n")).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(directory.join("helper"), mode).unwrap();
        }
        let mut sources = sources(home.path(), &[]);
        let paths = ["project/bin", "bin"].map(|path| home.path().join(path));
        sources.around.path.splice(0..0, paths);
        let said = sources.output(&["sh", "-c", "helper"]).unwrap();
        assert_eq!(said.trim(), "from-the-user");
    }

    #[test]
    fn failures_say_why_and_nothing_of_a_credential() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("project")).unwrap();
        std::fs::write(home.path().join("project/token"), "from-the-project").unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, home.path().join("pipe"), rustix::fs::Mode::RUSR).unwrap();
        std::fs::write(home.path().join("two"), "first-secret\nsecond-secret\n").unwrap();
        let sources = sources(home.path(), &[("SHORT", "abc")]);
        for (source, wanted) in [
            (CredentialSource::Variable("NONE".to_owned()), "is not set"),
            (CredentialSource::Variable("SHORT".to_owned()), "too short"),
            (CredentialSource::File("~/none".to_owned()), "reading"),
            (CredentialSource::File("~/two".to_owned()), "several lines"),
            (CredentialSource::File("/dev/null".to_owned()), "is no file"),
            (CredentialSource::File("~/project/token".to_owned()), "where commands can write"),
            (command(&["no-such-program"]), "not on PATH"),
            (command(&["sh", "-c", "echo top-secret; exit 3"]), "failed"),
            (command(&["true"]), "is empty"),
            (command(&["sh", "-c", "sleep 9 & echo a-secret"]), "left a process behind"),
            (CredentialSource::File("~/pipe".to_owned()), "is no file"),
        ] {
            let error = sources.read(&source, &CredentialForm::Bearer).unwrap_err();
            assert!(error.contains(wanted), "{error}");
            assert!(!error.contains("abc") && !error.contains("-secret"), "{error}");
        }
    }
}
