//! The vocabulary of decisions: requests, verdicts, rules, the policy chain and permits.
