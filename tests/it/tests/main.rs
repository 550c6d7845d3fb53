//! The one integration test binary.

#[macro_use]
mod matrix;

mod against_pi;
mod asked_links;
mod attacks;
mod beside_others;
mod cli;
mod contained;
mod deciding_files;
mod differential;
mod escalation;
mod extension;
mod hard_links;
mod harness;
mod held_files;
mod layered;
mod leaving;
mod left_behind;
mod links;
mod machine;
mod many_calls;
mod network;
mod no_host;
mod odd_paths;
mod other_tools;
mod own_git;
mod pi_print;
mod pi_rpc;
mod pi_settings;
mod pi_terminal;
mod policies;
mod prompt;
mod protocol;
mod records;
mod reservations;
mod screens;
mod searches;
mod second_terminal;
mod serve;
mod settings_verbs;
mod share;
mod shown_and_hidden;
mod sub_agents;
mod verbs;
mod without_namespaces;
