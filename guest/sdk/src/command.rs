//! Asking the host's reading of a command.

use crate::{CommandExecution, ParsedScript, ScriptFeatures, SimpleCommand};

impl ParsedScript {
    /// Whether some command of the script begins with these words, for certain. The
    /// first one is the name of a program, with or without its directory.
    pub fn runs(&self, words: &[&str]) -> bool {
        self.commands.iter().any(|command| command.begins_with(words))
    }

    /// Whether there may be more to the script than its commands: something that
    /// could not be read runs, or names of programs mean something else.
    pub fn hides(&self) -> bool {
        self.features.intersects(ScriptFeatures::DYNAMIC | ScriptFeatures::REDEFINITION)
    }
}

impl SimpleCommand {
    /// Returns the program's name without its directory; none where it is not certain.
    pub fn name(&self) -> Option<&str> {
        let program = self.argv.first().filter(|word| word.literal)?;
        program.value.rsplit('/').next()
    }

    /// Whether the command begins with these words, for certain.
    pub fn begins_with(&self, words: &[&str]) -> bool {
        let Some((program, rest)) = words.split_first() else { return false };
        let mut own = self.argv.iter().skip(1);
        self.name() == Some(program)
            && rest.iter().all(|word| own.next().is_some_and(|own| own.literal && own.value == *word))
    }

    /// Returns the words behind the program; none for those that are not certain.
    pub fn arguments(&self) -> impl Iterator<Item = Option<&str>> {
        self.argv.iter().skip(1).map(|word| word.literal.then_some(word.value.as_str()))
    }
}

impl CommandExecution {
    /// Whether a word of the script could name a program, in whatever way the script
    /// is written: for scripts that have no reading.
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
