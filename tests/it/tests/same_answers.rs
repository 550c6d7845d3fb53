//! Commands and tools get the same answer for the same name: free, after a question, or never. This holds for all
//! writable paths, in both layouts, and whichever policy decides.

mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;

use anyhow::{Context as _, Result, anyhow, ensure};
use portcullis_it::{Interface, Scene, Serve, User};
use serde_json::{Value, json};

use table::{LINKS, NEW, Name, POLICIES, STANDING, WRITABLE};

as_each_user!(with_somebody_to_ask, with_nobody_to_ask, in_the_layered_layout,);

const SCRIPT: &str = include_str!("same_answers/write.pl");

/// The variable that has every place tried with every policy.
const LONG_FORM: &str = "PORTCULLIS_ALL_ANSWERS";

/// The number of the option that allows for this command.
const ONCE: u64 = 0;

/// How many sessions there are at once.
const AT_ONCE: usize = 3;

/// What comes of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Answer {
    /// It is written though all questions are refused.
    Free,
    /// It is written when the answer is yes.
    Asked,
    /// It is not written.
    Denied,
}

impl Answer {
    fn of(refused: bool, allowed: bool) -> Self {
        match (refused, allowed) {
            (true, _) => Self::Free,
            (false, true) => Self::Asked,
            (false, false) => Self::Denied,
        }
    }
}

/// Settings of one session.
#[derive(Debug, Clone)]
struct Row {
    writable: &'static [&'static str],
    policies: Vec<Value>,
    is_layered: bool,
    interface: Interface,
}

impl Row {
    fn has_pattern(&self) -> bool {
        self.writable.iter().any(|place| place.contains(['*', '{']))
    }

    fn write(&self, scene: &Scene) -> Result<()> {
        let project = scene.project();
        let places = self.writable.iter().map(|place| {
            place.replace("PROJECT", &project.display().to_string()).replace("HOME", "~/../project")
        });
        let mut filesystem =
            json!({ "allowRead": ["."], "allowWrite": places.collect::<Vec<_>>(), "denyWrite": [] });
        if !self.is_layered {
            filesystem.as_object_mut().context("an object")?.insert("denyRead".to_owned(), json!([]));
        }
        let mut settings =
            json!({ "network": { "allowedDomains": [], "deniedDomains": [] }, "filesystem": filesystem });
        if !self.policies.is_empty() {
            settings
                .as_object_mut()
                .context("an object")?
                .insert("policies".to_owned(), json!(self.policies));
        }
        let agent = scene.home().join(".pi/agent");
        let (first, second) = (agent.join("sandbox/default.json"), agent.join("extensions/sandbox.json"));
        if self.is_layered {
            scene.write(&first, r#"{ "layout": "layered" }"#)?;
            scene.write(&second, &settings.to_string())
        } else {
            scene.write(&first, &settings.to_string())
        }
    }
}

/// Whether a command wrote a name.
#[derive(Debug, Clone, Copy, Default)]
struct Written {
    opened: bool,
    /// Nothing where it had no file to rename.
    renamed: Option<bool>,
}

/// What was answered for one name: to a command that opens it, to one that renames another file to it, and to a tool.
struct Told {
    name: Name,
    opened: Answer,
    /// Nothing where the command had no file to rename.
    renamed: Option<Answer>,
    tool: Answer,
}

impl Told {
    fn is_wrong(&self, row: &Row) -> bool {
        let of_commands = [Some(self.opened), self.renamed].into_iter().flatten();
        // A pattern opens files to tools only: commands get the same answer, or a stricter one.
        let is_other = |answer| if row.has_pattern() { answer < self.tool } else { answer != self.tool };
        let is_free = self.tool == Answer::Free || of_commands.clone().any(|answer| answer == Answer::Free);
        of_commands.into_iter().any(is_other) || self.name.1 && is_free
    }
}

impl std::fmt::Debug for Told {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name: (name, _), opened, renamed, tool } = self;
        write!(formatter, "{name}: opened {opened:?}, renamed {renamed:?}, tool {tool:?}")
    }
}

fn names() -> impl Iterator<Item = (bool, Name)> {
    NEW.iter().map(|name| (false, *name)).chain(STANDING.iter().map(|name| (true, *name)))
}

/// A project in which the directories of all names are there, and the files that stand there.
fn prepared(user: User) -> Result<Scene> {
    let scene = Scene::new(user)?;
    prepare(&scene)?;
    Ok(scene)
}

fn prepare(scene: &Scene) -> Result<()> {
    let project = scene.project();
    scene.write(&scene.at("write.pl"), SCRIPT)?;
    for (link, target) in LINKS {
        scene.write(&project.join(target).join("there.txt"), "")?;
        symlink(target, project.join(link))?;
    }
    for (_, (name, _)) in names() {
        scene.write(&project.join(name).with_file_name("there.txt"), "")?;
    }
    put_back(scene)
}

