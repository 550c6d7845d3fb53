//! The messages between the host and its keeper.
//!
//! Both ends are the same program, so the format is plain: little-endian numbers, and byte strings preceded by their
//! length. Paths, arguments and variables are sent as raw bytes.

pub(crate) mod asks;
pub(crate) mod calls;
mod codec;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use portcullis_exec_surface::UserLink;

use crate::plan::{Opening, PathKind, Plan, Step, Writable};
use crate::{Breach, Command, FileId, Hold, Limits, NameRules, Owner, Reads, Stage, Terminal, WayOut};
pub(crate) use codec::{Reader, Writer};

/// A message that cannot be decoded; the sender is not the same program.
#[derive(Debug)]
pub(crate) struct DecodeError;

/// The host's first message to the keeper.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Setup {
    pub(crate) plan: Plan,
    pub(crate) hostname: String,
    pub(crate) limits: Limits,
    /// The limit of open file descriptors for commands, if the host's own is higher.
    pub(crate) open_files: Option<u64>,
    /// The user as whom commands act; the host has then mapped both users.
    pub(crate) acting: Option<Owner>,
    pub(crate) network: Network,
    pub(crate) names: Option<NameRules>,
    /// The number of the session in the record of the name order, if there is one.
    pub(crate) session: u64,
}

/// The wanted network of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Network {
    /// No connection leaves the sandbox.
    Closed,
    /// Connections lead to the host's listeners.
    Gated(WayOut),
}

/// The host's later messages to the keeper.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Carries three descriptors: standard input, output and error.
    Launch {
        id: u64,
        command: Command,
    },
    Signal {
        id: u64,
        signal: i32,
    },
    Kill {
        id: u64,
    },
    /// Requests a TCP socket in the session's network.
    Socket {
        id: u64,
        is_v6: bool,
    },
}

/// The keeper's messages to the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// Carries the keeper's pidfd; the setup continues.
    Keeper,
    /// Carries the root of the view, its mount namespace, and the listeners if the network is gated.
    Ready {
        /// The Landlock version that confines commands, 0 for none.
        landlock: u32,
        /// Whether the kernel refuses processes above their limit, even to root.
        processes_are_bounded: bool,
        /// The errno for which the keeper is not in the control group made for it; 0 if it is.
        no_group: i32,
        /// Why there are no listeners although they were wanted.
        no_gate: Option<Refusal>,
    },
    /// The set-up failed.
    Failed { refusal: Refusal, path: PathBuf },
    /// The program is running.
    Started { id: u64 },
    /// The program did not start, and no process of the command is left.
    NotStarted { id: u64, refusal: Refusal },
    /// Carries the requested socket, unless the kernel refused it.
    Socket { id: u64, errno: i32 },
    /// No process of the command is left.
    Ended { id: u64, ending: Ending, breach: Option<Breach> },
}

/// A step that the kernel refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) stage: Stage,
    pub(crate) errno: i32,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Code(i32),
    Signal(i32),
}

impl Setup {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.string(self.hostname.as_ref());
        writer.limits(self.limits);
        writer.long(self.open_files.unwrap_or_default());
        writer.owner(self.acting);
        writer.network(&self.network);
        writer.count(self.plan.steps().len());
        self.plan.steps().iter().for_each(|step| writer.step(step));
        writer.names(self.names.as_ref());
        writer.long(self.session);
        writer.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let hostname = reader.string()?.into_string().map_err(|_not_text| DecodeError)?;
        let limits = reader.limits()?;
        let open_files = Some(reader.long()?).filter(|&files| files != 0);
        let acting = reader.owner()?;
        let network = reader.network()?;
        let plan = Plan::from_steps(reader.list(Reader::step)?);
        let names = reader.names()?;
        let session = reader.long()?;
        reader.end(Self { plan, hostname, limits, open_files, acting, network, names, session })
    }
}

