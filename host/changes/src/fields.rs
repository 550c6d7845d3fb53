//! Reads states from their fields.
//!
//! A field says what a state is. serde's own way to read such a type buffers all other fields as generic values first,
//! which takes several times as long, and a command's records are read when it has ended.

use std::path::PathBuf;

use serde::Deserialize;

use crate::state::{Attributes, Content, DirectoryState, FileId, FileState, State};
use crate::text;

/// The fields of all states.
#[derive(Deserialize)]
pub(crate) struct StateFields {
    is: Kind,
    id: Option<FileId>,
    size: Option<u64>,
    modified: Option<(i64, u32)>,
    mode: Option<u32>,
    owner: Option<(u32, u32)>,
    links: Option<u32>,
    attributes: Option<Attributes>,
    digest: Option<String>,
    #[serde(default)]
    content: Content,
    target: Option<Target>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Absent,
    File,
    Directory,
    Link,
    Special,
}

/// Where a link leads.
#[derive(Deserialize)]
struct Target(#[serde(with = "text")] PathBuf);

impl TryFrom<StateFields> for State {
    type Error = &'static str;

    fn try_from(fields: StateFields) -> Result<Self, Self::Error> {
        let StateFields { is, id, size, modified, mode, owner, links, attributes, digest, content, target } =
            fields;
        let state = match is {
            Kind::Absent => Some(Self::Absent),
            Kind::File => id.zip(size).zip(modified).zip(mode).zip(owner).zip(links).map(
                |(((((id, size), modified), mode), owner), links)| {
                    Self::File(FileState {
                        id,
                        size,
                        modified,
                        mode,
                        owner,
                        links,
                        attributes,
                        digest,
                        content,
                    })
                },
            ),
            Kind::Directory => {
                id.zip(mode).zip(owner).zip(modified).map(|(((id, mode), owner), modified)| {
                    Self::Directory(DirectoryState { id, mode, owner, modified, attributes })
                })
            }
            Kind::Link => target.zip(owner).map(|(Target(target), owner)| Self::Link { target, owner }),
            Kind::Special => mode.map(|mode| Self::Special { mode }),
        };
        state.ok_or("a state lacks a field")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::state::Lost;

    fn states() -> impl Strategy<Value = State> {
        let id = any::<(u32, u32, u64, i64, u32)>().prop_map(|(major, minor, inode, second, nano)| FileId {
            device: (major, minor),
            inode,
            born: (second, nano),
        });
        let attributes = proptest::option::of(any::<Attributes>());
        let content = prop_oneof![
            Just(Content::Unread),
            any::<String>().prop_map(Content::Kept),
            Just(Content::Lost(Lost::FileTooLarge))
        ];
        let common = (id, any::<(i64, u32)>(), any::<u32>(), any::<(u32, u32)>(), attributes);
        let file = (common.clone(), any::<(u64, u32)>(), any::<Option<String>>(), content).prop_map(
            |((id, modified, mode, owner, attributes), (size, links), digest, content)| {
                State::File(FileState { id, size, modified, mode, owner, links, attributes, digest, content })
            },
        );
        let directory = common.prop_map(|(id, modified, mode, owner, attributes)| {
            State::Directory(DirectoryState { id, mode, owner, modified, attributes })
        });
        let link = any::<(String, (u32, u32))>()
            .prop_map(|(target, owner)| State::Link { target: target.into(), owner });
        let special = any::<u32>().prop_map(|mode| State::Special { mode });
        prop_oneof![Just(State::Absent), file, directory, link, special]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(state in states()) {
            let json = serde_json::to_string(&state).unwrap();
            prop_assert_eq!(&serde_json::from_str::<State>(&json).unwrap(), &state);
        }
    }

    #[test]
    fn a_state_without_one_of_its_fields_is_none() {
        for text in ["{\"is\":\"file\",\"size\":1}", "{\"is\":\"link\"}", "{\"is\":\"other\"}", "{}"] {
            serde_json::from_str::<State>(text).unwrap_err();
        }
        assert_eq!(serde_json::from_str::<State>("{\"is\":\"absent\"}").unwrap(), State::Absent);
    }
}
