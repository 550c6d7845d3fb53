//! A scene with a sandbox in it.

use std::fs::File;
use std::io::Read as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use portcullis_profile_runtime::self_test::Scene;
use portcullis_profile_runtime::{Host, ProfileError, ProfileSandbox, RunningUnderProfile};
use portcullis_sandbox::{Command, Limits, Terminal};
use portcullis_sandbox_runtime::Exit;

/// The confiners, as their texts: the ordinary user may not read the clone.
pub(crate) const CONFINES: &str = include_str!("../../../../tests/confiners/confine.py");
pub(crate) const CONFINES_NOTHING: &str = include_str!("../../../../tests/confiners/nothing.sh");
pub(crate) const CONFINES_EVERYTHING: &str = include_str!("../../../../tests/confiners/everything.sh");

/// Directories, and a gate that accepts nothing.
pub(crate) struct Ground {
    pub(crate) root: tempfile::TempDir,
    gate: TcpListener,
    host: Host,
}

impl Ground {
    pub(crate) fn new(confiner: &str) -> Self {
        let root = tempfile::tempdir().expect("a directory");
        for name in ["closed", "open"] {
            std::fs::create_dir(root.path().join(name)).expect("a directory");
        }
        let program = root.path().join("confiner");
        std::fs::write(&program, confiner).expect("a confiner");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("executable");
        let host = Host { executable: std::env::current_exe().expect("own path"), confiner: program };
        Self { root, gate: TcpListener::bind("127.0.0.1:0").expect("a port"), host }
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn start(&self, limits: Limits) -> Result<ProfileSandbox, ProfileError> {
        let port = self.gate.local_addr().expect("a port").port();
        let names = [".portcullis-self-test.tmp", ".git/hooks/pre-commit"];
        let scene = Scene::make((&self.at("closed"), &self.at("open")), "1", names, port).expect("a scene");
        let text = format!(
            "(version 1)\n(deny default)\n(allow network-outbound (remote tcp \"localhost:{port}\"))\n"
        );
        ProfileSandbox::start(self.host.clone(), (&text, self.at("closed/profile")), limits, &scene)
    }

    pub(crate) fn sandbox(&self) -> ProfileSandbox {
        self.start(Limits::default()).expect("a sandbox")
    }

    /// Starts a script, whose output goes to the file `output`.
    pub(crate) fn script(
        &self,
        sandbox: &ProfileSandbox,
        script: &str,
        limits: Limits,
    ) -> RunningUnderProfile {
        let null = || File::options().read(true).write(true).open("/dev/null").expect("/dev/null");
        let output = File::create(self.at("output")).expect("a file");
        let errors = output.try_clone().expect("a descriptor");
        let command = Command {
            argv: ["/bin/bash", "-c", script].map(Into::into).to_vec(),
            env: vec![("PATH".into(), "/usr/bin:/bin".into()), ("TMPDIR".into(), self.at("open").into())],
            cwd: self.at("open"),
            limits,
            terminal: Terminal::None,
        };
        sandbox.launch(command, [null().into(), output.into(), errors.into()]).expect("it starts")
    }

    /// Runs a script, and returns its end and output.
    pub(crate) fn run(&self, sandbox: &ProfileSandbox, script: &str, limits: Limits) -> (Exit, String) {
        let exit = self.script(sandbox, script, limits).wait();
        let mut text = String::new();
        File::open(self.at("output")).expect("a file").read_to_string(&mut text).expect("text");
        (exit, text)
    }
}
