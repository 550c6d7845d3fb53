//! Encodes the parts of messages between the host and its keeper.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use portcullis_exec_surface::UserLink;
use portcullis_sandbox::{
    FileId, Hold, Limits, MountStep, NameRules, Network, Opening, OwnSource, Owner, PathKind, WayOut,
    Writable,
};
use portcullis_syscall_broker::wire::codec::Writer;

use crate::exit::CommandEnd;
use crate::layer::failure::StepRefusal;

pub(super) fn owner(writer: &mut Writer, owner: Option<Owner>) {
    writer.number(u32::from(owner.is_some()));
    let Owner { uid, gid } = owner.unwrap_or(Owner { uid: 0, gid: 0 });
    writer.number(uid);
    writer.number(gid);
}

pub(super) fn limits(writer: &mut Writer, limits: Limits) {
    for limit in limits.as_list() {
        writer.number(u32::from(limit.is_some()));
        writer.long(limit.unwrap_or_default());
    }
}

pub(super) fn network(writer: &mut Writer, network: &Network) {
    match network {
        Network::Closed => writer.number(0),
        Network::Gated(WayOut { host_ports, hold }) => {
            writer.number(match hold {
                Hold::Connect => 1,
                Hold::Accept => 2,
            });
            writer.count(host_ports.len());
            host_ports.iter().for_each(|&port| writer.number(port.into()));
        }
    }
}

pub(super) fn names(writer: &mut Writer, names: Option<&NameRules>) {
    writer.number(u32::from(names.is_some()));
    if let Some(rules) = names {
        let NameRules { data, workspace, homes, spared, lifted, links, leading_nowhere, reads, kept_back } =
            rules;
        writer.string(OsStr::from_bytes(data));
        writer.string(workspace.as_os_str());
        writer.count(homes.len());
        homes.iter().for_each(|home| writer.string(home.as_os_str()));
        writer.count(spared.len());
        spared.iter().for_each(|place| writer.string(place.as_os_str()));
        writer.count(lifted.len());
        lifted.iter().for_each(|id| writer.string(id.as_ref()));
        writer.count(links.len());
        for UserLink { name, target } in links {
            writer.string(name.as_os_str());
            writer.string(target.as_os_str());
        }
        writer.count(leading_nowhere.len());
        leading_nowhere.iter().for_each(|end| writer.string(end.as_os_str()));
        writer.number(u32::from(reads.are_judged()));
        writer.count(kept_back.len());
        for FileId { device: (major, minor), inode } in kept_back {
            writer.number(*major);
            writer.number(*minor);
            writer.long(*inode);
        }
    }
}

pub(super) fn step(writer: &mut Writer, step: &MountStep) {
    let number = match step {
        MountStep::Prepare { .. } => 1,
        MountStep::Pin { .. } => 2,
        MountStep::Devices { .. } => 3,
        MountStep::Processes => 4,
        MountStep::Temp { .. } => 5,
        MountStep::Show { writable: Writable::No, .. } => 6,
        MountStep::Show { writable: Writable::Yes, .. } => 7,
        MountStep::HideDirectory { .. } => 8,
        MountStep::HideFile { .. } => 9,
        MountStep::Resolver { .. } => 10,
        MountStep::Own { source: OwnSource::Plain(_), .. } => 11,
        MountStep::Own { source: OwnSource::Layered { .. }, .. } => 12,
        MountStep::Own { source: OwnSource::Branch { .. }, .. } => 13,
    };
    writer.number(number);
    match step {
        MountStep::Processes => {}
        MountStep::Devices { given } => {
            writer.count(given.len());
            given.iter().for_each(|path| writer.string(path.as_os_str()));
        }
        MountStep::Prepare { directory: path, openings } | MountStep::HideDirectory { path, openings } => {
            writer.string(path.as_os_str());
            writer.count(openings.len());
            openings.iter().for_each(|one| opening(writer, one));
        }
        MountStep::Own { path, source: OwnSource::Plain(source) } => {
            [path, source].into_iter().for_each(|path| writer.string(path.as_os_str()));
        }
        MountStep::Own { path, source: OwnSource::Layered { lower, upper, work, cold } } => {
            writer.string(path.as_os_str());
            writer.count(lower.len());
            lower.iter().chain([upper, work]).for_each(|path| writer.string(path.as_os_str()));
            writer.number(u32::from(cold.is_some()));
            cold.iter().for_each(|path| writer.string(path.as_os_str()));
        }
        MountStep::Own { path, source: OwnSource::Branch { upper, work } } => {
            [path, upper, work].into_iter().for_each(|path| writer.string(path.as_os_str()));
        }
        MountStep::Pin { path }
        | MountStep::Temp { directory: path }
        | MountStep::Show { path, .. }
        | MountStep::HideFile { path }
        | MountStep::Resolver { path } => writer.string(path.as_os_str()),
    }
}

pub(super) fn opening(writer: &mut Writer, opening: &Opening) {
    writer.string(opening.path.as_os_str());
    writer.number(u32::from(opening.kind == PathKind::Directory));
    writer.number(u32::from(opening.is_closed));
}

pub(super) fn refusal(writer: &mut Writer, refusal: StepRefusal) {
    writer.number(refusal.stage.number());
    writer.signed(refusal.errno);
}

pub(super) fn ending(writer: &mut Writer, ending: CommandEnd) {
    let (kind, value) = match ending {
        CommandEnd::Code(code) => (0, code),
        CommandEnd::Signal(signal) => (1, signal),
    };
    writer.number(kind);
    writer.signed(value);
}
