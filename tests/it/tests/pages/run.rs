//! Runs the commands of a page on a terminal, in the home of a user who is called ann.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};
use std::sync::mpsc::channel;
use std::thread;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Deadline, Launch, PiVersion, Scene, User, World, guest, portcullis};
use rustix::process::{Pid, Signal, kill_process_group};

use super::parse::{Section, Step};

/// Puts the scene's home at `/home/ann`, beside the homes that are there.
const MOUNTS: &str = "set -e; scene=$1; shift; mkdir \"$scene/homes\"; mount --rbind /home \"$scene/homes\"; \
    mount -t tmpfs none /home; \
    for home in \"$scene\"/homes/*; do [ -d \"$home\" ] || continue; mkdir \"/home/${home##*/}\"; \
    mount --rbind \"$home\" \"/home/${home##*/}\"; done; \
    mkdir -p /home/ann; mount --bind \"$scene/home\" /home/ann; exec \"$@\"";

/// Runs bash on a terminal of 80 columns.
const ON_A_TERMINAL: &str = "stty cols 80 rows 40 -echo; exec bash --norc \"$PAGE\"";

/// The id that pages show for every one.
const ID: &str = "3f2a51c0";

/// Puts the newest ids in place of those of a page, which are the same everywhere; `another_terminal` runs a command in
/// the background, with a terminal of its own.
const PRELUDE: &str = r#"unset PI_CODING_AGENT_DIR
portcullis() {
  case "$1 $2" in
    "grants revoke") set -- grants revoke "$(command portcullis grants list | grep -o '^[0-9a-f]*' | head -1)" ;;
    "asks answer") set -- asks answer "$(command portcullis asks list | grep -o '^[0-9a-f]*:[0-9]*' | head -1)" \
      "$(command portcullis asks list | grep -o "${4%%-*}-[0-9]*" | head -1)" ;;
    "ports open" | "ports close")
      set -- ports "$2" "$(command portcullis ports list | grep -o "[0-9a-f]*:${3#*:}" | head -1)" ;;
  esac
  command portcullis "$@"
}
another_terminal() {
  mkfifo ~/.keys; exec 9<> ~/.keys
  script -q -c "$1" /dev/null < ~/.keys > /dev/null 9>&- &
}
"#;

/// Starts [`ON_A_TERMINAL`].
const BASH: &str = "exec script --quiet --return --flush --command \"$ON_A_TERMINAL\" /dev/null";

/// Begins and ends the number of a command in the output.
const MARK: char = '\u{1e}';

/// Runs the steps, and returns the output of each command.
pub(crate) fn run(user: User, steps: &[&Section]) -> Result<Vec<Vec<String>>> {
    let scene = Scene::new(user)?;
    std::os::unix::fs::symlink(portcullis(user)?, scene.bin().join("portcullis"))?;
    let page = scene.at("page.sh");
    let commands = steps.iter().flat_map(|section| section.commands()).count();
    scene.write(&page, &script(steps))?;
    let variables = [
        ("HOME", "/home/ann".to_owned()),
        ("PAGE", page.display().to_string()),
        ("DENY_ONE", guest("deny-one", user)?.display().to_string()),
        ("ON_A_TERMINAL", ON_A_TERMINAL.to_owned()),
        ("SHELL", "/bin/sh".to_owned()),
        ("TERM", "dumb".to_owned()),
        ("NO_COLOR", "1".to_owned()),
        ("USER", "ann".to_owned()),
    ];
    let world = World::new(&scene, crate::network::PROGRAM)?
        .through(["/bin/sh", "-c", MOUNTS, "sh"].map(Into::into).into_iter().chain([root(&scene)?]));
    let mut command = match steps.iter().flat_map(|section| &section.steps).find_map(model_of) {
        Some(model) => Launch::plain(&scene, PiVersion::V1_5, &serde_json::from_str(model)?)?
            .inside(&world)
            .through(["/bin/sh", "-c", BASH, "sh"])
            .variables(variables)
            .command()?,
        None => {
            let mut command = world.command("/bin/sh".as_ref())?;
            command.args(["-c", BASH]).envs(variables);
            command
        }
    };
    command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
    command.process_group(0);
    let mut running = Running(command.spawn().context("starting `unshare`")?);
    let child = &mut running.0;
    let (mut keys, mut output) =
        (child.stdin.take().context("a piped input")?, child.stdout.take().context("a piped output")?);
    let (sender, pieces) = channel();
    thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = output.read(&mut piece) {
            if sender.send(piece.get(..length).unwrap_or_default().to_vec()).is_err() {
                return;
            }
        }
    });
    let answers: Vec<&str> = steps
        .iter()
        .flat_map(|section| section.commands())
        .flat_map(|command| command.output.iter().filter_map(|line| line.strip_prefix("> ")))
        .collect();
    let (mut bytes, mut answered) = (Vec::new(), 0);
    let deadline = Deadline::start();
    let end = format!("{MARK}{commands}{MARK}");
    loop {
        let shown = String::from_utf8_lossy(&bytes).replace('\r', "");
        if shown.contains(&end) {
            drop(keys);
            deadline.until("the end of the page", || Ok(child.try_wait()?))?;
            return outputs(&shown);
        }
        if shown.ends_with("\n> ") && shown.matches("\n> ").count() > answered {
            let answer =
                answers.get(answered).with_context(|| format!("a question without an answer: {shown}"))?;
            answered += 1;
            writeln!(keys, "{}", with_number(answer, &shown))?;
            bytes.extend_from_slice(format!("{answer}\n").as_bytes());
            continue;
        }
        let piece = pieces.recv_timeout(deadline.left());
        bytes.extend(piece.with_context(|| format!("it goes on no more:\n{shown}"))?);
    }
}

