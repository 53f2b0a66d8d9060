//! The addresses that connections come from.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::preflight::PER_SOURCE;

/// Most source addresses; more would be a slip.
const MOST: u128 = 1 << 16;

/// Source addresses as users write them: addresses and ranges, separated by commas.
pub(super) fn parse(text: &str) -> Result<Vec<IpAddr>, String> {
    let mut all = Vec::new();
    for word in text.split(',').map(str::trim) {
        let wrong = || {
            format!(
                "cannot read '{word}' as source addresses; write an address, or a range as 10.0.0.2-10.0.0.9"
            )
        };
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let first: IpAddr = first.trim().parse().map_err(|_| wrong())?;
        let last: IpAddr = last.trim().parse().map_err(|_| wrong())?;
        let (from, to) = match (first, last) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits()), u128::from(b.to_bits())),
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits()),
            _ => return Err(wrong()),
        };
        if from > to {
            return Err(format!(
                "the range '{word}' is reversed; write it as {last}-{first}"
            ));
        }
        if to - from >= MOST || all.len() as u128 + (to - from) >= MOST {
            return Err(format!(
                "'{text}' has more than {MOST} source addresses; use fewer"
            ));
        }
        all.extend((from..=to).map(|bits| match first {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(bits as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(bits)),
        }));
    }
    Ok(all)
}

/// Any address of 127.0.0.0/8 may be a source for this target.
pub(super) fn is_loopback(target: SocketAddr) -> bool {
    matches!(target.ip(), IpAddr::V4(ip) if ip.is_loopback())
}

/// The addresses for `count` connections to a target of 127.0.0.0/8.
pub(super) fn loopback(count: u64) -> Vec<IpAddr> {
    let first = Ipv4Addr::new(127, 64, 0, 1).to_bits();
    let number = count.div_ceil(PER_SOURCE).clamp(1, MOST as u64) as u32;
    let all = (0..number).map(|n| IpAddr::V4(Ipv4Addr::from_bits(first + n)));
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_ranges_are_read_in_their_order() {
        let all = parse("10.0.0.254-10.0.1.1, 10.9.9.9,::1").unwrap();
        let all: Vec<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(
            all,
            [
                "10.0.0.254",
                "10.0.0.255",
                "10.0.1.0",
                "10.0.1.1",
                "10.9.9.9",
                "::1"
            ]
        );
        for (text, word) in [
            ("", "10.0.0.2-10.0.0.9"),
            ("10.0.0", "10.0.0.2-10.0.0.9"),
            ("10.0.0.1-::1", "10.0.0.2-10.0.0.9"),
            ("10.0.0.9-10.0.0.1", "write it as 10.0.0.1-10.0.0.9"),
            ("10.0.0.0-10.2.0.0", "more than 65536"),
            ("::-ffff::", "more than 65536"),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains(word), "{why}");
        }
    }

    #[test]
    fn loopback_has_a_source_for_every_eight_thousand_connections() {
        assert_eq!(loopback(1).len(), 1);
        assert_eq!(loopback(8_000).len(), 1);
        assert_eq!(loopback(8_001).len(), 2);
        assert_eq!(loopback(500_000).len(), 63);
        assert_eq!(loopback(u64::MAX).len(), 1 << 16);
        assert!(loopback(u64::MAX).iter().all(IpAddr::is_loopback));
        assert!(is_loopback("127.3.4.5:80".parse().unwrap()));
        assert!(!is_loopback("[::1]:80".parse().unwrap()));
    }
}
