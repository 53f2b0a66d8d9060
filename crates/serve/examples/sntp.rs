//! An SNTP responder (RFC 4330, packet format of RFC 5905) that serves the time of this host.
//!
//!     cargo run --release -p rungwise-serve --example sntp -- 127.0.0.1:1123
//!     chronyd -Q -t 5 'server 127.0.0.1 port 1123 iburst maxsamples 1' 'cmdport 0' \
//!         'pidfile /tmp/sntp-example.pid'
//!
//! The quality of that time is unknown, and the reply says so: stratum 10, the local clock, as chrony's `local` does.
//! A reply is never longer than its request.

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use rungwise_serve::udp::{Config, Server};

/// Bytes of a packet without extensions (RFC 5905, figure 8).
const PACKET: usize = 48;
/// Seconds from 1900, where NTP begins, to 1970.
const NTP_TO_UNIX: u64 = 2_208_988_800;
const MODE_CLIENT: u8 = 3;
const MODE_SERVER: u8 = 4;
const STRATUM: u8 = 10;
/// The clock ticks in steps of about 2^-20 s, a microsecond: what a datagram's way through the kernel blurs anyway.
const PRECISION: i8 = -20;
/// Root dispersion in units of 2^-16 s: 10 ms, a guess about a host that keeps its time by NTP.
const DISPERSION: u32 = 655;
/// 127.127.1.1, the local clock.
const REFERENCE: [u8; 4] = [127, 127, 1, 1];

/// An NTP timestamp: seconds since 1900 modulo 2^32, and a fraction of 2^-32 s.
fn timestamp(time: SystemTime) -> [u8; 8] {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs().wrapping_add(NTP_TO_UNIX) as u32;
    let fraction = (u64::from(since.subsec_nanos()) << 32) / 1_000_000_000;
    (u64::from(seconds) << 32 | fraction).to_be_bytes()
}

/// Answers a request that came in at `received`; `now` is asked for the time of departure. Anything that is not a
/// client's request of version 1 to 4 stays without a reply.
pub(crate) fn answer(
    request: &[u8],
    received: SystemTime,
    now: impl FnOnce() -> SystemTime,
    reply: &mut [u8],
) -> Option<usize> {
    let request = request.get(..PACKET)?;
    let (version, mode) = (request[0] >> 3 & 7, request[0] & 7);
    if mode != MODE_CLIENT || !(1..=4).contains(&version) {
        return None;
    }
    let reply = reply.get_mut(..PACKET)?;
    reply.fill(0);
    // No leap second is announced.
    reply[0] = version << 3 | MODE_SERVER;
    reply[1] = STRATUM;
    // The interval between polls is the client's affair.
    reply[2] = request[2];
    reply[3] = PRECISION.cast_unsigned();
    reply[8..12].copy_from_slice(&DISPERSION.to_be_bytes());
    reply[12..16].copy_from_slice(&REFERENCE);
    // Reference: the local clock was right just now, as far as it is.
    reply[16..24].copy_from_slice(&timestamp(received));
    // Origin: the client's departure, as it wrote it.
    reply[24..32].copy_from_slice(&request[40..48]);
    reply[32..40].copy_from_slice(&timestamp(received));
    reply[40..48].copy_from_slice(&timestamp(now()));
    Some(PACKET)
}

/// The handler of a worker.
#[expect(
    clippy::disallowed_methods,
    reason = "the time of day is what this serves"
)]
pub(crate) fn handler() -> impl FnMut(&[u8], SocketAddr, &mut [u8]) -> Option<usize> {
    |request, _peer, reply| answer(request, SystemTime::now(), SystemTime::now, reply)
}

#[allow(dead_code, reason = "the tests take this file in as a module")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listen = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:1123".to_owned());
    let _server = Server::start(&Config::new(listen.parse()?), |_worker| handler())?;
    loop {
        std::thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn request(first: u8) -> [u8; PACKET] {
        let mut request = [0; PACKET];
        request[0] = first;
        request[2] = 6;
        request[40..].copy_from_slice(b"origin!!");
        request
    }

    fn reply(request: &[u8]) -> Option<Vec<u8>> {
        let received = UNIX_EPOCH + Duration::from_millis(1_500);
        let sent = received + Duration::from_secs(1);
        let mut reply = vec![0xff; 100];
        let length = answer(request, received, || sent, &mut reply)?;
        reply.truncate(length);
        Some(reply)
    }

    #[test]
    fn a_client_gets_its_timestamp_back_with_ours() {
        for version in 1..=4 {
            let reply = reply(&request(version << 3 | 3)).unwrap();
            assert_eq!(reply.len(), 48);
            assert_eq!(
                reply[0],
                version << 3 | 4,
                "no leap warning, same version, server"
            );
            assert_eq!(reply[..4][1..], [10, 6, 0xec], "stratum, poll, precision");
            assert_eq!(&reply[24..32], b"origin!!");
            // 1900 to 1970, a second, and a half.
            assert_eq!(reply[32..40], [0x83, 0xaa, 0x7e, 0x81, 0x80, 0, 0, 0]);
            assert_eq!(reply[40..48], [0x83, 0xaa, 0x7e, 0x82, 0x80, 0, 0, 0]);
        }
    }

    #[test]
    fn only_client_requests_are_answered_so_no_two_servers_talk_for_ever() {
        for mode in [0, 1, 2, 4, 5, 6, 7] {
            assert_eq!(reply(&request(4 << 3 | mode)), None, "mode {mode}");
        }
        for version in [0, 5, 6, 7] {
            assert_eq!(reply(&request(version << 3 | 3)), None, "version {version}");
        }
    }

    #[test]
    fn short_requests_are_silent_and_long_ones_get_the_plain_packet() {
        let whole = request(0x23);
        for length in 0..PACKET {
            assert_eq!(reply(&whole[..length]), None);
        }
        let mut with_extension = whole.to_vec();
        with_extension.extend([0; 20]);
        assert_eq!(reply(&with_extension).unwrap().len(), 48);
    }

    #[test]
    fn time_goes_on_after_the_era_ends() {
        // 2036-02-07T06:28:16Z is second 2^32 since 1900: era 1 begins at 0.
        let end = UNIX_EPOCH + Duration::from_secs((1 << 32) - NTP_TO_UNIX);
        assert_eq!(timestamp(end), [0; 8]);
    }
}
