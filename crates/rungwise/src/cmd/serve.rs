//! `rungwise serve`: standard output begins with the line `ready udp ADDR:PORT` (or `tcp`, `http`, `connections`) once every socket is bound and every switch is
//! set; the parent process waits for that line. The counters follow at the end, or go to the file of `-o`.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Subcommand;
use rungwise_model::Exit;
use rungwise_verbs::documents::Format;
use rungwise_verbs::serve;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::Global;

#[derive(Debug, Subcommand)]
pub(crate) enum What {
    /// Echo UDP datagrams until SIGINT, SIGTERM or the end of --for.
    Udp(serve::Udp),
    /// Echo what arrives over TCP connections until SIGINT, SIGTERM or the end of --for.
    Tcp(serve::Tcp),
    /// Answer every HTTP/1.1 request with the same reply until SIGINT, SIGTERM or the end of --for.
    Http(serve::Http),
    /// Hold very many connections: send each message of 16 bytes back, or to every connection if its first byte is `b`.
    Connections(serve::Held),
}

pub(super) fn run(what: &What, global: &Global) -> anyhow::Result<Exit> {
    if !matches!(global.format(), Format::Text | Format::Json) {
        anyhow::bail!("the counters of a server are written as text or json; use --format json");
    }
    // Before anything is bound, so that a signal during the start is not lost.
    let signals = signals()?;
    let mut ended = |within: Option<Duration>| {
        let signal = match within {
            Some(within) => signals.recv_timeout(within).ok(),
            None => signals.recv().ok(),
        };
        // The owner's SIGTERM is how a service ends; only the user's Ctrl-C is an interruption.
        if signal == Some(SIGINT) {
            Exit::Interrupted
        } else {
            Exit::Done
        }
    };
    let invocation = global.invocation();
    let announce = |word: &'static str| move |address| announce(word, address);
    let ended = &mut ended;
    global.print(&match what {
        What::Udp(request) => serve::udp(request, &mut announce("udp"), ended, &invocation)?,
        What::Tcp(request) => serve::tcp(request, &mut announce("tcp"), ended, &invocation)?,
        What::Http(request) => serve::http(request, &mut announce("http"), ended, &invocation)?,
        What::Connections(request) => {
            serve::connections(request, &mut announce("connections"), ended, &invocation)?
        }
    })
}

/// SIGINT and SIGTERM as they come.
fn signals() -> anyhow::Result<mpsc::Receiver<i32>> {
    let (sender, receiver) = mpsc::channel();
    let mut waiting =
        Signals::new([SIGINT, SIGTERM]).context("cannot install the signal handlers")?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for signal in waiting.forever() {
                if sender.send(signal).is_err() {
                    return;
                }
            }
        })
        .context("cannot start the thread that waits for signals")?;
    Ok(receiver)
}

/// Tells whoever waits on standard output; they may have gone.
fn announce(word: &str, address: SocketAddr) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "ready {word} {address}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to standard output"),
    }
}
