//! The few Linux calls that no safe library offers.
