//! The session's own network: a loopback device, and one way out that ends at the host.
//!
//! Every address is local to this network, so every connection of a program is accepted inside it: by the listeners
//! made below, whose descriptors go to the host. No route leads to another network.

mod netlink;
mod redirect;
mod route;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use portcullis_sandbox::Stage;
use portcullis_sandbox::network::{OWN, OWN_6};
use rustix::io::Errno;
use rustix::net::netlink::SOCK_DIAG;

use super::failure::{During, Failure};
use redirect::Ports;

/// The listeners for the host, in the order in which they are sent.
pub(crate) struct Gate {
    proxy: OwnedFd,
    /// For queries about the owner of a connection; `None` if the kernel has no sock_diag.
    diagnosis: Option<OwnedFd>,
    v4: Ends,
    /// `None` if the kernel has no IPv6.
    v6: Option<Ends>,
}

/// The listeners of one address family.
struct Ends {
    relay: TcpListener,
    dns: UdpSocket,
    dns_stream: TcpListener,
}

impl Gate {
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let ends = std::iter::once(&self.v4).chain(&self.v6);
        let ends = ends.flat_map(|ends| [ends.relay.as_fd(), ends.dns.as_fd(), ends.dns_stream.as_fd()]);
        let diagnosis = self.diagnosis.as_ref().map(AsFd::as_fd);
        std::iter::once(self.proxy.as_fd()).chain(diagnosis).chain(ends).collect()
    }
}

/// Brings the loopback device up.
pub(crate) fn enforce() -> Result<(), Failure> {
    route::switch_loopback_on().during(Stage::Loopback)
}

/// Creates the listeners and the redirection; `host_ports` are loopback ports that lead to this machine.
pub(crate) fn open_gate(host_ports: &[u16]) -> Result<Gate, Failure> {
    route::add_address(OWN.into()).during(Stage::Address)?;
    route::add_local_default(route::Family::V4).during(Stage::Address)?;
    let has_v6 = with_v6().during(Stage::Address)?;
    let v4 = Ends::make(Ipv4Addr::LOCALHOST.into()).during(Stage::Listeners)?;
    let v6 = has_v6.then(|| Ends::make(Ipv6Addr::LOCALHOST.into())).transpose().during(Stage::Listeners)?;
    let proxy = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).during(Stage::Listeners)?;
    let ports = v4.ports().during(Stage::Listeners)?;
    let ports_6 = v6.as_ref().map(Ends::ports).transpose().during(Stage::Listeners)?;
    redirect::enforce(ports, ports_6, host_ports).during(Stage::Redirect)?;
    Ok(Gate { proxy: proxy.into(), diagnosis: netlink::socket(Some(SOCK_DIAG)).ok(), v4, v6 })
}

impl Ends {
    fn make(address: IpAddr) -> io::Result<Self> {
        let dns = UdpSocket::bind((address, 0))?;
        Ok(Self {
            relay: TcpListener::bind((address, 0))?,
            dns_stream: TcpListener::bind(dns.local_addr()?)?,
            dns,
        })
    }

    fn ports(&self) -> io::Result<Ports> {
        Ok(Ports { relay: self.relay.local_addr()?.port(), dns: self.dns.local_addr()?.port() })
    }
}

/// Adds the IPv6 address and route, and returns whether there is IPv6; a kernel without it is no error.
fn with_v6() -> rustix::io::Result<bool> {
    match route::add_address(OWN_6.into()) {
        Ok(()) => route::add_local_default(route::Family::V6).map(|()| true),
        Err(Errno::AFNOSUPPORT | Errno::OPNOTSUPP | Errno::ACCESS | Errno::NODEV) => Ok(false),
        Err(error) => Err(error),
    }
}