/// Compares the answers under these policies, in a scene that has their components.
pub(crate) fn are_the_same_with(scene: &Scene, policies: Vec<Value>) -> Result<()> {
    prepare(scene)?;
    let row = Row { writable: &["."], policies, is_layered: false, interface: Interface::Present };
    let answers = compare(scene, &[row])?;
    let kinds: BTreeSet<Answer> = answers.into_iter().collect();
    ensure!(kinds.len() == 3, "not every answer is given: {kinds:?}");
    Ok(())
}

/// Everything as it was before the first attempt.
fn put_back(scene: &Scene) -> Result<()> {
    for (stands, (name, _)) in names() {
        let path = scene.project().join(name);
        if stands {
            scene.write(&path, "old")?;
        } else if path.symlink_metadata().is_ok() {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Waits for the replies to all requests, and gives every question the same answer.
fn replies(host: &mut Serve, ids: &[u64], choice: &Value) -> Result<BTreeMap<u64, Value>> {
    let mut replies = BTreeMap::new();
    while replies.len() < ids.len() {
        let id_of = |message: &Value| message.get("id").and_then(Value::as_u64);
        let is_ask = |message: &Value| message.get("method").is_some_and(|method| method == "ask");
        let is_reply = |message: &Value| {
            message.get("method").is_none() && id_of(message).is_some_and(|id| ids.contains(&id))
        };
        let message = host.wait("reply or question", |message| is_ask(message) || is_reply(message))?;
        if is_ask(&message) {
            host.answer(&message, choice)?;
        } else {
            replies.insert(id_of(&message).context("an id")?, message);
        }
    }
    Ok(replies)
}

/// Which names a command writes, by opening and by renaming, where every question is answered with `choice`.
fn command(
    scene: &Scene,
    host: &mut Serve,
    choice: &Value,
    names: &[(bool, Name)],
) -> Result<BTreeMap<&'static str, Written>> {
    let words: Vec<String> = names
        .iter()
        .map(|(stands, (name, _))| format!("{}{name}", if *stands { 's' } else { 'n' }))
        .collect();
    let script = format!("perl {} {}", scene.at("write.pl").display(), words.join(" "));
    let id = host.begin(&script, &json!({ "PATH": "/usr/bin:/bin" }))?;
    let reply = replies(host, &[id], choice)?.remove(&id).context("a reply")?;
    host.put_back(reply);
    let (ended, said) = host.finish(id)?;
    put_back(scene)?;
    if ended.get("denied").is_some() {
        return Ok(names.iter().map(|(_, (name, _))| (*name, Written::default())).collect());
    }
    ensure!(said.ends_with("tried\n"), "{ended} {said}");
    let written = |line: &str, name: &str| -> Option<Written> {
        let (results, of) = line.rsplit_once(' ')?;
        let (opened, renamed) = results.split_once(' ')?;
        let is = |text: &str| (text != "-").then_some(text == "1");
        (of == name).then_some(Written { opened: opened == "1", renamed: is(renamed) })
    };
    let mut lines = said.lines();
    let found = |(_, (name, _)): &(bool, Name)| {
        Some((*name, lines.next().and_then(|line| written(line, name)).with_context(|| said.clone())))
    };
    names.iter().filter_map(found).map(|(name, written)| Ok((name, written?))).collect()
}

/// The same with a yes to every question, by several commands: one of them asks so often only.
fn allowed_command(
    scene: &Scene,
    host: &mut Serve,
    refused: &BTreeMap<&'static str, Written>,
) -> Result<BTreeMap<&'static str, Written>> {
    const NAMES_AT_ONCE: usize = 6;
    let is_free =
        |name: &str| refused.get(name).is_some_and(|written| written.opened && written.renamed == Some(true));
    let left: Vec<(bool, Name)> = names().filter(|(_, (name, _))| !is_free(name)).collect();
    let mut written = refused.clone();
    for names in left.chunks(NAMES_AT_ONCE) {
        written.extend(command(scene, host, &json!(ONCE), names)?);
    }
    Ok(written)
}

/// Which names the tools write, in the same order: `write` what is new, `edit` what is there.
fn tools(scene: &Scene, host: &mut Serve, choice: &Value) -> Result<Vec<bool>> {
    let mut ids = Vec::new();
    for (stands, (name, _)) in names() {
        let path = scene.project().join(name);
        let intent = json!({ "kind": "edit", "edits": [{ "oldText": "old", "newText": "evil" }] });
        ids.push(if stands {
            host.request("file/open", &json!({ "callId": name, "path": path, "intent": intent }))?
        } else {
            host.request("file/write", &json!({ "callId": name, "path": path, "content": "evil" }))?
        });
    }
    let opened = replies(host, &ids, choice)?;
    let handles = ids.iter().filter_map(|id| opened.get(id)?.pointer("/result/handle"));
    let mut written = Vec::new();
    for handle in handles {
        written.push(host.request("file/writeHandle", &json!({ "handle": handle, "content": "evil" }))?);
    }
    replies(host, &written, choice)?;
    let is_evil =
        |name: &str| fs::read_to_string(scene.project().join(name)).is_ok_and(|text| text == "evil");
    let evil = names().map(|(_, (name, _))| is_evil(name)).collect();
    put_back(scene)?;
    Ok(evil)
}

/// One session: what is answered for all names.
fn told(scene: &Scene, row: &Row) -> Result<Vec<Told>> {
    row.write(scene)?;
    let mut host = Serve::greeted(scene, &[], row.interface)?;
    let (no, yes) = (json!("refuse"), json!(ONCE));
    let all: Vec<(bool, Name)> = names().collect();
    let refused = (command(scene, &mut host, &no, &all)?, tools(scene, &mut host, &no)?);
    let allowed = if row.interface == Interface::Present {
        (allowed_command(scene, &mut host, &refused.0)?, tools(scene, &mut host, &yes)?)
    } else {
        refused.clone()
    };
    host.close()?;
    all.iter()
        .zip(refused.1.iter().zip(&allowed.1))
        .map(|((_, name), (no, yes))| {
            let tool = Answer::of(*no, *yes);
            let [no, yes] =
                [&refused.0, &allowed.0].map(|by_name| by_name.get(name.0).copied().context(name.0));
            let (no, yes) = (no?, yes?);
            let is_renamed = |written: Written| written.renamed == Some(true);
            // Without a question there may be no file to rename.
            let is_tried = no.renamed.is_some() || !no.opened && is_renamed(yes);
            let renamed = is_tried.then(|| Answer::of(is_renamed(no), is_renamed(yes)));
            Ok(Told { name: *name, opened: Answer::of(no.opened, yes.opened), renamed, tool })
        })
        .collect()
}

/// Compares what is answered under these settings, in `scene`.
fn compare(scene: &Scene, rows: &[Row]) -> Result<Vec<Answer>> {
    let (mut answers, mut wrong) = (Vec::new(), Vec::new());
    for row in rows {
        let told = told(scene, row).with_context(|| format!("{row:?}"))?;
        answers.extend(told.iter().map(|told| told.tool));
        let mistakes: Vec<Told> = told.into_iter().filter(|told| told.is_wrong(row)).collect();
        if !mistakes.is_empty() {
            wrong.push((row, mistakes));
        }
    }
    ensure!(wrong.is_empty(), "{wrong:#?}");
    Ok(answers)
}

/// The same for many rows, each part of them in a scene of its own.
fn compare_all(user: User, rows: &[Row]) -> Result<()> {
    let part = |rows: &[Row]| compare(&prepared(user)?, rows);
    let answers = std::thread::scope(|scope| {
        let parts = rows.chunks(rows.len().div_ceil(AT_ONCE));
        let threads: Vec<_> = parts.map(|rows| scope.spawn(move || part(rows))).collect();
        let joined =
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow!("a panic"))));
        joined.collect::<Result<Vec<_>>>()
    })?;
    let answers: Vec<Answer> = answers.into_iter().flatten().collect();
    // Each answer is given, or nothing is shown by it.
    let count = |wanted| answers.iter().filter(|answer| **answer == wanted).count();
    let counts = [Answer::Free, Answer::Asked, Answer::Denied].map(count);
    let is_asked = rows.iter().any(|row| row.interface == Interface::Present);
    ensure!(counts[0] > 20 && counts[2] > 20 && (counts[1] > 20 || !is_asked), "{counts:?}");
    Ok(())
}

