//! `rungwise serve`: standard output begins with the line `ready udp ADDR:PORT` once every socket is bound and every switch is
//! set; the parent process waits for that line. The counters follow at the end, or go to the file of `-o`.

use std::io::Write as _;
use std::net::SocketAddr;

use anyhow::Context as _;
use clap::Subcommand;
use rungwise_model::Exit;
use rungwise_verbs::documents::Format;
use rungwise_verbs::serve;

use super::Global;

#[derive(Debug, Subcommand)]
pub(crate) enum What {
    /// Echo UDP datagrams until SIGINT, SIGTERM or the end of --for.
    Udp(serve::Udp),
}

pub(super) fn run(what: &What, global: &Global) -> anyhow::Result<Exit> {
    let What::Udp(request) = what;
    if !matches!(global.format(), Format::Text | Format::Json) {
        anyhow::bail!("the counters of a server are written as text or json; use --format json");
    }
    global.print(&serve::udp(request, &mut announce, &global.invocation())?)
}

/// Tells whoever waits on standard output; they may have gone.
fn announce(address: SocketAddr) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "ready udp {address}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to standard output"),
    }
}
