//! The rules that every engine gets, and the requests.

use serde_json::{Value, json};

/// Rules for reading, changing and connecting. Everything else is denied.
pub struct Rules {
    /// Directory trees that may be read.
    pub read: Vec<String>,
    /// Directory trees that may be changed, and so also read.
    pub write: Vec<String>,
    /// Domains whose subdomains may be reached, at [`PORT`].
    pub domains: Vec<String>,
}

/// The port of all host rules.
pub const PORT: u16 = 443;
/// The workspace.
pub const PROJECT: &str = "/srv/app";
/// Directories that the default policy always allows to read.
pub const PROGRAMS: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix"];
/// The directory that the default policy always allows to change.
pub const TEMP: &str = "/tmp";

/// A request.
#[derive(Debug, Clone)]
pub enum Ask {
    Read(String),
    Change(String),
    Connect(String, u16),
}

impl Rules {
    /// Makes rules with the same number of directories to read and to change, and some domains.
    pub fn new(pairs: usize, domains: usize) -> Self {
        let places = |kind: &str| -> Vec<String> {
            let others = (1..pairs).map(|number| format!("/srv/{kind}/{number}"));
            others.chain([PROJECT.to_owned()]).collect()
        };
        let domains = (0..domains).map(|number| format!("example-{number}.com")).collect();
        Self { read: places("read"), write: places("write"), domains }
    }

    /// Returns the rules as a configuration of the default policy.
    pub fn configuration(&self) -> Value {
        let trees = |tops: &[String]| -> Value { tops.iter().map(|top| json!({ "tree": top })).collect() };
        let domains: Vec<_> = self.domains.iter().map(|name| format!("*.{name}:{PORT}")).collect();
        json!({ "allowRead": trees(&self.read), "allowWrite": trees(&self.write), "allowedDomains": domains })
    }

    /// Returns every directory that may be read, by any rule.
    pub fn readable(&self) -> impl Iterator<Item = &str> {
        let own = self.read.iter().map(String::as_str);
        own.chain(self.writable()).chain(PROGRAMS)
    }

    /// Returns every directory that may be changed.
    pub fn writable(&self) -> impl Iterator<Item = &str> {
        self.write.iter().map(String::as_str).chain([TEMP])
    }

    /// Returns the rules for engines that take data: prefixes of paths and suffixes of names.
    pub fn data(&self) -> Value {
        let below = |top: &str| format!("{top}/");
        let domains: Vec<_> =
            self.domains.iter().map(|name| json!({ "below": format!(".{name}"), "port": PORT })).collect();
        json!({
            "read": self.readable().map(below).collect::<Vec<_>>(),
            "write": self.writable().map(below).collect::<Vec<_>>(),
            "domains": domains,
        })
    }

    /// Returns requests that match, nearly match or miss the rules. They are the same at every start.
    pub fn asks(&self, count: usize) -> Vec<Ask> {
        let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
        let elsewhere = ["/etc", "/home/u", "/home/u/.ssh", "/srv", "/var/lib", "/srv/app2"];
        let tops: Vec<&str> = self.readable().chain(elsewhere).collect();
        (0..count).map(|_| self.ask(&tops, &mut dice)).collect()
    }

    fn ask(&self, tops: &[&str], dice: &mut Dice) -> Ask {
        if dice.below(5) == 0 && !self.domains.is_empty() {
            let name = &self.domains[dice.below(self.domains.len())];
            let host = match dice.below(6) {
                0 => name.clone(),
                1 => format!("not{name}"),
                2 => format!("{name}.evil.test"),
                3 => format!("a.b.{name}"),
                _ => format!("api.{name}"),
            };
            return Ask::Connect(host, if dice.below(5) == 0 { 22 } else { PORT });
        }
        let top = tops[dice.below(tops.len())];
        let path = match dice.below(8) {
            0 => top.to_owned(),
            // Another name with the same prefix.
            1 => format!("{top}0/file"),
            2 => top.rsplit_once('/').map(|(parent, _)| format!("{parent}/x")).unwrap_or_default(),
            3 => format!("{top}/{}", "deep/".repeat(12) + "down.rs"),
            4 => format!("{top}/ü b*?[x]"),
            _ => format!("{top}/src/main.rs"),
        };
        if dice.below(2) == 0 { Ask::Read(path) } else { Ask::Change(path) }
    }
}

/// A pseudo-random number generator (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).expect("less than the limit")
    }
}
