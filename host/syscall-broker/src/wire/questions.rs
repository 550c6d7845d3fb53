//! The messages between the broker and the host about waiting calls.

use std::ffi::OsString;
use std::path::PathBuf;

use portcullis_sandbox::{CallDetails, NameAccess};

use super::codec::{DecodeError, Reader, Writer};

/// A message of the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrokerMessage {
    /// A call waits.
    Asked(Asked),
    /// A call was refused.
    Refused(Refused),
}

/// A rule refused a call without asking the user.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Refused {
    /// The number of its command.
    pub command: u64,
    /// The kind of operation.
    pub attempt: NameAccess,
    /// The path as commands see it.
    pub path: PathBuf,
    /// The rule over names; empty for the session's own rules.
    pub rule: String,
}

/// A call waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Identifies the call.
    pub id: u64,
    /// The number of its command.
    pub command: u64,
    /// The kind of operation.
    pub attempt: NameAccess,
    /// Details of the operation.
    pub deed: CallDetails,
    /// The path as commands see it.
    pub path: PathBuf,
    /// The rule over names; empty for the session's own rules.
    pub rule: String,
    /// The effect of the new content, if the content is the reason for the question; otherwise empty.
    pub reason: String,
    /// The operation that only the host can perform, if there is one.
    pub outside: Option<Outside>,
    /// The directories among the caller's arguments that hold the path, as far as their text tells.
    pub named: Vec<PathBuf>,
}

/// An operation that the host performs in its own view after an approval, at the path of the question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outside {
    /// With the flags and mode of open(2).
    Open {
        /// The flags.
        flags: u32,
        /// The mode of a new file, without the bits of the caller's umask.
        mode: u32,
    },
    /// Cuts or extends a file.
    Truncate {
        /// The new length in bytes.
        length: u64,
    },
    /// Creates a directory.
    MakeDirectory {
        /// Its mode, without the bits of the caller's umask.
        mode: u32,
    },
    /// Creates a symbolic link.
    MakeLink {
        /// The text of the link.
        target: OsString,
    },
    /// Removes a name.
    Remove {
        /// Whether it is the name of a directory.
        is_directory: bool,
    },
    /// Renames `from` to the path.
    Move {
        /// The old path.
        from: PathBuf,
        /// Whether the path existed when the question was asked.
        replaces: bool,
    },
    /// Makes the path a hard link to the file `from`.
    Link {
        /// The path of the file.
        from: PathBuf,
    },
}

/// The host's answer to a waiting call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// The id of the call.
    pub id: u64,
    /// The decision on the call.
    pub resolution: Resolution,
}

/// The continuation of a waiting call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// It fails.
    Refused,
    /// The broker performs the operation.
    GoesOn,
    /// Carries the opened file.
    File,
    /// The host has performed the operation.
    Done,
    /// The host's operation failed with this errno.
    Failed(i32),
}

impl BrokerMessage {
    /// Decodes a message.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let told = match reader.number()? {
            0 => Self::Asked(Asked::read(&mut reader)?),
            1 => Self::Refused(Refused {
                command: reader.long()?,
                attempt: reader.attempt()?,
                path: PathBuf::from(reader.string()?),
                rule: reader.text()?,
            }),
            _ => return Err(DecodeError),
        };
        reader.end(told)
    }
}

impl Refused {
    /// Returns the message in its encoded form.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.number(1);
        writer.long(self.command);
        writer.attempt(self.attempt);
        writer.string(self.path.as_os_str());
        writer.string(self.rule.as_ref());
        writer.finish()
    }
}

impl Asked {
    /// Returns the message in its encoded form.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.number(0);
        writer.long(self.id);
        writer.long(self.command);
        writer.attempt(self.attempt);
        writer.deed(&self.deed);
        writer.string(self.path.as_os_str());
        writer.string(self.rule.as_ref());
        writer.string(self.reason.as_ref());
        writer.outside(self.outside.as_ref());
        writer.count(self.named.len());
        self.named.iter().for_each(|path| writer.string(path.as_os_str()));
        writer.finish()
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            id: reader.long()?,
            command: reader.long()?,
            attempt: reader.attempt()?,
            deed: reader.deed()?,
            path: PathBuf::from(reader.string()?),
            rule: reader.text()?,
            reason: reader.text()?,
            outside: reader.outside()?,
            named: reader.list(|reader| reader.string().map(PathBuf::from))?,
        })
    }
}

impl Writer {
    fn attempt(&mut self, attempt: NameAccess) {
        self.number(match attempt {
            NameAccess::Write => 0,
            NameAccess::MakeDirectory => 1,
            NameAccess::Remove => 2,
            NameAccess::Read => 3,
        });
    }

    fn deed(&mut self, deed: &CallDetails) {
        let (kind, other) = match deed {
            CallDetails::Plain => (0, None),
            CallDetails::Symlink(target) => (1, Some(target.as_os_str())),
            CallDetails::LinkOf(name) => (2, Some(name.as_os_str())),
            CallDetails::LinkTo(name) => (3, Some(name.as_os_str())),
            CallDetails::MoveOf(name) => (4, Some(name.as_os_str())),
            CallDetails::MoveTo(name) => (5, Some(name.as_os_str())),
            CallDetails::Special => (6, None),
        };
        self.number(kind);
        if let Some(other) = other {
            self.string(other);
        }
    }

