//! Converts patterns and attributes of a guest to the host's types and checks each field.

use portcullis_decision::PolicyError;
use portcullis_decision::pattern::{FilePattern, HostPattern, NetworkPattern, PortSet};
use portcullis_decision::profile::FileRights;
use portcullis_decision::request::Attribute;

use super::bindings::portcullis::policy::types;
use crate::check::{self, bad_pattern};

pub(super) fn file_pattern(pattern: types::FilePattern) -> Result<FilePattern, PolicyError> {
    match pattern {
        types::FilePattern::Exact(path) => FilePattern::exact(&path),
        types::FilePattern::Tree(path) => FilePattern::tree(&path),
        types::FilePattern::Glob(glob) => FilePattern::glob(&glob),
        types::FilePattern::Name(name) => FilePattern::name(&name.below, &name.glob),
    }
    .map_err(|error| bad_pattern(&error))
}

pub(super) fn file_rights(rights: types::FileRights) -> FileRights {
    FileRights {
        read: rights.contains(types::FileRights::READ),
        write: rights.contains(types::FileRights::WRITE),
        execute: rights.contains(types::FileRights::EXECUTE),
    }
}

pub(super) fn network_pattern(pattern: types::NetworkPattern) -> Result<NetworkPattern, PolicyError> {
    Ok(NetworkPattern {
        host: HostPattern::parse(&pattern.host).map_err(|error| bad_pattern(&error))?,
        ports: match pattern.ports {
            types::PortSet::Every => PortSet::Every,
            types::PortSet::These(ports) => {
                PortSet::These(check::list(ports, "port-set", check::ENTRIES, Ok)?)
            }
        },
    })
}

pub(super) fn attribute(attribute: types::Attribute) -> Result<Attribute, PolicyError> {
    Ok(Attribute {
        name: check::name(attribute.name, "attribute.name")?,
        value: check::data(attribute.value, "attribute.value")?,
    })
}
