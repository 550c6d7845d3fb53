//! Converts patterns and attributes of a guest to the host's types and checks each field.

use portcullis_decision::PolicyError;
use portcullis_decision::pattern::{FilePattern, HostPattern, NetworkPattern, PortSet};
use portcullis_decision::profile::FileRights;
use portcullis_decision::request::Attribute;

use super::bindings::portcullis::policy::{facts, files, network};
use crate::check::{self, bad_pattern};

pub(super) fn file_pattern(pattern: files::FilePattern) -> Result<FilePattern, PolicyError> {
    match pattern {
        files::FilePattern::Exact(path) => FilePattern::exact(&path),
        files::FilePattern::Tree(path) => FilePattern::tree(&path),
        files::FilePattern::Glob(glob) => FilePattern::glob(&glob),
        files::FilePattern::Name(name) => FilePattern::name(&name.below, &name.glob),
    }
    .map_err(|error| bad_pattern(&error))
}

pub(super) fn file_rights(rights: files::FileRights) -> FileRights {
    FileRights {
        read: rights.contains(files::FileRights::READ),
        write: rights.contains(files::FileRights::WRITE),
        execute: rights.contains(files::FileRights::EXECUTE),
    }
}

pub(super) fn network_pattern(pattern: network::NetworkPattern) -> Result<NetworkPattern, PolicyError> {
    Ok(NetworkPattern {
        host: HostPattern::parse(&pattern.host).map_err(|error| bad_pattern(&error))?,
        ports: match pattern.ports {
            network::PortSet::Every => PortSet::Every,
            network::PortSet::These(ports) => {
                PortSet::These(check::list(ports, "port-set", check::ENTRIES, Ok)?)
            }
        },
    })
}

pub(super) fn attribute(attribute: facts::Attribute) -> Result<Attribute, PolicyError> {
    Ok(Attribute {
        name: check::name(attribute.name, "attribute.name")?,
        value: check::data(attribute.value, "attribute.value")?,
    })
}

/// Checks a JSON pointer to the configuration, which is shown to users.
pub(super) fn setting(setting: Option<String>) -> String {
    setting.map(check::line).unwrap_or_default()
}