/// Rows of every place with every policy, of which all are tried with the long form, and else those `chosen` by the
/// numbers of the place and of the policies.
fn rows(interface: Interface, chosen: impl Fn(usize, usize) -> bool) -> Vec<Row> {
    let is_long = std::env::var_os(LONG_FORM).is_some();
    let mut rows = Vec::new();
    for (place, writable) in WRITABLE.iter().enumerate() {
        for (number, names) in POLICIES.iter().enumerate() {
            if is_long || chosen(place, number) {
                let policies = names.iter().map(|name| json!({ "use": name })).collect();
                rows.push(Row { writable, policies, is_layered: false, interface });
            }
        }
    }
    rows
}

fn with_somebody_to_ask(user: User) -> Result<()> {
    compare_all(user, &rows(Interface::Present, |place, number| number == 0 || (place + number) % 7 == 0))
}

fn with_nobody_to_ask(user: User) -> Result<()> {
    compare_all(user, &rows(Interface::Absent, |place, number| (place + number) % 4 == 0))
}

fn in_the_layered_layout(user: User) -> Result<()> {
    let rows = rows(Interface::Present, |place, number| number == 0 && place % 3 != 2);
    let layered =
        rows.into_iter().filter(|row| row.policies.is_empty()).map(|row| Row { is_layered: true, ..row });
    compare_all(user, &layered.collect::<Vec<_>>())
}
