//! The host functions that every policy may call: its log, and pure functions.

use wasmtime::component::{HasSelf, Linker};

use super::bindings::portcullis::policy::{
    commands, facts, files, grants, log, net_tools, network, path_tools, requests, tools, verdicts,
};
use crate::host_tools::{self, AddressClass};
use crate::state::{HostState, LogLevel};

/// Adds the functions to a linker.
pub(crate) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    facts::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    files::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    commands::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    network::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    tools::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    grants::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    requests::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    verdicts::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    log::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    path_tools::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    net_tools::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
}

impl facts::Host for HostState {}
impl files::Host for HostState {}
impl commands::Host for HostState {}
impl network::Host for HostState {}
impl tools::Host for HostState {}
impl grants::Host for HostState {}
impl requests::Host for HostState {}
impl verdicts::Host for HostState {}

impl log::Host for HostState {
    fn log(&mut self, level: log::Level, message: String) {
        let level = match level {
            log::Level::Trace => LogLevel::Trace,
            log::Level::Debug => LogLevel::Debug,
            log::Level::Info => LogLevel::Info,
            log::Level::Warn => LogLevel::Warn,
            log::Level::Error => LogLevel::Error,
        };
        self.log.add(level, &message);
    }
}

impl path_tools::Host for HostState {
    fn glob_match(&mut self, glob: String, path: String) -> Result<bool, String> {
        host_tools::glob_match(&glob, &path)
    }

    fn normalize(&mut self, path: String, base: String) -> String {
        host_tools::normalize(path, &base)
    }

    fn is_within(&mut self, path: String, directory: String) -> bool {
        host_tools::is_within(&path, &directory)
    }
}

impl net_tools::Host for HostState {
    fn host_match(&mut self, pattern: String, host: String) -> Result<bool, String> {
        host_tools::host_match(&pattern, &host)
    }

    fn cidr_contains(&mut self, cidr: String, address: String) -> Result<bool, String> {
        host_tools::cidr_contains(&cidr, &address)
    }

    fn classify(&mut self, address: String) -> Result<network::AddressClass, String> {
        host_tools::address_class(&address).map(|class| match class {
            AddressClass::Loopback => network::AddressClass::Loopback,
            AddressClass::Private => network::AddressClass::Private,
            AddressClass::LinkLocal => network::AddressClass::LinkLocal,
            AddressClass::Metadata => network::AddressClass::Metadata,
            AddressClass::Multicast => network::AddressClass::Multicast,
            AddressClass::Global => network::AddressClass::Global,
        })
    }
}
