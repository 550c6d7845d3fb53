//! The messages between the host and its keeper.
//!
//! Both ends are the same program, so the format is plain: little-endian numbers, and byte strings preceded by their
//! length. Paths, arguments and variables are sent as raw bytes.

mod read;
mod write;

use std::path::PathBuf;

use portcullis_sandbox::{Command, Limits, NameRules, Network, Owner, Plan, Terminal};
use portcullis_syscall_broker::wire::codec::{DecodeError, Reader, Writer};

use crate::Breach;
use crate::exit::CommandEnd;
use crate::layer::failure::StepRefusal;

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
    /// The number of this sandbox in the record of the session's changes.
    pub(crate) view: u64,
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
        no_gate: Option<StepRefusal>,
    },
    /// The set-up failed.
    Failed { refusal: StepRefusal, path: PathBuf },
    /// The program is running.
    Started { id: u64 },
    /// The program did not start, and no process of the command is left.
    NotStarted { id: u64, refusal: StepRefusal },
    /// Carries the requested socket, unless the kernel refused it.
    Socket { id: u64, errno: i32 },
    /// No process of the command is left.
    Ended { id: u64, ending: CommandEnd, breach: Option<Breach> },
}

impl Setup {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.string(self.hostname.as_ref());
        write::limits(&mut writer, self.limits);
        writer.long(self.open_files.unwrap_or_default());
        write::owner(&mut writer, self.acting);
        write::network(&mut writer, &self.network);
        writer.count(self.plan.steps().len());
        self.plan.steps().iter().for_each(|step| write::step(&mut writer, step));
        write::names(&mut writer, self.names.as_ref());
        writer.long(self.session);
        writer.long(self.view);
        writer.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let hostname = reader.string()?.into_string().map_err(|_not_text| DecodeError)?;
        let limits = read::limits(&mut reader)?;
        let open_files = Some(reader.long()?).filter(|&files| files != 0);
        let acting = read::owner(&mut reader)?;
        let network = read::network(&mut reader)?;
        let plan = Plan::from_steps(reader.list(read::step)?);
        let names = read::names(&mut reader)?;
        let session = reader.long()?;
        let view = reader.long()?;
        reader.end(Self { plan, hostname, limits, open_files, acting, network, names, session, view })
    }
}

impl Request {
    /// Encodes a launch without consuming the command.
    pub(crate) fn encode_launch(id: u64, command: &Command) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.number(1);
        writer.long(id);
        writer.string(command.cwd.as_os_str());
        write::limits(&mut writer, command.limits);
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
            1 => Self::Launch { id, command: read::command(&mut reader)? },
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
                    write::refusal(&mut writer, *refusal);
                }
            }
            Self::Failed { refusal, path } => {
                writer.number(3);
                write::refusal(&mut writer, *refusal);
                writer.string(path.as_os_str());
            }
            Self::Started { id } => {
                writer.number(4);
                writer.long(*id);
            }
            Self::NotStarted { id, refusal } => {
                writer.number(5);
                writer.long(*id);
                write::refusal(&mut writer, *refusal);
            }
            Self::Socket { id, errno } => {
                writer.number(7);
                writer.long(*id);
                writer.signed(*errno);
            }
            Self::Ended { id, ending, breach } => {
                writer.number(6);
                writer.long(*id);
                write::ending(&mut writer, *ending);
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
                no_gate: if reader.number()? == 0 { None } else { Some(read::refusal(&mut reader)?) },
            },
            3 => Self::Failed { refusal: read::refusal(&mut reader)?, path: PathBuf::from(reader.string()?) },
            4 => Self::Started { id: reader.long()? },
            5 => Self::NotStarted { id: reader.long()?, refusal: read::refusal(&mut reader)? },
            6 => {
                let (id, ending) = (reader.long()?, read::ending(&mut reader)?);
                Self::Ended { id, ending, breach: Breach::from_number(reader.number()?) }
            }
            7 => Self::Socket { id: reader.long()?, errno: reader.signed()? },
            _ => return Err(DecodeError),
        };
        reader.end(event)
    }
}

#[cfg(test)]
mod tests;
