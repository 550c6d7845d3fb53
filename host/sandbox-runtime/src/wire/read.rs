//! Decodes the parts of messages between the host and its keeper.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use portcullis_exec_surface::UserLink;
use portcullis_sandbox::{
    Command, FileId, Hold, Limits, MountStep, NameRules, Network, Opening, OwnSource, Owner, PathKind, Reads,
    Stage, Terminal, WayOut, Writable,
};
use portcullis_syscall_broker::wire::codec::{DecodeError, Reader};

use crate::exit::CommandEnd;
use crate::layer::failure::StepRefusal;

pub(super) fn owner(reader: &mut Reader<'_>) -> Result<Option<Owner>, DecodeError> {
    let given = reader.number()?;
    let owner = Owner { uid: reader.number()?, gid: reader.number()? };
    Ok((given == 1).then_some(owner))
}

pub(super) fn limits(reader: &mut Reader<'_>) -> Result<Limits, DecodeError> {
    let mut list = Limits::default().as_list();
    for limit in &mut list {
        let given = reader.number()?;
        let value = reader.long()?;
        *limit = (given == 1).then_some(value);
    }
    Ok(Limits::from_list(list))
}

pub(super) fn network(reader: &mut Reader<'_>) -> Result<Network, DecodeError> {
    match reader.number()? {
        0 => Ok(Network::Closed),
        number @ (1 | 2) => {
            let port =
                |reader: &mut Reader<'_>| u16::try_from(reader.number()?).map_err(|_too_big| DecodeError);
            let hold = if number == 1 { Hold::Connect } else { Hold::Accept };
            Ok(Network::Gated(WayOut { host_ports: reader.list(port)?, hold }))
        }
        _ => Err(DecodeError),
    }
}

pub(super) fn names(reader: &mut Reader<'_>) -> Result<Option<NameRules>, DecodeError> {
    if reader.number()? == 0 {
        return Ok(None);
    }
    let data = reader.string()?.into_vec();
    let workspace = PathBuf::from(reader.string()?);
    let homes = reader.list(|reader| Ok::<_, DecodeError>(PathBuf::from(reader.string()?)))?;
    let spared = reader.list(|reader| Ok::<_, DecodeError>(PathBuf::from(reader.string()?)))?;
    let lifted = reader.list(|reader| reader.string()?.into_string().map_err(|_not_text| DecodeError))?;
    let path = |reader: &mut Reader<'_>| Ok::<_, DecodeError>(PathBuf::from(reader.string()?));
    let links = reader
        .list(|reader| Ok::<_, DecodeError>(UserLink { name: path(reader)?, target: path(reader)? }))?;
    let leading_nowhere = reader.list(path)?;
    let reads = if reader.number()? == 0 { Reads::Free } else { Reads::Judged };
    let kept_back = reader.list(|reader| -> Result<FileId, DecodeError> {
        Ok(FileId { device: (reader.number()?, reader.number()?), inode: reader.long()? })
    })?;
    let rules =
        NameRules { data, workspace, homes, spared, lifted, links, leading_nowhere, reads, kept_back };
    Ok(Some(rules))
}

pub(super) fn step(reader: &mut Reader<'_>) -> Result<MountStep, DecodeError> {
    let number = reader.number()?;
    Ok(match number {
        3 => MountStep::Devices {
            given: reader.list(|reader| Ok::<_, DecodeError>(PathBuf::from(reader.string()?)))?,
        },
        4 => MountStep::Processes,
        _ => {
            let path = PathBuf::from(reader.string()?);
            match number {
                1 => MountStep::Prepare { directory: path, openings: reader.list(opening)? },
                2 => MountStep::Pin { path },
                5 => MountStep::Temp { directory: path },
                6 => MountStep::Show { path, writable: Writable::No },
                7 => MountStep::Show { path, writable: Writable::Yes },
                8 => MountStep::HideDirectory { path, openings: reader.list(opening)? },
                9 => MountStep::HideFile { path },
                10 => MountStep::Resolver { path },
                11 => MountStep::Own { path, source: OwnSource::Plain(PathBuf::from(reader.string()?)) },
                12 => {
                    let next =
                        |reader: &mut Reader<'_>| Ok::<_, DecodeError>(PathBuf::from(reader.string()?));
                    let (lower, upper, work) = (reader.list(next)?, next(reader)?, next(reader)?);
                    let cold = if reader.number()? == 0 { None } else { Some(next(reader)?) };
                    MountStep::Own { path, source: OwnSource::Layered { lower, upper, work, cold } }
                }
                13 => {
                    let (upper, work) = (PathBuf::from(reader.string()?), PathBuf::from(reader.string()?));
                    MountStep::Own { path, source: OwnSource::Branch { upper, work } }
                }
                _ => return Err(DecodeError),
            }
        }
    })
}

pub(super) fn opening(reader: &mut Reader<'_>) -> Result<Opening, DecodeError> {
    let path = PathBuf::from(reader.string()?);
    let kind = if reader.number()? == 1 { PathKind::Directory } else { PathKind::File };
    Ok(Opening { path, kind, is_closed: reader.number()? == 1 })
}

pub(super) fn command(reader: &mut Reader<'_>) -> Result<Command, DecodeError> {
    let cwd = PathBuf::from(reader.string()?);
    let limits = limits(reader)?;
    let terminal = match reader.number()? {
        0 => Terminal::None,
        1 => Terminal::Input,
        _ => return Err(DecodeError),
    };
    let argv = reader.list(Reader::string)?;
    let env = reader.list(|reader| -> Result<(OsString, OsString), DecodeError> {
        Ok((reader.string()?, reader.string()?))
    })?;
    Ok(Command { argv, env, cwd, limits, terminal })
}

pub(super) fn refusal(reader: &mut Reader<'_>) -> Result<StepRefusal, DecodeError> {
    let stage = Stage::from_number(reader.number()?).ok_or(DecodeError)?;
    Ok(StepRefusal { stage, errno: reader.signed()? })
}

pub(super) fn ending(reader: &mut Reader<'_>) -> Result<CommandEnd, DecodeError> {
    let kind = reader.number()?;
    let value = reader.signed()?;
    match kind {
        0 => Ok(CommandEnd::Code(value)),
        1 => Ok(CommandEnd::Signal(value)),
        _ => Err(DecodeError),
    }
}
