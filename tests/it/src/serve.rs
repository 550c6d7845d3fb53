//! A client of `portcullis serve` that sends exactly what a test chooses.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::outputs::Outputs;
use crate::print::kill_group;
use crate::{Deadline, Scene, World};

/// The protocol version of this client.
const PROTOCOL: u32 = 1;

// The shell moves its standard error, which is a pipe to this process, to descriptor 3: the channel of raw output.
const WITH_CHANNEL: &str = "exec 3>&2 2>\"$1\"; shift; exec \"$@\"";

/// Whether the client can show questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interface {
    /// Questions are shown, and a test must answer.
    Present,
    /// Questions cannot be shown.
    Absent,
}

/// A running host; it is killed when this is dropped.
#[derive(Debug)]
pub struct Serve {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    outputs: Outputs,
    set_aside: Vec<Value>,
    errors: PathBuf,
    project: PathBuf,
    agent_folder: PathBuf,
    next_id: u64,
    ended: bool,
}

impl Serve {
    /// Starts the host in the scene's project, as the scene's user, with additional arguments and environment
    /// variables.
    ///
    /// # Errors
    ///
    /// If it is missing or cannot be started.
    pub fn start(scene: &Scene, arguments: &[&str], variables: &[(&str, &str)]) -> Result<Self> {
        Self::start_in(scene, scene.program("/bin/sh".as_ref()), arguments, variables)
    }

    /// Starts the host through a program that executes its last arguments.
    ///
    /// # Errors
    ///
    /// If it is missing or cannot be started.
    pub fn start_through(scene: &Scene, program: &str, words: &[&str]) -> Result<Self> {
        let mut command = scene.user().command(program.as_ref());
        command.args(words).arg("/bin/sh");
        Self::start_in(scene, command, &[], &[])
    }

    /// Starts the host in a world, with this `network` in its settings, and sends `hello`.
    ///
    /// # Errors
    ///
    /// If it cannot be started, or refuses `hello`.
    pub fn inside(scene: &Scene, world: &World<'_>, network: &str, interface: Interface) -> Result<Self> {
        world.settings_of_the_user(network)?;
        let mut serve = Self::start_in(scene, world.command("/bin/sh".as_ref())?, &[], &[])?;
        let hello = serve.hello(interface);
        serve.succeed("hello", &hello)?;
        Ok(serve)
    }

    /// Starts the host in a world, under the settings of the user and with variables, and sends `hello`.
    ///
    /// # Errors
    ///
    /// If it cannot be started, or refuses `hello`.
    pub fn inside_with(
        scene: &Scene,
        world: &World<'_>,
        variables: &[(&str, &str)],
        interface: Interface,
    ) -> Result<Self> {
        let mut serve = Self::start_in(scene, world.command("/bin/sh".as_ref())?, &[], variables)?;
        let hello = serve.hello(interface);
        serve.succeed("hello", &hello)?;
        Ok(serve)
    }

    fn start_in(
        scene: &Scene,
        mut command: std::process::Command,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Self> {
        use std::os::unix::process::CommandExt as _;
        let errors = scene.at("serve-stderr.txt");
        scene.write(&errors, "")?;
        command.args(["-c", WITH_CHANNEL, "sh"]).arg(&errors);
        command.arg(scene.host()?).arg("serve").args(arguments);
        scene.enter(&mut command);
        command.envs(variables.iter().copied()).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        let input = child.stdin.take();
        let messages = lines_of(child.stdout.take().context("a piped output")?);
        let outputs = Outputs::of(child.stderr.take().context("a piped channel")?);
        Ok(Self {
            child,
            input,
            messages,
            outputs,
            set_aside: Vec::new(),
            errors,
            project: scene.project(),
            agent_folder: scene.home().join(".pi/agent"),
            next_id: 1,
            ended: false,
        })
    }

    /// Starts the host and sends `hello`.
    ///
    /// # Errors
    ///
    /// If the host refuses it.
    pub fn greeted(scene: &Scene, arguments: &[&str], interface: Interface) -> Result<Self> {
        let mut serve = Self::start(scene, arguments, &[])?;
        let hello = serve.hello(interface);
        serve.succeed("hello", &hello)?;
        Ok(serve)
    }

    /// Returns the parameters of a valid `hello`.
    #[must_use]
    pub fn hello(&self, interface: Interface) -> Value {
        json!({
            "protocol": PROTOCOL,
            "client": { "name": "portcullis-it", "version": "0.1.0" },
            "piVersion": "1.5.2",
            "mode": if interface == Interface::Present { "rpc" } else { "print" },
            "interactive": interface == Interface::Present,
            "cwd": self.project,
            "agentDir": self.agent_folder,
        })
    }

    /// Sends a request and returns its id.
    ///
    /// # Errors
    ///
    /// If the host no longer reads.
    pub fn request(&mut self, method: &str, params: &Value) -> Result<u64> {
        let id = self.next_id;
        self.next_id += 1;
        self.line(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string())?;
        Ok(id)
    }

    /// Sends a request and waits for its reply, which may be an error.
    ///
    /// # Errors
    ///
    /// When there is no reply.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.request(method, params)?;
        self.reply(id)
    }

    /// Sends a request and returns the result of its reply.
    ///
    /// # Errors
    ///
    /// When the reply is an error.
    pub fn succeed(&mut self, method: &str, params: &Value) -> Result<Value> {
        let reply = self.call(method, params)?;
        let result = reply.get("result").cloned();
        result.with_context(|| format!("`{method}` {params} was answered with {reply}; {}", self.errors()))
    }

