//! The settings of one brokered connection, and the content that it carries.

use std::sync::Arc;

use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Bytes;
use portcullis_credential_broker::{Broker, BrokeredHost};

use super::broken::Broken;

/// The body of a request or an answer.
pub(super) type Content = UnsyncBoxBody<Bytes, Broken>;

/// A brokered host as the settings have it, with their broker.
pub(crate) struct Declared {
    pub(crate) broker: Arc<Broker>,
    pub(crate) host: Arc<BrokeredHost>,
}
