//! The wire protocol between the pi extension and the host.
