//! Build and test tasks that plain cargo cannot do.
fn main() {}
