//! What the broker and the host say to each other about calls that wait.

use std::path::PathBuf;

use super::{Garbled, Reader, Writer};
use crate::Attempt;

/// A call waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Names the call.
    pub(crate) id: u64,
    /// The number of its command.
    pub(crate) command: u64,
    pub(crate) attempt: Attempt,
    /// As commands see it.
    pub(crate) path: PathBuf,
    /// The rule on names, empty for the session's own rules.
    pub(crate) rule: String,
    /// What its content does, where that decides; empty elsewhere.
    pub(crate) reason: String,
    /// Flags and mode of open(2) for a file that only the host can open.
    pub(crate) outside: Option<(u32, u32)>,
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) id: u64,
    pub(crate) ending: Ending,
}

/// How it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Refused,
    /// The broker carries it out.
    GoesOn,
    /// Comes with the file.
    File,
    /// The host could not open the file.
    Failed(i32),
}

impl Asked {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.long(self.id);
        writer.long(self.command);
        writer.number(match self.attempt {
            Attempt::Write => 0,
            Attempt::MakeDirectory => 1,
            Attempt::Remove => 2,
            Attempt::Read => 3,
        });
        writer.string(self.path.as_os_str());
        writer.string(self.rule.as_ref());
        writer.string(self.reason.as_ref());
        writer.number(u32::from(self.outside.is_some()));
        let (flags, mode) = self.outside.unwrap_or_default();
        writer.number(flags);
        writer.number(mode);
        writer.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Garbled> {
        let mut reader = Reader::new(bytes);
        let (id, command) = (reader.long()?, reader.long()?);
        let attempt = match reader.number()? {
            0 => Attempt::Write,
            1 => Attempt::MakeDirectory,
            2 => Attempt::Remove,
            3 => Attempt::Read,
            _ => return Err(Garbled),
        };
        let path = PathBuf::from(reader.string()?);
        let rule = reader.string()?.into_string().map_err(|_not_text| Garbled)?;
        let reason = reader.string()?.into_string().map_err(|_not_text| Garbled)?;
        let is_outside = reader.number()? == 1;
        let (flags, mode) = (reader.number()?, reader.number()?);
        let outside = is_outside.then_some((flags, mode));
        reader.end(Self { id, command, attempt, path, rule, reason, outside })
    }
}

impl Answered {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.long(self.id);
        let (kind, errno) = match self.ending {
            Ending::Refused => (0, 0),
            Ending::GoesOn => (1, 0),
            Ending::File => (2, 0),
            Ending::Failed(errno) => (3, errno),
        };
        writer.number(kind);
        writer.signed(errno);
        writer.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Garbled> {
        let mut reader = Reader::new(bytes);
        let (id, kind, errno) = (reader.long()?, reader.number()?, reader.signed()?);
        let ending = match kind {
            0 => Ending::Refused,
            1 => Ending::GoesOn,
            2 => Ending::File,
            3 => Ending::Failed(errno),
            _ => return Err(Garbled),
        };
        reader.end(Self { id, ending })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_answers_survive_the_journey() {
        for (attempt, outside) in [
            (Attempt::Write, Some((0o101, 0o644))),
            (Attempt::MakeDirectory, None),
            (Attempt::Remove, Some((0, 0))),
            (Attempt::Read, None),
        ] {
            let (path, rule) = ("/a".into(), "host.tool-files".to_owned());
            let reason = "line 1".to_owned();
            let asked = Asked { id: u64::MAX, command: 7, attempt, path, rule, reason, outside };
            assert_eq!(Asked::decode(&asked.encode()).expect("decodes"), asked);
            assert!(Asked::decode(&asked.encode()[1..]).is_err());
        }
        for ending in [Ending::Refused, Ending::GoesOn, Ending::File, Ending::Failed(13)] {
            let answered = Answered { id: 1, ending };
            assert_eq!(Answered::decode(&answered.encode()).expect("decodes"), answered);
        }
    }
}
