//! Random rule sets and paths.

use std::path::PathBuf;

use portcullis_decision::pattern::FilePattern;
use portcullis_decision::profile::{FileRights, FileRule};
use portcullis_decision::rules::{OwnHome, OwnPlaces, Tops};
use portcullis_decision::{Base, Effect, Grant, RuleSet};

use crate::kit::{grant, layer, rule};

/// Names with every kind of character that a string or an expression could mistake.
pub(crate) const NAMES: [&str; 20] = [
    "w",
    "home",
    "tmp",
    "a",
    "b",
    "A",
    "x.pem",
    "y.PEM",
    ".env",
    ".npm",
    "go",
    "k",
    "s p",
    "q\"uote",
    "back\\slash",
    "(1)",
    "[z]",
    "n\u{e9}",
    "a+b*",
    "line\nfeed",
];
pub(crate) const TOPS: [&str; 4] = ["w", "home", "tmp", "a"];
/// Numbers that look random, the same in each run: SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub(crate) fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(count).unwrap()).unwrap()
    }

    pub(crate) fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    pub(crate) fn in_ten(&mut self, chance: usize) -> bool {
        self.below(10) < chance
    }

    pub(crate) fn path(&mut self) -> PathBuf {
        let mut path = PathBuf::from("/").join(self.one(&TOPS));
        for _ in 0..self.below(4) {
            path.push(self.one(&NAMES));
        }
        path
    }

    fn paths(&mut self, most: usize) -> Vec<PathBuf> {
        (0..self.below(most + 1)).map(|_| self.path()).collect()
    }

    fn part(&mut self) -> String {
        match self.below(12) {
            0 => "*.pem".to_owned(),
            1 => "?".to_owned(),
            2 => "*".to_owned(),
            3 => "{a,b,k}".to_owned(),
            4 => "[ab]".to_owned(),
            5 => (*self.one(&["[!a]*", "[!^]*"])).to_owned(),
            6 => "*e*".to_owned(),
            _ => escaped(self.one(&NAMES)),
        }
    }

    fn glob(&mut self) -> String {
        let parts: Vec<String> = (0..=self.below(2)).map(|_| self.part()).collect();
        let tail = parts.join("/");
        let glob = match self.below(6) {
            0 | 1 => tail,
            2 => format!("**/{tail}"),
            3 => format!("/{}/**/{tail}", self.one(&TOPS)),
            4 => format!("/{}/*/{tail}", self.one(&TOPS)),
            _ => format!("/{}/{tail}", self.one(&TOPS)),
        };
        if self.in_ten(2) { format!("{glob}/**") } else { glob }
    }

    fn pattern(&mut self) -> FilePattern {
        match self.below(8) {
            0 | 1 => FilePattern::Exact(self.path()),
            2..=4 => FilePattern::Tree(self.path()),
            5 | 6 => FilePattern::glob(&self.glob()).unwrap(),
            _ => {
                let FilePattern::Glob(glob) = FilePattern::glob(&self.part()).unwrap() else {
                    unreachable!()
                };
                FilePattern::Name { below: self.path(), glob }
            }
        }
    }

    fn rights(&mut self) -> FileRights {
        *self.one(&[&FileRights::READ, &FileRights::WRITE, &FileRights::READ_WRITE, &FileRights::ALL])
    }

    fn rule(&mut self) -> FileRule {
        let effect = *self.one(&[&Effect::Allow, &Effect::Allow, &Effect::Ask, &Effect::Deny]);
        let mut rule = rule(effect, self.pattern(), self.rights());
        if self.in_ten(1) {
            "a condition".clone_into(&mut rule.condition);
        }
        rule
    }

    fn base(&mut self) -> Base {
        let temp = if self.in_ten(7) { "/tmp/s".into() } else { self.path() };
        let mut own = OwnPlaces { directories: self.paths(2), home: None };
        let mut closed = self.paths(2);
        if self.in_ten(5) {
            closed.push("/home".into());
            own.home = Some(OwnHome::new("/home".into(), Tops::from_iter(self.paths(2))));
        }
        Base { workspace: self.paths(2), temp, closed, own }
    }

    pub(crate) fn rules(&mut self) -> RuleSet {
        let layers = (0..=self.below(3)).map(|number| {
            let rules = (0..self.below(6)).map(|_| self.rule()).collect();
            layer(&number.to_string(), self.in_ten(4), rules)
        });
        let layers = layers.collect();
        let grants: Vec<Grant> = (0..self.below(3)).map(|_| grant(self.pattern(), self.rights())).collect();
        RuleSet::compile(layers, self.base(), &grants)
    }
}

fn escaped(name: &str) -> String {
    let mut text = String::new();
    for character in name.chars() {
        if "\\*?[]{},!".contains(character) {
            text.push('\\');
        }
        text.push(character);
    }
    text
}
