//! Numbers of the host over all TCP sockets: connections, ports in use towards the busiest destination.

use std::collections::HashMap;
use std::net::IpAddr;

use rungwise_model::evidence::{Absence, Evidence, Origin, Subject};
use rungwise_model::kernel::{Endpoint, TcpSocket};
use rungwise_model::keys;

use super::{PORT_RANGE, SOURCE, state};
use crate::Window;

pub(super) fn add(window: &Window<'_>, sockets: &[TcpSocket], evidence: &mut Evidence) {
    let established = sockets
        .iter()
        .filter(|socket| socket.state == state::ESTABLISHED)
        .count();
    evidence.number(
        &keys::TCP_ESTABLISHED,
        Subject::host(),
        established as f64,
        Origin::new(SOURCE, format!("{established} ESTAB of {}", sockets.len())),
    );
    if let Err(why) = ports(window, sockets, evidence) {
        let keys = [&keys::TCP_PORTS_TO, &keys::TCP_PORTS_USED];
        evidence.absent(&keys, &why, PORT_RANGE);
    }
}

fn ports(
    window: &Window<'_>,
    sockets: &[TcpSocket],
    evidence: &mut Evidence,
) -> Result<(), Absence> {
    let text = window.text(PORT_RANGE)?.trim();
    let range = range(text).ok_or_else(|| {
        Absence::because(format!(
            "{PORT_RANGE} contains '{text}', which is not a range"
        ))
    })?;
    let mut used: HashMap<(IpAddr, Endpoint), u32> = HashMap::new();
    for socket in sockets {
        // A port is taken from bind or connect on until the end of TIME_WAIT.
        let takes = ![state::LISTEN, state::CLOSE].contains(&socket.state)
            && (range.0..=range.1).contains(&socket.local.port);
        if takes {
            *used
                .entry((socket.local.address, socket.remote))
                .or_default() += 1;
        }
    }
    let busiest = used
        .into_iter()
        .max_by_key(|&((local, remote), count)| (count, std::cmp::Reverse((local, remote))));
    let size = f64::from(range.1 - range.0) + 1.0;
    let (share, to, line) = match busiest {
        Some(((local, remote), count)) => (
            // A dump is not atomic: a port that is reused meanwhile may appear twice.
            (f64::from(count) / size).min(1.0),
            format!("{remote} from {local}"),
            format!("{count} sockets from {local} to {remote}; ip_local_port_range {text}"),
        ),
        None => (
            0.0,
            String::new(),
            format!("no socket has a port of ip_local_port_range {text}"),
        ),
    };
    let origin = Origin::new(format!("{SOURCE}, {PORT_RANGE}"), line);
    evidence.number(
        &keys::TCP_PORTS_USED,
        Subject::host(),
        share,
        origin.clone(),
    );
    evidence.text(&keys::TCP_PORTS_TO, Subject::host(), to, origin);
    Ok(())
}

/// `32768 60999`
fn range(text: &str) -> Option<(u16, u16)> {
    let (low, high) = text.split_once(char::is_whitespace)?;
    let range = (low.parse().ok()?, high.trim().parse().ok()?);
    (range.0 <= range.1).then_some(range)
}
