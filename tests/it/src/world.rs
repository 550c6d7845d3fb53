//! A scene whose `portcullis` runs in a network with servers; see the program `world` of this crate.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::{Finished, Scene, User, reach, tools};

/// Other machines for the commands of a scene.
#[derive(Debug)]
pub struct World<'a> {
    scene: &'a Scene,
    program: PathBuf,
    directory: PathBuf,
    hold: &'static str,
    policies: String,
    /// A program that executes its last arguments, and its first ones.
    through: Vec<OsString>,
}

impl<'a> World<'a> {
    /// Prepares a world; `program` is this crate's `world`, whose path only a test knows.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn new(scene: &'a Scene, program: &str) -> anyhow::Result<Self> {
        let directory = scene.at("world");
        fs::create_dir(&directory)?;
        scene.user().own(&directory)?;
        Ok(Self {
            scene,
            program: reach::program(Path::new(program), scene.user())?,
            directory,
            hold: "connect",
            policies: String::new(),
            through: Vec::new(),
        })
    }

    /// Makes connections wait elsewhere than inside connect(2): `accept`.
    #[must_use]
    pub const fn holding(mut self, hold: &'static str) -> Self {
        self.hold = hold;
        self
    }

    /// Adds the component at this path to the policies.
    #[must_use]
    pub fn with_policy(mut self, component: &Path) -> Self {
        let component = serde_json::json!({ "use": component });
        self.policies = format!(r#", "policies": [{{ "use": "workspace" }}, {component}]"#);
        self
    }

    /// Creates the world through a program that executes its last arguments, in the namespaces of the world.
    #[must_use]
    pub fn through(mut self, words: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.through = words.into_iter().map(Into::into).collect();
        self
    }

    /// Runs `portcullis run` on a bash script, with these allowed and denied hosts in its settings.
    ///
    /// # Errors
    ///
    /// If it cannot be started or does not end in time.
    pub fn run(&self, network: &str, script: &str) -> anyhow::Result<Finished> {
        self.run_under(&self.settings(network)?, &[], script)
    }

    /// Runs `portcullis run` on a bash script, with a settings file and variables of its own environment.
    ///
    /// # Errors
    ///
    /// If it cannot be started or does not end in time.
    pub fn run_under(
        &self,
        settings: &Path,
        variables: &[(&str, &OsStr)],
        script: &str,
    ) -> anyhow::Result<Finished> {
        let binary = tools::portcullis(self.scene.user())?;
        let mut command = self.command(&binary)?;
        command.envs(variables.iter().copied());
        command.args(["run", "--ask", "deny", "--settings"]).arg(settings).args(["--", "bash", "-c", script]);
        Finished::run(&mut command)
    }

    /// Runs a bash script without the sandbox, as the control.
    ///
    /// # Errors
    ///
    /// If it cannot be started or does not end in time.
    pub fn control(&self, script: &str) -> anyhow::Result<Finished> {
        let mut command = self.command(Path::new("bash"))?;
        command.args(["-c", script]);
        Finished::run(&mut command)
    }

    /// Returns a command that runs `program` in the world.
    ///
    /// # Errors
    ///
    /// Never, as long as the scene exists.
    pub fn command(&self, program: &Path) -> anyhow::Result<Command> {
        let words = self.command_line(program);
        let (unshare, arguments) = words.split_first().context("a command line begins with a program")?;
        let mut command = Command::new(unshare);
        command.args(arguments);
        self.scene.enter(&mut command);
        Ok(command)
    }

    /// Returns the words that run `program` in the world, as the scene's user.
    #[must_use]
    pub fn command_line(&self, program: &Path) -> Vec<OsString> {
        // In a user namespace of its own it may create networks; root always may.
        let own: &[&str] = match rustix::process::geteuid().is_root() && self.scene.user() == User::Caller {
            true => &[],
            false => &["--user", "--map-current-user", "--keep-caps"],
        };
        let mut words = self.scene.user().command_line("unshare".as_ref());
        words.extend(own.iter().chain(&["--net", "--mount", "--"]).map(OsString::from));
        words.extend(self.through.iter().cloned());
        words.extend(
            [self.program.clone(), self.directory.clone(), program.to_owned()].map(PathBuf::into_os_string),
        );
        words
    }

    /// Writes settings with this `network`, and returns their path.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn settings(&self, network: &str) -> anyhow::Result<PathBuf> {
        self.write_settings(self.scene.at("network.json"), network)
    }

    /// Writes them as the user's own settings, which apply if none are named.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn settings_of_the_user(&self, network: &str) -> anyhow::Result<PathBuf> {
        self.write_settings(self.scene.home().join(".pi/agent/sandbox/default.json"), network)
    }

    fn write_settings(&self, path: PathBuf, network: &str) -> anyhow::Result<PathBuf> {
        let files = r#"{ "denyRead": [], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] }"#;
        let (hold, policies) = (self.hold, &self.policies);
        let ask = format!(r#"{{ "hold": "{hold}" }}"#);
        let text = format!(r#"{{ "network": {network}, "filesystem": {files}, "ask": {ask}{policies} }}"#);
        self.scene.write(&path, &text)?;
        Ok(path)
    }

    /// Returns the requests that the servers have received so far.
    ///
    /// # Errors
    ///
    /// If no server was ever started.
    pub fn seen(&self) -> anyhow::Result<String> {
        fs::read_to_string(self.directory.join("seen")).context("reading what the servers have seen")
    }
}