impl Request {
    /// Encodes a launch without consuming the command.
    pub(crate) fn encode_launch(id: u64, command: &Command) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.number(1);
        writer.long(id);
        writer.string(command.cwd.as_os_str());
        writer.limits(command.limits);
        writer.number(u32::from(command.terminal == Terminal::Input));
        writer.count(command.argv.len());
        command.argv.iter().for_each(|argument| writer.string(argument));
        writer.count(command.env.len());
        for (name, value) in &command.env {
            writer.string(name);
            writer.string(value);
        }
        writer.finish()
    }

    pub(crate) fn encode_signal(id: u64, signal: i32) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.number(2);
        writer.long(id);
        writer.signed(signal);
        writer.finish()
    }

    pub(crate) fn encode_kill(id: u64) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.number(3);
        writer.long(id);
        writer.finish()
    }

    pub(crate) fn encode_socket(id: u64, is_v6: bool) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.number(4);
        writer.long(id);
        writer.number(u32::from(is_v6));
        writer.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let kind = reader.number()?;
        let id = reader.long()?;
        let request = match kind {
            1 => Self::Launch { id, command: reader.command()? },
            2 => Self::Signal { id, signal: reader.signed()? },
            3 => Self::Kill { id },
            4 => Self::Socket { id, is_v6: reader.number()? == 1 },
            _ => return Err(DecodeError),
        };
        reader.end(request)
    }
}

impl Event {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        match self {
            Self::Keeper => writer.number(1),
            Self::Ready { landlock, processes_are_bounded, no_group, no_gate } => {
                writer.number(2);
                writer.number(*landlock);
                writer.number(u32::from(*processes_are_bounded));
                writer.signed(*no_group);
                writer.number(u32::from(no_gate.is_some()));
                if let Some(refusal) = no_gate {
                    writer.refusal(*refusal);
                }
            }
            Self::Failed { refusal, path } => {
                writer.number(3);
                writer.refusal(*refusal);
                writer.string(path.as_os_str());
            }
            Self::Started { id } => {
                writer.number(4);
                writer.long(*id);
            }
            Self::NotStarted { id, refusal } => {
                writer.number(5);
                writer.long(*id);
                writer.refusal(*refusal);
            }
            Self::Socket { id, errno } => {
                writer.number(7);
                writer.long(*id);
                writer.signed(*errno);
            }
            Self::Ended { id, ending, breach } => {
                writer.number(6);
                writer.long(*id);
                writer.ending(*ending);
                writer.number(breach.map_or(0, Breach::number));
            }
        }
        writer.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let event = match reader.number()? {
            1 => Self::Keeper,
            2 => Self::Ready {
                landlock: reader.number()?,
                processes_are_bounded: reader.number()? == 1,
                no_group: reader.signed()?,
                no_gate: if reader.number()? == 0 { None } else { Some(reader.refusal()?) },
            },
            3 => Self::Failed { refusal: reader.refusal()?, path: PathBuf::from(reader.string()?) },
            4 => Self::Started { id: reader.long()? },
            5 => Self::NotStarted { id: reader.long()?, refusal: reader.refusal()? },
            6 => {
                let (id, ending) = (reader.long()?, reader.ending()?);
                Self::Ended { id, ending, breach: Breach::from_number(reader.number()?) }
            }
            7 => Self::Socket { id: reader.long()?, errno: reader.signed()? },
            _ => return Err(DecodeError),
        };
        reader.end(event)
    }
}

impl Writer {
    fn owner(&mut self, owner: Option<Owner>) {
        self.number(u32::from(owner.is_some()));
        let Owner { uid, gid } = owner.unwrap_or(Owner { uid: 0, gid: 0 });
        self.number(uid);
        self.number(gid);
    }

    fn limits(&mut self, limits: Limits) {
        for limit in limits.as_list() {
            self.number(u32::from(limit.is_some()));
            self.long(limit.unwrap_or_default());
        }
    }