    fn outside(&mut self, outside: Option<&Outside>) {
        match outside {
            None => self.number(0),
            Some(Outside::Open { flags, mode }) => {
                self.number(1);
                self.number(*flags);
                self.number(*mode);
            }
            Some(Outside::Truncate { length }) => {
                self.number(2);
                self.long(*length);
            }
            Some(Outside::MakeDirectory { mode }) => {
                self.number(3);
                self.number(*mode);
            }
            Some(Outside::MakeLink { target }) => {
                self.number(4);
                self.string(target);
            }
            Some(Outside::Remove { is_directory }) => {
                self.number(5);
                self.number(u32::from(*is_directory));
            }
            Some(Outside::Move { from, replaces }) => {
                self.number(6);
                self.string(from.as_os_str());
                self.number(u32::from(*replaces));
            }
            Some(Outside::Link { from }) => {
                self.number(7);
                self.string(from.as_os_str());
            }
        }
    }
}

impl Reader<'_> {
    fn attempt(&mut self) -> Result<NameAccess, DecodeError> {
        Ok(match self.number()? {
            0 => NameAccess::Write,
            1 => NameAccess::MakeDirectory,
            2 => NameAccess::Remove,
            3 => NameAccess::Read,
            _ => return Err(DecodeError),
        })
    }

    fn deed(&mut self) -> Result<CallDetails, DecodeError> {
        Ok(match self.number()? {
            0 => CallDetails::Plain,
            1 => CallDetails::Symlink(self.string()?),
            2 => CallDetails::LinkOf(self.string()?.into()),
            3 => CallDetails::LinkTo(self.string()?.into()),
            4 => CallDetails::MoveOf(self.string()?.into()),
            5 => CallDetails::MoveTo(self.string()?.into()),
            6 => CallDetails::Special,
            _ => return Err(DecodeError),
        })
    }

    fn text(&mut self) -> Result<String, DecodeError> {
        self.string()?.into_string().map_err(|_not_text| DecodeError)
    }

    fn outside(&mut self) -> Result<Option<Outside>, DecodeError> {
        Ok(Some(match self.number()? {
            0 => return Ok(None),
            1 => Outside::Open { flags: self.number()?, mode: self.number()? },
            2 => Outside::Truncate { length: self.long()? },
            3 => Outside::MakeDirectory { mode: self.number()? },
            4 => Outside::MakeLink { target: self.string()? },
            5 => Outside::Remove { is_directory: self.number()? == 1 },
            6 => Outside::Move { from: self.string()?.into(), replaces: self.number()? == 1 },
            7 => Outside::Link { from: self.string()?.into() },
            _ => return Err(DecodeError),
        }))
    }
}

impl Answered {
    /// Returns the message in its encoded form.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.long(self.id);
        let (kind, errno) = match self.resolution {
            Resolution::Refused => (0, 0),
            Resolution::GoesOn => (1, 0),
            Resolution::File => (2, 0),
            Resolution::Failed(errno) => (3, errno),
            Resolution::Done => (4, 0),
        };
        writer.number(kind);
        writer.signed(errno);
        writer.finish()
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let (id, kind, errno) = (reader.long()?, reader.number()?, reader.signed()?);
        let resolution = match kind {
            0 => Resolution::Refused,
            1 => Resolution::GoesOn,
            2 => Resolution::File,
            3 => Resolution::Failed(errno),
            4 => Resolution::Done,
            _ => return Err(DecodeError),
        };
        reader.end(Self { id, resolution })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_answers_survive_the_journey() {
        for (attempt, deed, outside) in [
            (NameAccess::Write, CallDetails::Plain, Some(Outside::Open { flags: 0o101, mode: 0o644 })),
            (NameAccess::Write, CallDetails::Plain, Some(Outside::Truncate { length: 1 << 40 })),
            (NameAccess::MakeDirectory, CallDetails::Plain, None),
            (NameAccess::MakeDirectory, CallDetails::Plain, Some(Outside::MakeDirectory { mode: 0o755 })),
            (
                NameAccess::Write,
                CallDetails::Symlink("../x".into()),
                Some(Outside::MakeLink { target: "../x".into() }),
            ),
            (NameAccess::Remove, CallDetails::Plain, Some(Outside::Remove { is_directory: true })),
            (
                NameAccess::Write,
                CallDetails::MoveOf("/a".into()),
                Some(Outside::Move { from: "/a".into(), replaces: true }),
            ),
            (NameAccess::Write, CallDetails::LinkOf("/a".into()), Some(Outside::Link { from: "/a".into() })),
            (NameAccess::Read, CallDetails::Plain, None),
            (NameAccess::Remove, CallDetails::MoveTo("/b".into()), None),
            (NameAccess::Write, CallDetails::LinkTo("/b".into()), None),
            (NameAccess::Write, CallDetails::Special, None),
        ] {
            let (path, rule) = ("/a".into(), "host.tool-files".to_owned());
            let reason = "line 1".to_owned();
            let named = vec!["/".into(), "/a".into()];
            let asked = Asked { id: u64::MAX, command: 7, attempt, deed, path, rule, reason, outside, named };
            assert!(BrokerMessage::decode(&asked.encode()[1..]).is_err());
            let refused = Refused { command: 7, attempt, path: asked.path.clone(), rule: asked.rule.clone() };
            assert_eq!(
                BrokerMessage::decode(&refused.encode()).expect("decodes"),
                BrokerMessage::Refused(refused)
            );
            assert_eq!(BrokerMessage::decode(&asked.encode()).expect("decodes"), BrokerMessage::Asked(asked));
        }
        for resolution in [
            Resolution::Refused,
            Resolution::GoesOn,
            Resolution::File,
            Resolution::Done,
            Resolution::Failed(13),
        ] {
            let answered = Answered { id: 1, resolution };
            assert_eq!(Answered::decode(&answered.encode()).expect("decodes"), answered);
        }
    }
}
