//! One run of pi in a scene.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::{Finished, PiVersion, Rpc, Scene, Screen, World, reach, tools};

/// The setup of a run of pi; its methods start it in print mode, RPC mode or a terminal.
#[derive(Debug)]
pub struct Launch<'a> {
    pub(crate) scene: &'a Scene,
    pub(crate) log: PathBuf,
    node: PathBuf,
    script: PathBuf,
    program: Vec<OsString>,
    arguments: Vec<OsString>,
    variables: Vec<(String, String)>,
    world: Option<&'a World<'a>>,
    settings: Option<PathBuf>,
}

impl<'a> Launch<'a> {
    /// Prepares pi as users have it without Portcullis.
    ///
    /// # Errors
    ///
    /// If a tool is missing or the scene cannot be written.
    pub fn plain(scene: &'a Scene, version: PiVersion, script: &Value) -> anyhow::Result<Self> {
        let pi = scene.install_pi(version)?;
        let program = vec![pi.node.clone().into(), pi.cli.into()];
        let written = scene.at("script.json");
        scene.write(&written, &script.to_string())?;
        let log = scene.at("requests.jsonl");
        let (arguments, variables) = (vec!["--no-session".into()], Vec::new());
        let (world, settings) = (None, None);
        Ok(Self {
            scene,
            log,
            node: pi.node,
            script: written,
            program,
            arguments,
            variables,
            world,
            settings,
        })
    }

    /// Prepares pi as `portcullis pi --contain` starts it, with the model among the allowed hosts.
    ///
    /// # Errors
    ///
    /// If a tool or the binary is missing, or the scene cannot be written.
    pub fn contained(scene: &'a Scene, version: PiVersion, script: &Value) -> anyhow::Result<Self> {
        let launch = Self::plain(scene, version, script)?;
        // A user's installed programs are outside the directory from which these tests start `pi`.
        let pi = scene.install_pi(version)?;
        let read = [Path::new("."), Path::new("~/.pi"), &installed(&pi.node), &installed(&pi.cli)];
        let settings = json!({
            "network": { "allowedDomains": ["${MODEL}"], "deniedDomains": [] },
            "filesystem": {
                // pi keeps a cache in its program if it can, which is another one than the `pi` of the scene.
                "denyRead": ["/home", scene.home()], "allowRead": read, "allowWrite": ["."],
                "denyWrite": [installed(&pi.cli)],
            },
        });
        let file = scene.at("sandbox.json");
        scene.write(&file, &settings.to_string())?;
        let host = tools::portcullis(scene.user())?.into_os_string();
        Ok(Self { settings: Some(file), ..launch.through([host, "pi".into(), "--contain".into()]) })
    }

    /// Prepares pi as `portcullis pi` starts it.
    ///
    /// # Errors
    ///
    /// When a tool or the binary is missing, or the scene cannot be written.
    pub fn guarded(scene: &'a Scene, version: PiVersion, script: &Value) -> anyhow::Result<Self> {
        let launch = Self::plain(scene, version, script)?;
        Ok(launch.variables(scene.confiner()).through([scene.host()?.into_os_string(), "pi".into()]))
    }

    /// Prepares pi with the extension from the repository, and without the location of its host.
    ///
    /// # Errors
    ///
    /// If a tool is missing or the scene cannot be written.
    pub fn extended(scene: &'a Scene, version: PiVersion, script: &Value) -> anyhow::Result<Self> {
        let extension = source_folder("../../pi", scene)?.join("src/index.ts");
        Ok(Self::plain(scene, version, script)?.with(["-e".into(), extension.into_os_string()]))
    }

    /// Starts `program` instead of pi; it must start pi itself, which it finds in PATH.
    #[must_use]
    pub fn through(mut self, program: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.program = program.into_iter().map(Into::into).collect();
        self
    }

    /// Runs pi and its model in a world.
    #[must_use]
    pub fn inside(mut self, world: &'a World<'a>) -> Self {
        self.world = Some(world);
        self
    }

    /// Adds words to pi's command line.
    #[must_use]
    pub fn with(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Adds a variable to pi's environment.
    #[must_use]
    pub fn variable(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// Adds variables to pi's environment.
    #[must_use]
    pub fn variables<'n>(mut self, variables: impl IntoIterator<Item = (&'n str, String)>) -> Self {
        self.variables.extend(variables.into_iter().map(|(name, value)| (name.to_owned(), value)));
        self
    }

    /// Runs `pi -p` with one prompt to its end.
    ///
    /// # Errors
    ///
    /// When it cannot be started or does not end in time.
    pub fn print(self, prompt: &str) -> anyhow::Result<Finished> {
        Finished::of(self.with(["-p", prompt]))
    }

    /// Starts pi with a client on its standard streams.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn rpc(self) -> anyhow::Result<Rpc> {
        Rpc::start(self.with(["--mode", "rpc"]))
    }

    /// Starts pi in a terminal of its own.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn screen(self) -> anyhow::Result<Screen> {
        Screen::start(self)
    }

    /// Returns the requests that the model received, in order.
    ///
    /// # Errors
    ///
    /// If the log contains something else.
    pub(crate) fn requests(log: &Path) -> anyhow::Result<Vec<Value>> {
        let text = if log.exists() { fs::read_to_string(log)? } else { String::new() };
        text.lines().map(|line| serde_json::from_str(line).context("reading the model's log")).collect()
    }

    /// Returns the words that start the model and, below it, pi, as the user of the scene.
    pub(crate) fn command_line(&self) -> anyhow::Result<Vec<OsString>> {
        let mut words = match self.world {
            Some(world) => world.command_line(&self.node),
            None => self.scene.user().command_line(&self.node),
        };
        words.push(model(self.scene)?.into());
        let options: [(&str, PathBuf); 4] = [
            ("--scenario", self.script.clone()),
            ("--log", self.log.clone()),
            ("--home", self.scene.home()),
            ("--bin-dir", self.scene.bin()),
        ];
        words.extend(options.into_iter().flat_map(|(name, value)| [name.into(), value.into_os_string()]));
        if let Some(file) = &self.settings {
            words.extend(["--settings".into(), file.clone().into_os_string()]);
        }
        words.extend(self.variables.iter().map(|(name, value)| format!("--env={name}={value}").into()));
        words.push("--".into());
        words.extend(self.program.iter().chain(&self.arguments).cloned());
        Ok(words)
    }

    /// Returns the command that starts the model and, below it, the program, in a process group of its own.
    ///
    /// # Errors
    ///
    /// If a tool is missing.
    pub fn command(&self) -> anyhow::Result<Command> {
        use std::os::unix::process::CommandExt as _;
        let words = self.command_line()?;
        let (program, arguments) = words.split_first().context("a command line begins with a program")?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.scene.project()).process_group(0);
        Ok(command)
    }
}

/// Returns the folder of all programs that were installed together with this one.
fn installed(program: &Path) -> PathBuf {
    let modules = program.ancestors().filter(|folder| folder.ends_with("node_modules")).last();
    modules.unwrap_or(program).to_owned()
}

/// Returns the scripted model, where the scene's user can read it.
fn model(scene: &Scene) -> anyhow::Result<PathBuf> {
    Ok(source_folder("../pi", scene)?.join("model.mjs"))
}

/// Returns a folder of this repository, named from this crate, where the scene's user can read it.
fn source_folder(name: &str, scene: &Scene) -> anyhow::Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let folder = fs::canonicalize(&folder).with_context(|| format!("finding `{}`", folder.display()))?;
    reach::tree(&folder, scene.user())
}