/// The programs of a page; they are killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            // If they have ended, there is nothing to do.
            let _ = kill_process_group(group, Signal::KILL);
        }
        drop(self.0.wait());
    }
}

fn model_of(step: &Step) -> Option<&str> {
    match step {
        Step::Model(model) => Some(model),
        Step::Before(_) | Step::File { .. } | Step::Command(_) => None,
    }
}

fn root(scene: &Scene) -> Result<std::ffi::OsString> {
    Ok(scene.home().parent().context("a home is in a scene")?.to_owned().into_os_string())
}

/// Returns the answer with the number that the last question shows for it: `o-1234` for `o-9513`.
fn with_number(answer: &str, shown: &str) -> String {
    let Some((key, _)) = answer.split_once('-') else { return answer.to_owned() };
    let begin = format!("[{key}-");
    let number = shown.rsplit_once(&begin).and_then(|(_, rest)| rest.split_once(']'));
    number.map_or_else(|| answer.to_owned(), |(number, _)| format!("{key}-{number}"))
}

/// Returns the shell script that runs all steps, with a mark before each command.
fn script(steps: &[&Section]) -> String {
    let mut text = format!("{PRELUDE}mkdir -p ~/src/shop && cd ~/src/shop\n");
    let mut number = 0;
    for step in steps.iter().flat_map(|section| &section.steps) {
        let part = match step {
            Step::Before(script) => format!("{{\n{script}}} > ~/.before 2>&1 < /dev/null || cat ~/.before\n"),
            Step::File { path, text } => {
                // A tilde is expanded outside of quotes only.
                let path =
                    path.strip_prefix("~/").map_or_else(|| path.clone(), |rest| format!("/home/ann/{rest}"));
                format!(
                    "mkdir -p \"$(dirname '{path}')\"; cat > '{path}' <<'END OF FILE'\n{text}END OF FILE\n"
                )
            }
            Step::Model(_) => continue,
            Step::Command(command) => {
                let mark =
                    format!("status=$?; printf '\\036{number}\\036'; (exit $status)\n{}\n", command.line);
                number += 1;
                mark
            }
        };
        text.push_str(&part);
    }
    // What runs in other terminals writes into the home, which is removed after the page.
    let _infallible = writeln!(text, "printf '\\036{number}\\036'; kill $(jobs -p) 2> /dev/null; wait");
    text
}

/// Returns the output between the marks.
fn outputs(shown: &str) -> Result<Vec<Vec<String>>> {
    let mut parts = shown.split(MARK);
    let first = parts.next().unwrap_or_default();
    ensure!(first.trim().is_empty(), "the preparation failed: {first}");
    let mut all = Vec::new();
    while let (Some(_), Some(text)) = (parts.next(), parts.next()) {
        all.push(text.lines().map(|line| as_on_a_page(line.trim_end())).collect());
    }
    // The last one follows the last command.
    all.pop();
    Ok(all)
}

/// Returns a line with the ids and numbers of [`PRELUDE`] in place of a run's own.
fn as_on_a_page(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(begin) = rest.find(|letter: char| letter.is_ascii_alphanumeric()) {
        let (between, word) = rest.split_at(begin);
        let end = word.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        let is_after_id = text.ends_with(ID) && between == ":";
        text.push_str(between);
        text.push_str(match word {
            _ if word.len() == ID.len() && word.bytes().all(|byte| byte.is_ascii_hexdigit()) => ID,
            _ if is_after_id && word.len() == 5 && word.parse::<u32>().is_ok() => "71234",
            _ if text.ends_with('-') && word.len() == 4 && after.starts_with(']') => "4711",
            _ => word,
        });
        rest = after;
    }
    text + rest
}

/// Returns the text of a page in `docs`.
pub(crate) fn page(name: &str) -> Result<String> {
    let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(&path).with_context(|| format!("reading `{path}`"))
}

/// Replaces a page in `docs`.
pub(crate) fn rewrite(name: &str, text: &str) -> Result<()> {
    let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    fs::write(&path, text).with_context(|| format!("writing `{path}`"))
}
