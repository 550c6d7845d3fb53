//! The settings file: schema, discovery, validation.
mod check;
mod decode;
mod discover;
mod disk;
mod error;
mod fields;
mod json;
mod pattern;
mod places;
mod protect;
mod region;
mod resolve;
mod rule;
mod schema;
mod settings;
mod tighten;

pub use check::KeptField;
pub use discover::{Found, Source, discover};
pub use disk::{Disk, LARGEST_FILE, RealDisk, Seen};
pub use error::{ConfigError, Problem};
pub use fields::FIELDS;
pub use json::Position;
pub use places::Places;
pub use protect::{Anchor, Kind, PROTECTIONS, Protection};
pub use resolve::{Resolved, ResolvedPolicy, Warning, resolve};
pub use rule::{ConnectionRule, Rule};
pub use schema::{Field, Presence, Shape, Status, field};
pub use settings::{
    Ask, BUILT_IN, Credentials, Entry, Environment, Filesystem, Hold, Network, Origin, PathEntry,
    PolicyEntry, PolicyMode, PolicySource, Settings,
};
pub use tighten::{Layer, TIGHTENING_FIELDS, Tightening};
