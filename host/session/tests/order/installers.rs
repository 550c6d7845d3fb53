//! Ways to install a file: those of a session, and controls without the lock on name changes.

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;

use portcullis_decision::request::{
    Action, Content, FileAccess, FileOperation, Origin, PathKind, PathRef, Text, Zone,
};
use portcullis_decision::{Base, Chain, Permit, Request, RuleSet};
use portcullis_file_gate::{Gate, Located, Purpose, Views, WriteOptions};
use portcullis_sandbox_runtime::Exit;
use portcullis_session::{
    Cancel, CommandCall, EditFile, FileCall, FileFailure, Program, Session, commands, files,
};

use crate::scene::Scene;

/// The result for one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Done,
    Denied,
    Failed,
}

/// A way to install a file.
pub(crate) trait Installer {
    /// The part before the attack waits.
    fn begin(&mut self, _name: &str) {}

    /// The rest. Calls `before_yes` before a "yes" to a question, if there is one.
    fn finish(&mut self, name: &str, content: &str, before_yes: &dyn Fn()) -> Ending;
}

/// The tool `write` of a session. Its prompter acts before a "yes".
pub(crate) struct Write<'a>(pub(crate) &'a Scene, pub(crate) &'a Session);

impl Installer for Write<'_> {
    fn finish(&mut self, name: &str, content: &str, _: &dyn Fn()) -> Ending {
        let path = self.0.project.join(name);
        let call = FileCall { path: &path, given: name, call: None, cancel: &Cancel::default() };
        ended(files::write(self.1, call, content))
    }
}

/// The tool `edit` of a session.
pub(crate) struct Edit<'a>(pub(crate) &'a Scene, pub(crate) &'a Session, pub(crate) Option<EditFile>);

impl Installer for Edit<'_> {
    fn begin(&mut self, name: &str) {
        let path = self.0.project.join(name);
        let call = FileCall { path: &path, given: name, call: None, cancel: &Cancel::default() };
        self.2 = Some(files::edit(self.1, call, &[]).expect("a file to edit"));
    }

    fn finish(&mut self, _: &str, content: &str, _: &dyn Fn()) -> Ending {
        let edit = self.2.take().expect("begun");
        ended(files::finish_edit(self.1, edit, content, &Cancel::default()))
    }
}

fn ended<T>(result: Result<T, FileFailure>) -> Ending {
    match result {
        Ok(_) => Ending::Done,
        Err(FileFailure::Denied(_)) => Ending::Denied,
        Err(FileFailure::File(_)) => Ending::Failed,
    }
}

/// A command that copies a file to a path outside its project.
pub(crate) struct Command<'a>(pub(crate) &'a Scene, pub(crate) &'a Session);

impl Command<'_> {
    /// Runs a script in the near project.
    pub(crate) fn run(&self, script: String) -> Exit {
        let call = CommandCall {
            program: Program::Script(script),
            cwd: &self.0.near,
            environment: Vec::new(),
            timeout: None,
            origin: Origin::Agent,
            call: None,
        };
        let nothing =
            || OpenOptions::new().read(true).write(true).open("/dev/null").expect("/dev/null").into();
        let cancel = Cancel::default();
        let started = commands::start(self.1, call, [nothing(), nothing(), nothing()], &cancel);
        commands::finish(self.1, &started.expect("it starts")).exit
    }
}

impl Installer for Command<'_> {
    fn finish(&mut self, name: &str, content: &str, _: &dyn Fn()) -> Ending {
        fs::write(self.0.near.join("content"), content).expect("written");
        let script = format!("cat content > {}", self.0.project.join(name).display());
        if self.run(script) == Exit::Code(0) { Ending::Done } else { Ending::Failed }
    }
}

/// Ways to write without the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Old {
    /// Decides first, then creates the file and names it, whatever has happened meanwhile.
    Write,
    /// Opens the directory first, then decides, writes beside the old file and replaces it, as editors do.
    Edit,
    /// Decides first, then opens the file by its path, as the host does for a command.
    Open,
}

/// An installer without the lock.
pub(crate) struct OldOrder<'a> {
    scene: &'a Scene,
    gate: Gate,
    how: Old,
    begun: Option<(PathBuf, File)>,
}

impl<'a> OldOrder<'a> {
    pub(crate) fn new(scene: &'a Scene, how: Old) -> Self {
        Self { scene, gate: Gate::new(Views::Host).expect("a gate"), how, begun: None }
    }

    fn located(&self, name: &str) -> Option<Located> {
        self.gate.locate(&self.scene.project.join(name), Purpose::ForWriting).ok()
    }

    fn is_done(&mut self, name: &str, content: &str, before_yes: &dyn Fn()) -> Option<()> {
        if let Some((path, directory)) = self.begun.take() {
            if self.scene.is_harmful(&path, content) {
                return None;
            }
            let directory = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
            fs::write(directory.join("new"), content).ok()?;
            return fs::rename(directory.join("new"), directory.join(path.file_name()?)).ok();
        }
        let located = self.located(name)?;
        if self.scene.is_harmful(located.canonical(), content) {
            return None;
        }
        before_yes();
        if self.how == Old::Open {
            return fs::write(located.canonical(), content).ok();
        }
        let permit = self.permit(&located, content);
        self.gate.write(located, permit, content.as_bytes(), WriteOptions::default()).ok().map(drop)
    }

    fn permit(&self, located: &Located, content: &str) -> Permit {
        let text = located.canonical_text().to_owned();
        let path = PathRef {
            given: text.clone(),
            absolute: text.clone(),
            canonical: text.clone(),
            zone: Zone::Workspace,
            relative: text,
            kind: PathKind::Missing,
        };
        let operation = FileOperation::Write(Content::Text(Text::cut(content)));
        let action = Action::File(FileAccess { path, operation, facts: located.facts() });
        let request = Request { id: "1".into(), parent: None, origin: Origin::Agent, action, facts: vec![] };
        let base = Base { workspace: vec![self.scene.project.clone()], ..Base::default() };
        let rules = RuleSet::compile(Vec::new(), base, &[]);
        let decision =
            Chain::default().decide(&request, &self.scene.context(&self.scene.project), &rules, &[]);
        decision.permit(&request).expect("a permit for what is free")
    }
}

impl Installer for OldOrder<'_> {
    fn begin(&mut self, name: &str) {
        if self.how == Old::Edit {
            let path = self.scene.project.join(name);
            let directory = File::open(path.parent().expect("a directory")).expect("a directory");
            self.begun = Some((path, directory));
        }
    }

    fn finish(&mut self, name: &str, content: &str, before_yes: &dyn Fn()) -> Ending {
        // Only the file that it leaves matters.
        self.is_done(name, content, before_yes).map_or(Ending::Failed, |()| Ending::Done)
    }
}
