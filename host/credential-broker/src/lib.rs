//! Brokered hosts: what requests to them are allowed, and credentials that commands do not have.
//!
//! A command has a [placeholder](Credential::placeholder) in place of a credential. The gate ends the command's TLS
//! connection with a certificate of the session's [`Authority`], has each request checked here, puts the credential in
//! the declared place, and sends the request over a TLS connection of its own. Only connections to the declared hosts
//! are handled like this.
//!
//! This crate decides about requests and changes them and their answers. It has no sockets: `network-gate` carries
//! requests and answers, in HTTP/1.1, in HTTP/2 and over `ssh`.

mod authority;
mod aws;
mod basic;
mod broker;
mod character_sets;
mod git;
mod graphql;
mod host;
mod http2;
mod loaded;
mod masker;
mod own_account;
mod placeholders;
mod push;
mod request;
mod second_path;
mod secret;
mod upstream_tls;
mod well_formed;

pub use authority::Authority;
pub use aws::{AwsKeys, AwsLimits, AwsPlaceholders, Verified};
pub use broker::{Broker, LimitedPlace, OtherPorts};
pub use character_sets::{Opening, is_readable};
pub use git::{GREETING, GitRequest, REQUEST_MAX, Ssh, SshCommand, SshHost};
pub use graphql::{GRAPHQL_MAX, Operations};
pub use host::{BrokeredHost, Credential, Form, RequestLimits};
pub use http2::{Follows, in_first_version};
pub use loaded::{Loaded, SeenSecrets};
pub use masker::Masker;
pub use placeholders::{Finder, Placeholders, new_placeholder};
pub use push::{Known, Push, PushEnd, PushRule};
pub use request::{Accepted, Destination, Use, origin_form};
pub use secret::{Secret, Secrets};
pub use upstream_tls::configuration as upstream_tls;
pub use well_formed::of_this_connection_only;
