//! Combines the answers of several policies into one.

use crate::verdict::Effect;

/// How answers are combined; see `docs/configuration.md`, key `combine`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Combine {
    /// The strictest answer counts.
    #[default]
    Strictest,
    /// The first answer that is not an abstention counts.
    First,
    /// An expression over policy names.
    Expression(Expression),
}

/// An expression over policy names: `&` gives the stricter answer, `|` the milder one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    /// The answer of the policy with this name.
    Name(String),
    /// The stricter of two.
    And(Box<Expression>, Box<Expression>),
    /// The milder of two.
    Or(Box<Expression>, Box<Expression>),
}

/// The answer of one policy, for combining.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyVote {
    /// No opinion.
    Abstain,
    /// An opinion.
    Effect(Effect),
    /// The policy failed; the result is then a denial, whatever the others say.
    Failed,
}

/// The result of combining, with the index of the member whose answer counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// No member had an opinion.
    NoOpinion,
    /// This member's answer counts.
    Winner(usize),
    /// This member failed.
    Failed(usize),
}

impl Combine {
    /// Parses the settings value: `strictest`, `first` or an expression over `names`.
    ///
    /// # Errors
    /// If the text is malformed or names a policy that is not in `names`.
    pub fn parse(text: &str, names: &[&str]) -> Result<Self, CombineError> {
        match text {
            "strictest" => Ok(Self::Strictest),
            "first" => Ok(Self::First),
            _ => {
                let expression = Expression::parse(text)?;
                expression.check(names)?;
                Ok(Self::Expression(expression))
            }
        }
    }

    /// Combines the answers of policies, given as `(name, answer)` in order.
    #[must_use]
    pub fn combine(&self, answers: &[(&str, PolicyVote)]) -> Outcome {
        if let Some(failed) = answers.iter().position(|(_, answer)| *answer == PolicyVote::Failed) {
            return Outcome::Failed(failed);
        }
        let effects = answers.iter().enumerate().filter_map(|(index, (_, answer))| match answer {
            PolicyVote::Effect(effect) => Some((index, *effect)),
            PolicyVote::Abstain | PolicyVote::Failed => None,
        });
        let winner = match self {
            Self::Strictest => effects.fold(None, |best, next| stricter(best, Some(next))),
            Self::First => effects.into_iter().next(),
            Self::Expression(expression) => expression.evaluate(answers),
        };
        winner.map_or(Outcome::NoOpinion, |(index, _)| Outcome::Winner(index))
    }

    /// Returns the members whose obligations the host must meet if the action is carried out: under `strictest` all
    /// that have an opinion, under `first` the first one, and in an expression both sides of `&` and the milder side of
    /// `|`.
    #[must_use]
    pub fn supporters(&self, answers: &[(&str, PolicyVote)]) -> Vec<usize> {
        let opinions = answers.iter().enumerate().filter_map(|(index, (_, answer))| match answer {
            PolicyVote::Effect(_) => Some(index),
            PolicyVote::Abstain | PolicyVote::Failed => None,
        });
        let mut supporters: Vec<usize> = match self {
            Self::Strictest => opinions.collect(),
            Self::First => opinions.take(1).collect(),
            Self::Expression(expression) => expression.supporters(answers),
        };
        supporters.sort_unstable();
        supporters.dedup();
        supporters
    }
}

type Ranked = Option<(usize, Effect)>;

/// Returns the stricter of two; the earlier one wins a tie, so that the answer names the first policy that gave it.
fn stricter(one: Ranked, two: Ranked) -> Ranked {
    match (one, two) {
        (Some(one), Some(two)) => Some(if two.1 > one.1 { two } else { one }),
        (one, two) => one.or(two),
    }
}

fn milder(one: Ranked, two: Ranked) -> Ranked {
    match (one, two) {
        (Some(one), Some(two)) => Some(if two.1 < one.1 { two } else { one }),
        (one, two) => one.or(two),
    }
}

impl Expression {
    /// Deepest nesting of parentheses.
    const DEPTH_MAX: usize = 32;

    fn parse(text: &str) -> Result<Self, CombineError> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let expression = parser.or()?;
        match parser.peek() {
            None => Ok(expression),
            Some(_) => Err(parser.error("a name, `&` or `|`")),
        }
    }

    fn check(&self, names: &[&str]) -> Result<(), CombineError> {
        match self {
            Self::Name(name) if names.contains(&name.as_str()) => Ok(()),
            Self::Name(name) => Err(CombineError::UnknownName { name: name.clone() }),
            Self::And(one, two) | Self::Or(one, two) => one.check(names).and_then(|()| two.check(names)),
        }
    }

    fn evaluate(&self, answers: &[(&str, PolicyVote)]) -> Ranked {
        match self {
            Self::Name(name) => answers.iter().enumerate().find(|(_, (known, _))| known == name).and_then(
                |(index, (_, answer))| match answer {
                    PolicyVote::Effect(effect) => Some((index, *effect)),
                    PolicyVote::Abstain | PolicyVote::Failed => None,
                },
            ),
            Self::And(one, two) => stricter(one.evaluate(answers), two.evaluate(answers)),
            Self::Or(one, two) => milder(one.evaluate(answers), two.evaluate(answers)),
        }
    }

    fn supporters(&self, answers: &[(&str, PolicyVote)]) -> Vec<usize> {
        match self {
            Self::Name(_) => self.evaluate(answers).map(|(index, _)| index).into_iter().collect(),
            Self::And(one, two) => [one.supporters(answers), two.supporters(answers)].concat(),
            Self::Or(one, two) => {
                let milder = milder(one.evaluate(answers), two.evaluate(answers));
                if milder == one.evaluate(answers) {
                    one.supporters(answers)
                } else {
                    two.supporters(answers)
                }
            }
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn or(&mut self) -> Result<Expression, CombineError> {
        let mut left = self.and()?;
        while self.take('|') {
            left = Expression::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expression, CombineError> {
        let mut left = self.atom()?;
        while self.take('&') {
            left = Expression::And(Box::new(left), Box::new(self.atom()?));
        }
        Ok(left)
    }

    fn atom(&mut self) -> Result<Expression, CombineError> {
        if self.take('(') {
            self.depth += 1;
            if self.depth > Expression::DEPTH_MAX {
                return Err(self.error("fewer nested parentheses"));
            }
            let inner = self.or()?;
            self.depth -= 1;
            return if self.take(')') { Ok(inner) } else { Err(self.error("`)`")) };
        }
        let name: String =
            self.rest().chars().take_while(|character| !"&|() \t\n".contains(*character)).collect();
        if name.is_empty() {
            return Err(self.error("the name of a policy"));
        }
        self.at += name.len();
        Ok(Expression::Name(name))
    }

    fn rest(&mut self) -> &str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn peek(&mut self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn error(&self, wanted: &'static str) -> CombineError {
        CombineError::Syntax { at: self.at + 1, wanted }
    }
}

/// Why an expression was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum CombineError {
    /// It is malformed.
    #[error("at character {at}: expected {wanted}")]
    Syntax { at: usize, wanted: &'static str },
    /// It names a policy that is not configured.
    #[error("`{name}` is not the name of a policy in `policies`")]
    UnknownName { name: String },
}

#[cfg(test)]
mod tests;
