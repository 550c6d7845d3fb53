//! The state of a name: what is there, with everything that undoing has to give back.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::text;

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case", try_from = "StateFields")]
pub enum State {
    /// Nothing is there.
    Absent,
    /// A regular file.
    File(FileState),
    /// A directory; what is in it are names of their own.
    Directory(DirectoryState),
    /// A symbolic link.
    Link {
        /// Where it leads.
        #[serde(with = "text")]
        target: PathBuf,
        /// User and group.
        owner: (u32, u32),
    },
    /// A pipe, a socket or a device.
    Special {
        /// Type and permissions, as in `st_mode`.
        mode: u32,
    },
}

/// A regular file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// Which file it is.
    pub id: FileId,
    /// The length in bytes.
    pub size: u64,
    /// When its content was last changed: seconds and nanoseconds.
    pub modified: (i64, u32),
    /// The permissions.
    pub mode: u32,
    /// User and group.
    pub owner: (u32, u32),
    /// The number of its names.
    pub links: u32,
    /// Extended attributes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Attributes>,
    /// A digest of the content, if the time of the last change does not tell whether it changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Where the content is.
    #[serde(default)]
    pub content: Content,
}

/// A directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryState {
    /// Which directory it is.
    pub id: FileId,
    /// The permissions.
    pub mode: u32,
    /// User and group.
    pub owner: (u32, u32),
    /// When a name in it was last changed.
    pub modified: (i64, u32),
    /// Extended attributes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Attributes>,
}

/// Stands for the value of an extended attribute that could not be read. No value is written like this.
pub(crate) const UNREAD: &str = "%";

/// The extended attributes of a file or directory, by name. Without them a state says nothing about them.
pub type Attributes = Vec<(String, String)>;

/// Tells files apart; the time of birth differs if the file system gives the number to another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileId {
    /// Major and minor number of the device.
    pub device: (u32, u32),
    /// The number of the inode.
    pub inode: u64,
    /// Seconds and nanoseconds; zero where the file system does not know it.
    pub born: (i64, u32),
}

/// Where the content of a file is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// It was not kept, because nothing needs it.
    #[default]
    Unread,
    /// In this file of the store.
    Kept(String),
    /// It was not kept, so the change cannot be taken back.
    Lost(Lost),
}

/// Why a content was not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lost {
    /// The file is larger than the settings let be kept.
    FileTooLarge,
    /// The session has kept as much as the settings let it.
    SessionFull,
    /// The journal of the session is as long as the settings let it be, so this and later changes are not recorded.
    RecordFull,
    /// The file cannot be read.
    Unreadable,
    /// Its extended attributes are too long for a record.
    Attributes,
    /// It is neither a file, a directory nor a link.
    Special,
}

impl fmt::Display for Lost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::FileTooLarge => "it is larger than `undo.maxFileMib` of the settings",
            Self::SessionFull => {
                "the session has kept as much as `undo.maxSessionMib` of the settings lets it"
            }
            Self::RecordFull => {
                "the record is as long as `undo.maxSessionMib` of the settings lets it be, so nothing else that this \
                 call changes is recorded"
            }
            Self::Unreadable => "it could not be read",
            Self::Attributes => "its extended attributes are too long",
            Self::Special => "pipes, sockets and devices are not kept",
        })
    }
}

/// What a call has changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changed {
    /// The number of names.
    pub names: usize,
    /// The names that cannot be given back, and why.
    pub lost: Vec<(PathBuf, Lost)>,
}

impl State {
    /// Returns the file, if it is one.
    #[must_use]
    pub fn file(&self) -> Option<&FileState> {
        if let Self::File(file) = self { Some(file) } else { None }
    }

    /// Returns the identity of a file or directory.
    #[must_use]
    pub fn id(&self) -> Option<FileId> {
        match self {
            Self::File(file) => Some(file.id),
            Self::Directory(directory) => Some(directory.id),
            Self::Absent | Self::Link { .. } | Self::Special { .. } => None,
        }
    }

    /// Returns the permissions of a file or directory.
    #[must_use]
    pub fn mode(&self) -> Option<u32> {
        match self {
            Self::File(FileState { mode, .. }) | Self::Directory(DirectoryState { mode, .. }) => Some(*mode),
            Self::Absent | Self::Link { .. } | Self::Special { .. } => None,
        }
    }

    /// Returns true if nothing is there.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        *self == Self::Absent
    }

    /// Returns why it cannot be given back, if it cannot.
    #[must_use]
    pub fn lost(&self) -> Option<Lost> {
        match self {
            Self::File(FileState { content: Content::Lost(why), .. }) => Some(*why),
            Self::Special { .. } => Some(Lost::Special),
            Self::File(_) | Self::Absent | Self::Directory(_) | Self::Link { .. } => None,
        }
    }

    /// Returns true if a name is still as it was `found`. The number of names changes when other names are given back or
    /// taken away; the times of a directory, too.
    pub(crate) fn is_unchanged(&self, found: &Self) -> bool {
        match (self, found) {
            (Self::File(now), Self::File(found)) => {
                (now.id, now.size, now.modified, now.mode)
                    == (found.id, found.size, found.modified, found.mode)
            }
            (Self::Directory(now), Self::Directory(found)) => now.id == found.id,
            (now, found) => now == found,
        }
    }

    /// Returns true if this is what was `left`. Digests are compared where `left` has one.
    #[must_use]
    pub fn is_still(&self, left: &Self) -> bool {
        match (self, left) {
            (Self::File(now), Self::File(left)) => {
                let is_same_content = match (&left.digest, &now.digest) {
                    (Some(left), Some(now)) => left == now,
                    (None, _) => now.modified == left.modified,
                    (Some(_), None) => false,
                };
                is_same_content
                    && (now.id, now.size, now.mode, now.owner) == (left.id, left.size, left.mode, left.owner)
                    && have_same_tags(now.attributes.as_ref(), left.attributes.as_ref())
            }
            (Self::Directory(now), Self::Directory(left)) => {
                now.mode == left.mode && have_same_tags(now.attributes.as_ref(), left.attributes.as_ref())
            }
            (Self::Link { target: now, .. }, Self::Link { target: left, .. }) => now == left,
            (now, left) => now == left,
        }
    }
}

/// Returns true if two files have the same attributes that users set, as far as they are known. Access lists look
/// different in a sandbox, which does not know all users.
fn have_same_tags(one: Option<&Attributes>, other: Option<&Attributes>) -> bool {
    let Some((one, other)) = one.zip(other) else { return true };
    let (one, other) = (tags(one), tags(other));
    one.len() == other.len() && one.into_iter().zip(other).all(|(one, other)| is_same_attribute(one, other))
}

/// Returns true if two attributes are the same, as far as their values are known.
pub(crate) fn is_same_attribute(one: &(String, String), other: &(String, String)) -> bool {
    one.0 == other.0 && (one.1 == other.1 || [&one.1, &other.1].into_iter().any(|value| value == UNREAD))
}

/// Returns the attributes that users set.
fn tags(all: &Attributes) -> Vec<&(String, String)> {
    all.iter().filter(|(name, _)| name.starts_with("user.")).collect()
}

/// The fields of all states.
///
/// serde reads an enum with a tag, here `is`, by storing all fields as generic values first. That takes several times
/// as long as reading this struct, and the user waits for it: the host reads the records of a command at its end.
#[derive(Deserialize)]
struct StateFields {
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
