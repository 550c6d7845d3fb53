//! Tries to reach the network through WASI. It denies if it got a socket, and allows otherwise; a host may also refuse
//! to load it.
//!
//! The imports are written out, because not every C library for WASI has sockets.

wit_bindgen::generate!({
    path: "../../../wit",
    inline: "
        package test:wants-sockets;

        world wants-sockets {
            import wasi:sockets/instance-network@0.2.0;
            import wasi:sockets/tcp-create-socket@0.2.0;
            include portcullis:policy/pure-policy@0.1.0;
        }

        package wasi:sockets@0.2.0 {
            interface network {
                resource network;

                enum error-code {
                    unknown,
                    access-denied,
                    not-supported,
                    invalid-argument,
                    out-of-memory,
                    timeout,
                    concurrency-conflict,
                    not-in-progress,
                    would-block,
                    invalid-state,
                    new-socket-limit,
                    address-not-bindable,
                    address-in-use,
                    remote-unreachable,
                    connection-refused,
                    connection-reset,
                    connection-aborted,
                    datagram-too-large,
                    name-unresolvable,
                    temporary-resolver-failure,
                    permanent-resolver-failure,
                }

                enum ip-address-family {
                    ipv4,
                    ipv6,
                }
            }

            interface instance-network {
                use network.{network};
                instance-network: func() -> network;
            }

            interface tcp {
                resource tcp-socket;
            }

            interface tcp-create-socket {
                use network.{error-code, ip-address-family};
                use tcp.{tcp-socket};
                create-tcp-socket: func(address-family: ip-address-family) -> result<tcp-socket, error-code>;
            }
        }
    ",
    generate_all,
});

use exports::portcullis::policy::{evaluator, lifecycle};
use portcullis::policy::types::{
    ActionKinds, Allowance, Cause, ConfigError, Context, Denial, Evaluation, Request, Severity, Verdict,
};
use wasi::sockets::network::IpAddressFamily;
use wasi::sockets::{instance_network, tcp_create_socket};

struct Component;

impl lifecycle::Guest for Component {
    fn describe() -> lifecycle::Descriptor {
        lifecycle::Descriptor {
            id: "test:wants-sockets".into(),
            version: "0.1.0".into(),
            title: "Looks for the network".into(),
            handles: ActionKinds::all(),
            rules: Vec::new(),
            config_schema: String::new(),
        }
    }

    fn configure(_config: String) -> Result<(), Vec<ConfigError>> {
        Ok(())
    }
}

impl evaluator::Guest for Component {
    fn evaluate(_request: Request, _context: Context) -> Evaluation {
        let _network = instance_network::instance_network();
        let (verdict, rule, reason) = match tcp_create_socket::create_tcp_socket(IpAddressFamily::Ipv4) {
            Ok(_) => (
                Verdict::Deny(Denial { hint: None, overridable: false }),
                "wasi.something",
                "a TCP socket was within reach".to_owned(),
            ),
            Err(code) => (
                Verdict::Allow(Allowance { obligations: Vec::new() }),
                "wasi.nothing",
                format!("no socket was within reach: {code:?}"),
            ),
        };
        let (rule, setting) = (rule.into(), String::new());
        Evaluation { verdict, cause: Cause { rule, reason, setting, severity: Severity::Info }, trace: Vec::new() }
    }
}

export!(Component);
