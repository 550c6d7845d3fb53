//! How records are written for collectors.

mod journald;
mod machine;
mod ocsf;
mod otlp;
mod syslog;

use serde::Deserialize;

use crate::address::Address;
use crate::answer::Accepted;
use crate::event::Event;

/// How records are written for a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Logs of OpenTelemetry, as JSON over HTTP.
    Otlp,
    /// Events of the Open Cybersecurity Schema Framework, as a JSON array over HTTP.
    Ocsf,
    /// RFC 5424, with JSON as the message.
    Syslog,
    /// The native protocol of systemd's journal.
    Journald,
}

impl Format {
    /// Returns its name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Otlp => "OTLP",
            Self::Ocsf => "OCSF",
            Self::Syslog => "syslog",
            Self::Journald => "journald",
        }
    }

    /// Returns true if it can be sent to an address.
    pub(crate) const fn goes_to(self, address: &Address) -> bool {
        match self {
            Self::Otlp | Self::Ocsf => matches!(address, Address::Http(_)),
            Self::Syslog => !matches!(address, Address::Http(_)),
            Self::Journald => matches!(address, Address::Unix(_)),
        }
    }

    /// Returns the addresses that it can be sent to, for people.
    pub(crate) const fn addresses(self) -> &'static str {
        match self {
            Self::Otlp | Self::Ocsf => "`https://HOST/PATH`, on this machine also `http://`",
            Self::Syslog => "`tls://HOST:PORT` or `unix:///PATH`, on this machine also `tcp://`",
            Self::Journald => "`unix:///PATH`",
        }
    }

    /// Writes a batch as the body of a request.
    pub(crate) fn body(self, events: &[Event]) -> Vec<u8> {
        let value = match self {
            Self::Otlp => otlp::batch(events),
            Self::Ocsf | Self::Syslog | Self::Journald => ocsf::batch(events),
        };
        value.to_string().into_bytes()
    }

    /// Writes a batch for a stream: each message after its length (RFC 6587, section 3.4.1).
    pub(crate) fn frames(self, events: &[Event]) -> Vec<u8> {
        let mut frames = Vec::new();
        for message in self.messages(events) {
            frames.extend_from_slice(format!("{} ", message.len()).as_bytes());
            frames.extend_from_slice(&message);
        }
        frames
    }

    /// Writes a batch as messages.
    pub(crate) fn messages(self, events: &[Event]) -> Vec<Vec<u8>> {
        let write = match self {
            Self::Journald => journald::message,
            Self::Otlp | Self::Ocsf | Self::Syslog => syslog::message,
        };
        events.iter().map(write).collect()
    }

    /// Reads the answer to an accepted batch.
    pub(crate) fn accepted(self, said: &str) -> Accepted {
        match self {
            Self::Otlp => otlp::accepted(said),
            Self::Ocsf | Self::Syslog | Self::Journald => Accepted::default(),
        }
    }
}

#[cfg(test)]
mod tests;
