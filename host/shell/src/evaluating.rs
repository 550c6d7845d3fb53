//! Text that bash evaluates a second time.
//!
//! Arithmetic takes the value of a variable as an expression, a subscript in an expression runs the commands in it, and
//! some builtins take the name of a variable with a subscript. So text can become a command without any visible
//! substitution: `b='x[$(evil)]'; ((b))`. A script in which this may happen is `dynamic`.

use portcullis_decision::request::Word;

use crate::found::Findings;

/// Variables that change the meaning of program names.
const REDEFINING: [&str; 4] = ["PATH", "FPATH", "BASH_CMDS", "BASH_ALIASES"];
/// Variables that make programs run other code first.
const INJECTING: [&str; 9] = [
    "BASH_ENV",
    "ENV",
    "LD_PRELOAD",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "PROMPT_COMMAND",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
];
/// Operators of `[[` that evaluate their operands.
const EVALUATING: [&str; 8] = ["-v", "-R", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

/// Returns true if an operator of `[[` evaluates its operands.
pub(crate) fn is_evaluating(operator: &str) -> bool {
    EVALUATING.contains(&operator)
}

impl Findings {
    /// Records that a variable may get any text.
    pub(crate) fn give(&mut self, name: &str) {
        self.features.redefinition |= REDEFINING.contains(&name);
        self.features.dynamic |= INJECTING.contains(&name);
        self.variables.given.insert(name.to_owned());
    }

    /// Records an assignment.
    pub(crate) fn assign(&mut self, name: &str, value: &Word) {
        let is_number = value.literal && value.value.bytes().all(|byte| byte.is_ascii_digit());
        let was_given = self.variables.given.contains(name);
        self.give(name);
        if is_number && !was_given {
            self.variables.given.remove(name);
        }
    }

    /// Records that a text is evaluated as an arithmetic expression.
    pub(crate) fn calculate(&mut self, text: &str) {
        let mut rest = text.chars().peekable();
        let is_of_name = |next: &char| next.is_ascii_alphanumeric() || *next == '_';
        while let Some(next) = rest.next() {
            match next {
                '`' => self.features.dynamic = true,
                '$' => {
                    let unknown = |next: &char| "(@*!".contains(*next) || next.is_ascii_digit();
                    self.features.dynamic |= rest.peek().is_some_and(unknown);
                }
                _ if next.is_ascii_digit() => while rest.next_if(is_of_name).is_some() {},
                _ if is_of_name(&next) => {
                    let mut name = String::from(next);
                    while let Some(next) = rest.next_if(is_of_name) {
                        name.push(next);
                    }
                    self.variables.calculated.insert(name);
                }
                _ => {}
            }
        }
    }

    /// Records the expansion of `${...}`; `inside` is the part between the braces.
    pub(crate) fn expand(&mut self, inside: &str) {
        if let Some(indirect) = inside.strip_prefix('!') {
            let lists_names = ["@", "*", "[@]", "[*]"].into_iter().any(|end| indirect.ends_with(end));
            self.features.dynamic |= !lists_names;
            return;
        }
        let counted = inside.strip_prefix('#').filter(|rest| !rest.is_empty()).unwrap_or(inside);
        let end = counted.find(|next: char| !next.is_ascii_alphanumeric() && next != '_');
        let (name, mut rest) = counted.split_at(end.unwrap_or(counted.len()));
        if rest.starts_with('[') {
            let (subscript, behind) = rest.rsplit_once(']').unwrap_or((rest, ""));
            self.subscript_of(subscript.trim_start_matches('['));
            rest = behind;
        }
        let is_slice = |behind: &str| !behind.starts_with(['-', '=', '+', '?']);
        match rest.strip_prefix(':') {
            Some(behind) if is_slice(behind) => self.calculate(behind),
            _ if rest.trim_start_matches(':').starts_with('=') => self.give(name),
            _ => self.features.dynamic |= rest.starts_with('@') && rest.contains('P'),
        }
    }

    fn subscript_of(&mut self, subscript: &str) {
        if !["@", "*"].contains(&subscript) {
            self.calculate(subscript);
        }
    }

    /// Records that a builtin takes this word as the name of a variable, and may assign any text to it.
    fn name_word(&mut self, word: &Word) {
        let (name, subscript) = word.value.split_once('[').unwrap_or((&word.value, ""));
        self.features.dynamic |= !word.literal;
        self.calculate(subscript);
        self.give(name);
    }

    /// Records `NAME=value`, or a name alone.
    ///
    /// It is a word of a builtin that declares variables, or of a program that sets them.
    pub(crate) fn declared(&mut self, word: &Word) {
        let (left, value) = word.value.split_once('=').unwrap_or((&word.value, ""));
        let (name, subscript) = left.split_once('[').unwrap_or((left, ""));
        let name = name.trim_end_matches('+');
        let is_name =
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        self.features.dynamic |= !word.literal && (!is_name || !word.value.contains('='));
        self.calculate(subscript);
        if word.value.contains('=') {
            self.assign(name, &Word { value: value.to_owned(), literal: word.literal });
        }
    }

    /// Records the words of `declare` and similar builtins.
    ///
    /// Values of variables that become integers or references are evaluated.
    pub(crate) fn declaration(&mut self, words: &[Word]) {
        for word in words {
            match word.value.strip_prefix(['-', '+']) {
                Some(options) => self.features.dynamic |= !word.literal || options.contains(['i', 'n']),
                None => self.declared(word),
            }
        }
    }

    /// Records the words of a builtin that evaluates some of them.
    pub(crate) fn builtin(&mut self, name: &str, words: &[Word]) {
        match name {
            "let" => words.iter().for_each(|word| {
                self.features.dynamic |= !word.literal;
                self.calculate(&word.value);
            }),
            "compgen" | "complete" | "bind" | "fc" => {
                self.features.dynamic |=
                    words.iter().any(|word| !word.literal || word.value.starts_with('-'));
            }
            "mapfile" | "readarray" => {
                self.features.dynamic |= words.iter().any(|word| word.value.starts_with("-C"));
                self.names_among(words);
            }
            "read" | "unset" | "getopts" => self.names_among(words),
            "printf" | "wait" | "test" | "[" => self.name_behind_option(words),
            _ => {}
        }
    }

    fn names_among(&mut self, words: &[Word]) {
        words.iter().filter(|word| !word.value.starts_with('-')).for_each(|word| self.name_word(word));
    }

    /// Records the name after `-v` and similar options. A word that may expand to such an option counts as one.
    fn name_behind_option(&mut self, words: &[Word]) {
        const OPTIONS: [&str; 3] = ["-v", "-p", "-R"];
        for (index, word) in words.iter().enumerate() {
            let attached = OPTIONS.iter().find_map(|option| word.value.strip_prefix(option));
            match (attached, words.get(index + 1)) {
                (Some(""), Some(name)) => self.name_word(name),
                (Some(name), _) if !name.is_empty() => {
                    self.name_word(&Word { value: name.to_owned(), literal: word.literal });
                }
                _ => {}
            }
            let may_run = word.value.contains('[') && word.value.contains(['$', '`']);
            self.features.dynamic |= word.literal && may_run;
        }
    }
}
