//! Where a collector is.

use std::net::IpAddr;
use std::path::PathBuf;

/// The port of syslog over TLS.
const SYSLOG_TLS: u16 = 6514;
/// The port of syslog over TCP.
const SYSLOG_TCP: u16 = 601;

/// Where a collector is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// The URL that gets each batch.
    Http(String),
    /// A stream with TLS.
    Tls {
        /// Its name or address.
        host: String,
        /// Its port.
        port: u16,
    },
    /// A stream without TLS, to this machine.
    Tcp {
        /// Its name or address.
        host: String,
        /// Its port.
        port: u16,
    },
    /// A socket for datagrams.
    Unix(PathBuf),
}

impl Address {
    /// Parses `https://…`, `http://…`, `tls://HOST[:PORT]`, `tcp://HOST[:PORT]` or `unix:///PATH`.
    ///
    /// Without TLS, only this machine can be named: records would travel readable.
    ///
    /// # Errors
    /// With what to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once("://").ok_or_else(|| usage(text))?;
        match scheme {
            "https" | "http" => {
                let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
                if authority.contains('@') {
                    return Err("write credentials under `headers`, not into the address".to_owned());
                }
                let (host, _) = host_and_port(authority, 443)?;
                only_here(scheme == "http", &host, "https")?;
                Ok(Self::Http(text.to_owned()))
            }
            "tls" => host_and_port(rest, SYSLOG_TLS).map(|(host, port)| Self::Tls { host, port }),
            "tcp" => {
                let (host, port) = host_and_port(rest, SYSLOG_TCP)?;
                only_here(true, &host, "tls")?;
                Ok(Self::Tcp { host, port })
            }
            "unix" if rest.starts_with('/') => Ok(Self::Unix(rest.into())),
            _ => Err(usage(text)),
        }
    }
}

fn usage(text: &str) -> String {
    format!(
        "`{}` is no address of a collector; write `https://HOST/PATH`, `tls://HOST:PORT` or `unix:///PATH`",
        text.escape_debug()
    )
}

fn host_and_port(authority: &str, usual: u16) -> Result<(String, u16), String> {
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match authority.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    if host.is_empty() || !host.bytes().all(fits) {
        return Err(format!("`{}` names no host", authority.escape_debug()));
    }
    let port = match port {
        None => usual,
        Some(text) => text
            .parse()
            .ok()
            .filter(|port| *port != 0)
            .ok_or_else(|| format!("`{}` is no port", text.escape_debug()))?,
    };
    Ok((host.to_owned(), port))
}

fn only_here(is_plain: bool, host: &str, secure: &str) -> Result<(), String> {
    let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    if is_plain && !is_here {
        return Err(format!(
            "`{host}` is another machine, and records would travel readable; write `{secure}://`"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed() {
        let tls = |host: &str, port| Ok(Address::Tls { host: host.to_owned(), port });
        assert_eq!(Address::parse("tls://logs.example"), tls("logs.example", 6514));
        assert_eq!(Address::parse("tls://[2001:db8::1]:7000"), tls("2001:db8::1", 7000));
        assert_eq!(
            Address::parse("tcp://127.0.0.1:1514"),
            Ok(Address::Tcp { host: "127.0.0.1".to_owned(), port: 1514 })
        );
        assert_eq!(Address::parse("unix:///dev/log"), Ok(Address::Unix("/dev/log".into())));
        for url in ["https://c.example/v1/logs", "http://localhost:4318/v1/logs", "http://[::1]:4318/v1/logs"]
        {
            assert_eq!(Address::parse(url), Ok(Address::Http(url.to_owned())));
        }
    }

    #[test]
    fn others_are_refused_with_what_to_write() {
        for (text, said) in [
            ("collector.example", "is no address"),
            ("ftp://collector.example", "is no address"),
            ("unix://relative", "is no address"),
            ("tls://", "names no host"),
            ("tls://a b", "names no host"),
            ("tls://host:0", "is no port"),
            ("tls://host:99999", "is no port"),
            ("tcp://collector.example", "write `tls://`"),
            ("http://collector.example/v1/logs", "write `https://`"),
            ("http://127.0.0.1.example/v1/logs", "write `https://`"),
            ("https://user:password@collector.example/", "under `headers`"),
        ] {
            let error = Address::parse(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
