//! The sandbox of a session's commands.
//!
//! Owns the conversion of settings, rules and grants into a profile of the sandbox, the directories and the network that
//! the sandbox has of its own, the environment and the limits of commands, and the start of a command in it.
//!
//! Must never know: questions, policies, the log. `portcullis-session` decides what a command may do, and starts it here.
//!
//! Platforms: on Linux commands run in its sandbox, elsewhere under a profile.

pub mod closed_names;
pub mod confining;
pub mod env_verdict_cache;
pub mod environment;
pub mod error;
pub mod host_sockets;
pub mod kept_back;
pub mod limits;
pub mod names;
pub mod network;
pub mod new_directories;
pub mod own_directories;
pub mod profile;
pub mod profile_sandbox;
pub mod replaceable_paths;
pub mod repositories;
pub mod requirements;
pub mod running;
pub mod sandbox;
pub mod sandbox_subject;
pub mod stderr_hints;
pub mod system_caches;
pub mod user_links;
