//! The rules that every engine is given, and the requests that they answer.

use serde_json::{Value, json};

/// What may be read, what may be changed, and where commands may connect; everything else is not allowed.
pub struct Rules {
    /// Directories that may be read, with all below them.
    pub read: Vec<String>,
    /// Directories that may be changed, and so also read.
    pub write: Vec<String>,
    /// Names below which every host may be reached, at [`PORT`].
    pub domains: Vec<String>,
}

/// The port of all rules on hosts.
pub const PORT: u16 = 443;
/// Where the agent was started.
pub const PROJECT: &str = "/srv/app";
/// What the default policy lets be read whatever the settings say.
pub const PROGRAMS: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix"];
/// What it lets be changed.
pub const TEMP: &str = "/tmp";

/// What an engine is asked.
#[derive(Debug, Clone)]
pub enum Ask {
    Read(String),
    Change(String),
    Connect(String, u16),
}

impl Rules {
    /// As many directories to read as to change, and some domains.
    pub fn new(pairs: usize, domains: usize) -> Self {
        let places = |kind: &str| -> Vec<String> {
            let others = (1..pairs).map(|number| format!("/srv/{kind}/{number}"));
            others.chain([PROJECT.to_owned()]).collect()
        };
        let domains = (0..domains).map(|number| format!("example-{number}.com")).collect();
        Self { read: places("read"), write: places("write"), domains }
    }

    /// As the default policy is configured.
    pub fn configuration(&self) -> Value {
        let trees = |tops: &[String]| -> Value { tops.iter().map(|top| json!({ "tree": top })).collect() };
        let domains: Vec<_> = self.domains.iter().map(|name| format!("*.{name}:{PORT}")).collect();
        json!({ "allowRead": trees(&self.read), "allowWrite": trees(&self.write), "allowedDomains": domains })
    }

    /// Every directory that may be read, by whatever rule.
    pub fn readable(&self) -> impl Iterator<Item = &str> {
        let own = self.read.iter().map(String::as_str);
        own.chain(self.writable()).chain(PROGRAMS)
    }

    /// Every directory that may be changed.
    pub fn writable(&self) -> impl Iterator<Item = &str> {
        self.write.iter().map(String::as_str).chain([TEMP])
    }

    /// The same for engines that are given data: ends of paths and names.
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

    /// Requests in, beside and around what the rules name; the same at every start.
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
            // Begins alike and is another name.
            1 => format!("{top}0/file"),
            2 => top.rsplit_once('/').map(|(parent, _)| format!("{parent}/x")).unwrap_or_default(),
            3 => format!("{top}/{}", "deep/".repeat(12) + "down.rs"),
            4 => format!("{top}/ü b*?[x]"),
            _ => format!("{top}/src/main.rs"),
        };
        if dice.below(2) == 0 { Ask::Read(path) } else { Ask::Change(path) }
    }
}

/// Numbers that look like chance (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).expect("less than the limit")
    }
}
