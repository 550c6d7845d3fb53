//! One module per subcommand.

pub(crate) mod allow;
pub(crate) mod asks;
pub(crate) mod audit;
pub(crate) mod check;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod credentials;
pub(crate) mod doctor;
pub(crate) mod exec_client;
pub(crate) mod explain;
pub(crate) mod grants;
pub(crate) mod home;
pub(crate) mod manual;
pub(crate) mod migrate;
pub(crate) mod pi;
pub(crate) mod pi_extension;
pub(crate) mod policy;
pub(crate) mod ports;
pub(crate) mod presets;
pub(crate) mod run;
pub(crate) mod status;
pub(crate) mod stderr_tee;
pub(crate) mod sweep;
pub(crate) mod take_over;
pub(crate) mod version;
