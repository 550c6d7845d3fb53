//! The host functions that every policy may call: its log, and pure functions.

use wasmtime::component::{HasSelf, Linker};

use super::bindings::portcullis::policy::{logging, net_tools, path_tools, types};
use crate::host_tools::{self, AddressClass};
use crate::state::{HostState, LogLevel};

/// Adds the functions to a linker.
pub(crate) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    types::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    logging::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    path_tools::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    net_tools::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
}

impl types::Host for HostState {}

impl logging::Host for HostState {
    fn log(&mut self, level: logging::Level, message: String) {
        let level = match level {
            logging::Level::Trace => LogLevel::Trace,
            logging::Level::Debug => LogLevel::Debug,
            logging::Level::Info => LogLevel::Info,
            logging::Level::Warn => LogLevel::Warn,
            logging::Level::Error => LogLevel::Error,
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

    fn address_class(&mut self, address: String) -> Result<String, String> {
        host_tools::address_class(&address).map(|class| {
            let name = match class {
                AddressClass::Loopback => "loopback",
                AddressClass::Private => "private",
                AddressClass::LinkLocal => "link-local",
                AddressClass::Metadata => "metadata",
                AddressClass::Multicast => "multicast",
                AddressClass::Global => "global",
            };
            name.to_owned()
        })
    }
}