    fn network(&mut self, network: &Network) {
        match network {
            Network::Closed => self.number(0),
            Network::Gated(WayOut { host_ports, hold }) => {
                self.number(match hold {
                    Hold::Connect => 1,
                    Hold::Accept => 2,
                });
                self.count(host_ports.len());
                host_ports.iter().for_each(|&port| self.number(port.into()));
            }
        }
    }

    fn names(&mut self, names: Option<&NameRules>) {
        self.number(u32::from(names.is_some()));
        if let Some(rules) = names {
            let NameRules {
                data,
                workspace,
                homes,
                spared,
                lifted,
                links,
                leading_nowhere,
                reads,
                kept_back,
            } = rules;
            self.string(OsStr::from_bytes(data));
            self.string(workspace.as_os_str());
            self.count(homes.len());
            homes.iter().for_each(|home| self.string(home.as_os_str()));
            self.count(spared.len());
            spared.iter().for_each(|place| self.string(place.as_os_str()));
            self.count(lifted.len());
            lifted.iter().for_each(|id| self.string(id.as_ref()));
            self.count(links.len());
            for UserLink { name, target } in links {
                self.string(name.as_os_str());
                self.string(target.as_os_str());
            }
            self.count(leading_nowhere.len());
            leading_nowhere.iter().for_each(|end| self.string(end.as_os_str()));
            self.number(u32::from(reads.are_judged()));
            self.count(kept_back.len());
            for FileId { device: (major, minor), inode } in kept_back {
                self.number(*major);
                self.number(*minor);
                self.long(*inode);
            }
        }
    }

    fn step(&mut self, step: &Step) {
        let number = match step {
            Step::Prepare { .. } => 1,
            Step::Pin { .. } => 2,
            Step::Devices => 3,
            Step::Processes => 4,
            Step::Temp { .. } => 5,
            Step::Show { writable: Writable::No, .. } => 6,
            Step::Show { writable: Writable::Yes, .. } => 7,
            Step::HideDirectory { .. } => 8,
            Step::HideFile { .. } => 9,
            Step::Resolver { .. } => 10,
        };
        self.number(number);
        match step {
            Step::Devices | Step::Processes => {}
            Step::Prepare { directory: path, openings } | Step::HideDirectory { path, openings } => {
                self.string(path.as_os_str());
                self.count(openings.len());
                openings.iter().for_each(|opening| self.opening(opening));
            }
            Step::Pin { path }
            | Step::Temp { directory: path }
            | Step::Show { path, .. }
            | Step::HideFile { path }
            | Step::Resolver { path } => self.string(path.as_os_str()),
        }
    }

    fn opening(&mut self, opening: &Opening) {
        self.string(opening.path.as_os_str());
        self.number(u32::from(opening.kind == PathKind::Directory));
    }

    pub(crate) fn refusal(&mut self, refusal: Refusal) {
        self.number(refusal.stage.number());
        self.signed(refusal.errno);
    }

    pub(crate) fn ending(&mut self, ending: Ending) {
        let (kind, value) = match ending {
            Ending::Code(code) => (0, code),
            Ending::Signal(signal) => (1, signal),
        };
        self.number(kind);
        self.signed(value);
    }
}

