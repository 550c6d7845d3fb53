//! Prints the TypeScript declarations of the wire types.

use std::io::Write;

fn main() -> std::io::Result<()> {
    std::io::stdout().lock().write_all(portcullis_rpc::typescript::declarations().as_bytes())
}