    /// Sends bytes as one line.
    ///
    /// # Errors
    ///
    /// If the host no longer reads.
    pub fn line(&mut self, line: impl AsRef<[u8]>) -> Result<()> {
        let input = self.input.as_mut().context("the host's input is closed already")?;
        input.write_all(line.as_ref()).and_then(|()| input.write_all(b"\n")).context("writing to the host")
    }

    /// Waits for the reply under `id`.
    ///
    /// # Errors
    ///
    /// When there is none in time, or the host ends.
    pub fn reply(&mut self, id: u64) -> Result<Value> {
        self.wait(&format!("reply {id}"), |message| {
            message.get("method").is_none() && message.get("id").and_then(Value::as_u64) == Some(id)
        })
    }

    /// Waits for the next question.
    ///
    /// # Errors
    ///
    /// When there is none in time, or the host ends.
    pub fn question(&mut self) -> Result<Value> {
        self.wait("question", |message| message.get("method").and_then(Value::as_str) == Some("ask"))
    }

    /// Answers a question with the number of an option, or with `"refuse"`.
    ///
    /// # Errors
    ///
    /// If the host no longer reads.
    pub fn answer(&mut self, question: &Value, choice: &Value) -> Result<()> {
        let id = question.get("id").context("a question has an id")?;
        self.line(json!({ "jsonrpc": "2.0", "id": id, "result": { "choice": choice } }).to_string())
    }

    /// Waits for the first message that `wanted` accepts; others are kept for later waits.
    ///
    /// # Errors
    ///
    /// If none arrives in time, or the host ends before.
    pub fn wait(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        self.wait_until(Deadline::start(), what, wanted)
    }

    /// Waits like [`Self::wait`], until a deadline of the test's own.
    ///
    /// # Errors
    ///
    /// If none arrives in time, or the host ends before.
    pub fn wait_until(
        &mut self,
        deadline: Deadline,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        if let Some(place) = self.set_aside.iter().position(&wanted) {
            return Ok(self.set_aside.remove(place));
        }
        loop {
            let Ok(message) = self.messages.recv_timeout(deadline.left()) else {
                bail!("no {what} from the host; seen: {:?}; {}", self.set_aside, self.errors());
            };
            if wanted(&message) {
                return Ok(message);
            }
            self.set_aside.push(message);
        }
    }

    /// Keeps a message for a later wait.
    pub fn put_back(&mut self, message: Value) {
        self.set_aside.insert(0, message);
    }

    /// Requests a command without waiting; its stream has the number of the request.
    ///
    /// # Errors
    ///
    /// If the host no longer reads.
    pub fn begin(&mut self, script: &str, environment: &Value) -> Result<u64> {
        let stream = self.next_id;
        let params = json!({
            "callId": format!("call-{stream}"), "stream": stream, "script": script,
            "cwd": self.project, "env": environment, "origin": "agent",
        });
        self.request("exec", &params)
    }

    /// Runs a command; returns the host's answer and the output.
    ///
    /// # Errors
    ///
    /// When the host answers with an error.
    pub fn run(&mut self, script: &str) -> Result<(Value, String)> {
        let id = self.begin(script, &json!({ "PATH": "/usr/bin:/bin" }))?;
        self.finish(id)
    }

    /// Waits for the end of a command that [`Self::begin`] started.
    ///
    /// # Errors
    ///
    /// When the host answers with an error.
    pub fn finish(&mut self, id: u64) -> Result<(Value, String)> {
        let reply = self.reply(id)?;
        let result = reply.get("result").cloned();
        let result = result.with_context(|| format!("exec: {reply}; {}", self.errors()))?;
        let denied = result.get("denied").is_some();
        let output = if denied { String::new() } else { self.outputs.wait(u32::try_from(id)?)? };
        Ok((result, output))
    }

    /// Waits for the end of a stream that the test numbered itself, and returns its output.
    ///
    /// # Errors
    ///
    /// If it does not end in time.
    pub fn output_of(&mut self, stream: u32) -> Result<String> {
        self.outputs.wait(stream)
    }

    /// Returns the id of the host's process.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the host's standard error.
    #[must_use]
    pub fn errors(&self) -> String {
        std::fs::read_to_string(&self.errors).unwrap_or_default()
    }

    /// Kills the host, without letting it clean up.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn kill(mut self) -> Result<()> {
        // It was started through `setpriv` and a shell, both of which became the host.
        self.child.kill().context("killing the host")?;
        self.child.wait().context("waiting for the host")?;
        self.ended = true;
        Ok(())
    }

    /// Closes the host's input and waits for its end.
    ///
    /// # Errors
    ///
    /// When it does not end in time.
    pub fn close(mut self) -> Result<ExitStatus> {
        drop(self.input.take());
        let status = Deadline::start().until("the end of the host", || Ok(self.child.try_wait()?))?;
        self.ended = true;
        Ok(status)
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        // After the host has ended, a test may check the processes that it left: they must not be killed here.
        if !self.ended {
            kill_group(&mut self.child);
        }
    }
}

fn lines_of(output: impl Read + Send + 'static) -> Receiver<Value> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let message = serde_json::from_str(&line).unwrap_or_else(|_| json!({ "not JSON": line }));
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    receiver
}
