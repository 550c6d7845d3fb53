//! Runs each test with every version of pi, as root and as an ordinary user.

/// Makes tests of functions that take a `PiVersion` and a `User`: one for each combination. With `with_node_20:`, the
/// older pi runs with the Node that it was made for, and not with the current one, which starts sooner.
macro_rules! on_each_pi {
    (with_node_20: $($test:ident),+ $(,)?) => {
        on_each_pi!(@module pi_0_74_caller, V0_74OnNode20, Caller, $($test),+);
        on_each_pi!(@module pi_0_74_ordinary, V0_74OnNode20, Ordinary, $($test),+);
        on_each_pi!(@module pi_1_5_caller, V1_5, Caller, $($test),+);
        on_each_pi!(@module pi_1_5_ordinary, V1_5, Ordinary, $($test),+);
    };
    ($($test:ident),+ $(,)?) => {
        on_each_pi!(@module pi_0_74_caller, V0_74, Caller, $($test),+);
        on_each_pi!(@module pi_0_74_ordinary, V0_74, Ordinary, $($test),+);
        on_each_pi!(@module pi_1_5_caller, V1_5, Caller, $($test),+);
        on_each_pi!(@module pi_1_5_ordinary, V1_5, Ordinary, $($test),+);
    };
    (@module $module:ident, $version:ident, $user:ident, $($test:ident),+) => {
        mod $module {
            $(
                #[test]
                fn $test() -> anyhow::Result<()> {
                    super::$test(portcullis_it::PiVersion::$version, portcullis_it::User::$user)
                }
            )+
        }
    };
}

/// Makes tests of functions that take a `User`: one for the user who runs the tests, one for an ordinary user.
macro_rules! as_each_user {
    ($($test:ident),+ $(,)?) => {
        as_each_user!(@module caller, Caller, $($test),+);
        as_each_user!(@module ordinary, Ordinary, $($test),+);
    };
    (@module $module:ident, $user:ident, $($test:ident),+) => {
        mod $module {
            $(
                #[test]
                fn $test() -> anyhow::Result<()> {
                    super::$test(portcullis_it::User::$user)
                }
            )+
        }
    };
}
