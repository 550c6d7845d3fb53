//! `portcullis ports`: servers that commands of running sessions have started.

use anyhow::Context as _;
use portcullis_bootstrap::control::{Order, Outcome, Port, ask};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::args::ports::Ports;
use portcullis_command_line::exit;
use portcullis_command_line::output::{Page, Tint, cell, tinted};
use serde_json::json;

use super::asks::{ask_all, directory, done, parts};

/// Runs the subcommand: shows, opens and closes ports.
pub(crate) fn run(ports: &Ports) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    match ports {
        Ports::List { json } => list(&around, *json),
        Ports::Open { id, at } => {
            let (session, port) = session_and_port(id)?;
            let order = Order::OpenPort { port, at: at.unwrap_or(port) };
            done(&around, session, ask(&directory(&around, session)?, &order)?)
        }
        Ports::Close { id } => {
            let (session, port) = session_and_port(id)?;
            done(&around, session, ask(&directory(&around, session)?, &Order::ClosePort { port })?)
        }
    }
}

fn session_and_port(id: &str) -> anyhow::Result<(&str, u16)> {
    let (session, port) = parts(id)?;
    let port =
        u16::try_from(port).ok().filter(|&port| port != 0).context("a port is a number from 1 to 65535")?;
    Ok((session, port))
}

fn list(around: &ProcessEnv, as_json: bool) -> exit::Outcome {
    let mut page = Page::new(around);
    let mut all = Vec::new();
    let (outcomes, exit) = ask_all(around, &Order::Ports {})?;
    for (name, outcome) in outcomes {
        if let Outcome::Ports { ports } = outcome {
            all.extend(ports.into_iter().map(|port| (name.clone(), port)));
        }
    }
    if as_json {
        let port = |(session, port): &(String, Port)| json!({ "id": format!("{session}:{}", port.port), "port": port });
        page.json(&json!({ "ports": all.iter().map(port).collect::<Vec<_>>() }));
    } else if all.is_empty() {
        page.line("no command listens");
    } else {
        let row = |(session, port): &(String, Port)| {
            let who = match port.process {
                0 => "nobody".to_owned(),
                process => format!("{} (pid {process})", port.program),
            };
            let open = match &port.open_at {
                Some(at) => tinted(&format!("open at {at}"), Tint::Open),
                None => tinted("not open", Tint::Faint),
            };
            vec![cell(&format!("{session}:{}", port.port)), cell(&who), open]
        };
        page.table("", &all.iter().map(row).collect::<Vec<_>>());
    }
    page.print()?;
    Ok(exit)
}
