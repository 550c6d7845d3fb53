//! The tests that a normal run leaves to `--full`.
//!
//! Every test of the program `it` runs as an ordinary user, and with the current pi. Many exist for the user who runs
//! the tests (root in CI) and for pi 0.74 too. A normal run does those where the user or the version matters: what root
//! may do that others may not, and what pi calls and shows.

/// Tests of other programs that only `--full` runs, by a part of their names.
pub(super) const ONLY_IN_FULL: [&str; 1] = ["everyday_work_goes_through_as_the_caller"];

/// Tests of `it` that only `--full` runs, by the beginning of their names: another client for the registry, which takes
/// minutes to compile, a second policy in Python, and the screens of pi 0.74.
const LONG: [&str; 3] = ["share::others", "policies::runs_without_a_user_in_python", "screens::pi_0_74"];

/// Modules of `it` that a normal run does as the user who runs the tests too: they depend on capabilities, owners,
/// mounts, devices, sockets or processes.
const AS_CALLER: [&str; 32] = [
    "attacks",
    "branch_attacks",
    "brokered::memory",
    "brokered::ssh_attacks",
    "brokered::ssh_memory",
    "closed_at_start",
    "closed_names",
    "contained",
    "contained::ends",
    "devices",
    "faults",
    "hard_links",
    "held_files",
    "late_sockets",
    "left_behind",
    "machine",
    "network",
    "network::ports",
    "nix_daemon",
    "places",
    "private_home",
    "private_home_attacks",
    "run_ends",
    "sensitive_files",
    "serve",
    "service_attacks",
    "shared_tmp",
    "tracers",
    "undo",
    "undo_attacks",
    "user_sockets",
    "without_namespaces",
];

/// Modules of `it` that a normal run does with pi 0.74 too: how pi starts, calls tools and ends.
const WITH_PI_0_74: [&str; 2] = ["extension", "pi_print"];

/// Returns true if a normal run does a test of the program `it`.
pub(super) fn is_in_normal_run(test: &str) -> bool {
    if LONG.iter().any(|long| test.starts_with(long)) {
        return false;
    }
    let is_variant = |name: &&str| name.ends_with("caller") || name.ends_with("ordinary");
    let Some(variant) = test.split("::").find(is_variant) else { return true };
    let module = test.split_once(variant).map_or("", |(module, _)| module.trim_end_matches(':'));
    match variant {
        "caller" => AS_CALLER.contains(&module),
        "pi_0_74_caller" => WITH_PI_0_74.contains(&module),
        "pi_0_74_ordinary" | "pi_1_5_caller" => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project;

    #[test]
    fn each_test_has_an_ordinary_user_and_the_current_pi() {
        for (test, is_wanted) in [
            ("attacks::caller::reads", true),
            ("attacks::ordinary::reads", true),
            ("export::caller::as_json", false),
            ("export::ordinary::as_json", true),
            ("brokered::ssh_memory::caller::searched", true),
            ("brokered::ssh::caller::only_permitted", false),
            ("extension::pi_0_74_caller::starts", true),
            ("extension::pi_0_74_ordinary::starts", false),
            ("screens::pi_0_74_caller::starts", false),
            ("screens::pi_1_5_ordinary::starts", true),
            ("screens::pi_1_5_caller::starts", false),
            ("demo::it_shows_what_it_should", true),
            ("policies::python", true),
            ("policies::runs_without_a_user_in_python", false),
            ("share::others::wkg_reads_them", false),
            ("share::others::ordinary::wkg_reads_them", false),
        ] {
            assert_eq!(is_in_normal_run(test), is_wanted, "{test}");
        }
    }

    #[test]
    fn all_modules_exist() {
        let tests = project::root().join("tests/it/tests");
        for (modules, variants) in
            [(AS_CALLER.as_slice(), "as_each_user!"), (WITH_PI_0_74.as_slice(), "on_each_pi!")]
        {
            for module in modules {
                let file = tests.join(format!("{}.rs", module.replace("::", "/")));
                let text = std::fs::read_to_string(&file).unwrap_or_default();
                assert!(text.contains(variants), "{module} has no `{variants}`");
            }
        }
    }
}
