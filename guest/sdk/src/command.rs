//! Queries on the host's analysis of a command.

use crate::{CommandExecution, ParsedScript, ScriptFeatures, SimpleCommand};

impl ParsedScript {
    /// Returns true if some command of the script certainly begins with these words. The first one is the name of a
    /// program, with or without its directory.
    pub fn runs(&self, words: &[&str]) -> bool {
        self.commands.iter().any(|command| command.begins_with(words))
    }

    /// Returns true if the script may do more than its listed commands: it runs something unreadable, or redefines
    /// names of programs.
    pub fn hides(&self) -> bool {
        self.features.intersects(ScriptFeatures::DYNAMIC | ScriptFeatures::REDEFINITION)
    }
}

impl SimpleCommand {
    /// Returns the program's name without its directory; `None` if it is uncertain.
    pub fn name(&self) -> Option<&str> {
        let program = self.argv.first().filter(|word| word.literal)?;
        program.value.rsplit('/').next()
    }

    /// Returns true if the command certainly begins with these words.
    pub fn begins_with(&self, words: &[&str]) -> bool {
        let Some((program, rest)) = words.split_first() else { return false };
        let mut own = self.argv.iter().skip(1);
        self.name() == Some(program)
            && rest.iter().all(|word| own.next().is_some_and(|own| own.literal && own.value == *word))
    }

    /// Returns the words after the program; `None` for uncertain ones.
    pub fn arguments(&self) -> impl Iterator<Item = Option<&str>> {
        self.argv.iter().skip(1).map(|word| word.literal.then_some(word.value.as_str()))
    }
}

impl CommandExecution {
    /// Returns true if a word of the script could name a program, however the script is written: for scripts that could
    /// not be analysed.
    pub fn mentions(&self, name: &str) -> bool {
        let plain: String = self.script.chars().filter(|character| !"'\"\\\n".contains(*character)).collect();
        plain.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Action, testing};

    #[test]
    fn words_are_compared_one_by_one() {
        let context = testing::context("/srv");
        let request = testing::command(&context, "/usr/bin/git push --force origin");
        let Action::Command(command) = &request.action else { panic!("{request:?}") };
        let script = command.parsed.as_ref().unwrap();
        assert!(script.runs(&["git"]) && script.runs(&["git", "push", "--force"]));
        assert!(!script.runs(&["git", "pull"]) && !script.runs(&["gi"]) && !script.runs(&[]));
        assert!(!script.runs(&["git", "push", "--force", "origin", "main"]));
        assert!(!script.hides() && command.mentions("git"));
    }
}