impl Reader<'_> {
    fn owner(&mut self) -> Result<Option<Owner>, DecodeError> {
        let given = self.number()?;
        let owner = Owner { uid: self.number()?, gid: self.number()? };
        Ok((given == 1).then_some(owner))
    }

    fn limits(&mut self) -> Result<Limits, DecodeError> {
        let mut list = Limits::default().as_list();
        for limit in &mut list {
            let given = self.number()?;
            let value = self.long()?;
            *limit = (given == 1).then_some(value);
        }
        Ok(Limits::from_list(list))
    }

    fn network(&mut self) -> Result<Network, DecodeError> {
        match self.number()? {
            0 => Ok(Network::Closed),
            number @ (1 | 2) => {
                let port =
                    |reader: &mut Self| u16::try_from(reader.number()?).map_err(|_too_big| DecodeError);
                let hold = if number == 1 { Hold::Connect } else { Hold::Accept };
                Ok(Network::Gated(WayOut { host_ports: self.list(port)?, hold }))
            }
            _ => Err(DecodeError),
        }
    }

    fn names(&mut self) -> Result<Option<NameRules>, DecodeError> {
        if self.number()? == 0 {
            return Ok(None);
        }
        let data = self.string()?.into_vec();
        let workspace = PathBuf::from(self.string()?);
        let homes = self.list(|reader| Ok::<_, DecodeError>(PathBuf::from(reader.string()?)))?;
        let spared = self.list(|reader| Ok::<_, DecodeError>(PathBuf::from(reader.string()?)))?;
        let lifted = self.list(|reader| reader.string()?.into_string().map_err(|_not_text| DecodeError))?;
        let path = |reader: &mut Self| Ok::<_, DecodeError>(PathBuf::from(reader.string()?));
        let links = self
            .list(|reader| Ok::<_, DecodeError>(UserLink { name: path(reader)?, target: path(reader)? }))?;
        let leading_nowhere = self.list(path)?;
        let reads = if self.number()? == 0 { Reads::Free } else { Reads::Judged };
        let kept_back = self.list(|reader| -> Result<FileId, DecodeError> {
            Ok(FileId { device: (reader.number()?, reader.number()?), inode: reader.long()? })
        })?;
        let rules =
            NameRules { data, workspace, homes, spared, lifted, links, leading_nowhere, reads, kept_back };
        Ok(Some(rules))
    }

    fn step(&mut self) -> Result<Step, DecodeError> {
        let number = self.number()?;
        Ok(match number {
            3 => Step::Devices,
            4 => Step::Processes,
            _ => {
                let path = PathBuf::from(self.string()?);
                match number {
                    1 => Step::Prepare { directory: path, openings: self.list(Self::opening)? },
                    2 => Step::Pin { path },
                    5 => Step::Temp { directory: path },
                    6 => Step::Show { path, writable: Writable::No },
                    7 => Step::Show { path, writable: Writable::Yes },
                    8 => Step::HideDirectory { path, openings: self.list(Self::opening)? },
                    9 => Step::HideFile { path },
                    10 => Step::Resolver { path },
                    _ => return Err(DecodeError),
                }
            }
        })
    }

    fn opening(&mut self) -> Result<Opening, DecodeError> {
        let path = PathBuf::from(self.string()?);
        let kind = if self.number()? == 1 { PathKind::Directory } else { PathKind::File };
        Ok(Opening { path, kind })
    }

    fn command(&mut self) -> Result<Command, DecodeError> {
        let cwd = PathBuf::from(self.string()?);
        let limits = self.limits()?;
        let terminal = match self.number()? {
            0 => Terminal::None,
            1 => Terminal::Input,
            _ => return Err(DecodeError),
        };
        let argv = self.list(Self::string)?;
        let env = self.list(|reader| -> Result<(OsString, OsString), DecodeError> {
            Ok((reader.string()?, reader.string()?))
        })?;
        Ok(Command { argv, env, cwd, limits, terminal })
    }

    pub(crate) fn refusal(&mut self) -> Result<Refusal, DecodeError> {
        let stage = Stage::from_number(self.number()?).ok_or(DecodeError)?;
        Ok(Refusal { stage, errno: self.signed()? })
    }

    pub(crate) fn ending(&mut self) -> Result<Ending, DecodeError> {
        let kind = self.number()?;
        let value = self.signed()?;
        match kind {
            0 => Ok(Ending::Code(value)),
            1 => Ok(Ending::Signal(value)),
            _ => Err(DecodeError),
        }
    }
}

#[cfg(test)]
mod tests;
