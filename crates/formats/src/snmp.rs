//! Counters of the protocols: `/proc/net/snmp`, `netstat`, `snmp6` and `sockstat`.
//!
//! Three layouts, one meaning: a protocol, a name, a number. `snmp` and `netstat` have pairs of lines, names
//! above numbers; `snmp6` has a name and a number per line; `sockstat` has both in one line. Kernels add
//! counters in the middle, so nothing is found by place. Sources: net/ipv4/proc.c, net/ipv6/proc.c (Linux 6.18).

use std::collections::BTreeMap;

/// Numbers by protocol and name: `("Udp", "RcvbufErrors")`, `("Ip6", "InReceives")`, `("TCP", "mem")`.
///
/// A negative number is left out: none of the counters has one, only settings do (`Tcp MaxConn -1`).
pub type Counters<'a> = BTreeMap<(&'a str, &'a str), u64>;

/// `/proc/net/snmp` and `/proc/net/netstat`; a pair of lines that do not belong together is left out.
pub fn parse(text: &str) -> Counters<'_> {
    let mut counters = Counters::new();
    let mut names: Option<(&str, &str)> = None;
    for (protocol, rest) in text.lines().filter_map(|line| line.split_once(':')) {
        match names.take() {
            Some((above, names)) if above == protocol => {
                let pairs = names
                    .split_ascii_whitespace()
                    .zip(rest.split_ascii_whitespace());
                counters.extend(
                    pairs.filter_map(|(name, value)| Some(((protocol, name), value.parse().ok()?))),
                );
            }
            _ => names = Some((protocol, rest)),
        }
    }
    counters
}

/// `/proc/net/snmp6`: `Ip6InReceives 881552`.
pub fn parse6(text: &str) -> Counters<'_> {
    text.lines()
        .filter_map(|line| {
            let (name, value) = line.split_once(char::is_whitespace)?;
            let (protocol, name) = name.split_at(name.find('6')? + 1);
            Some(((protocol, name), value.trim().parse().ok()?))
        })
        .collect()
}

/// `/proc/net/sockstat` and `sockstat6`: `TCP: inuse 1 orphan 0 tw 0 alloc 1 mem 124`.
pub fn parse_sockstat(text: &str) -> Counters<'_> {
    let mut counters = Counters::new();
    for (protocol, rest) in text.lines().filter_map(|line| line.split_once(':')) {
        let mut words = rest.split_ascii_whitespace();
        while let (Some(name), Some(value)) = (words.next(), words.next()) {
            if let Ok(value) = value.parse() {
                counters.insert((protocol, name), value);
            }
        }
    }
    counters
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_number_belongs_to_the_name_above_it() {
        let text = "\
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens
Tcp: 1 200 120000 -1 446
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors
Udp: 23438229 9406 3228080 26752304 2981620
";
        let counters = parse(text);
        assert_eq!(counters[&("Udp", "RcvbufErrors")], 2_981_620);
        assert_eq!(counters[&("Tcp", "ActiveOpens")], 446);
        assert!(!counters.contains_key(&("Tcp", "MaxConn")));
    }

    #[test]
    fn lines_that_lost_their_partner_do_not_shift_the_others() {
        let text = "Ip: A B\nTcp: C\nTcp: 5\nUdp: D E\nUdp: 1\n";
        let counters = parse(text);
        assert_eq!(counters.len(), 2);
        assert_eq!((counters[&("Tcp", "C")], counters[&("Udp", "D")]), (5, 1));
    }

    #[test]
    fn ipv6_counters_are_distinguished_by_protocol() {
        let text = "Ip6InReceives                   \t881552\nUdp6RcvbufErrors\t3\nIcmp6OutType133\t4\nUdpLite6InErrors 0\n";
        let counters = parse6(text);
        assert_eq!(counters[&("Ip6", "InReceives")], 881_552);
        assert_eq!(counters[&("Udp6", "RcvbufErrors")], 3);
        assert_eq!(counters[&("Icmp6", "OutType133")], 4);
        assert_eq!(counters.len(), 4);
    }

    #[test]
    fn sockstat_has_names_and_numbers_in_turn() {
        let text = "sockets: used 21\nTCP: inuse 1 orphan 0 tw 0 alloc 1 mem 124\nUDP: inuse 0 mem 142\nUDPLITE: inuse 0\n";
        let counters = parse_sockstat(text);
        assert_eq!(counters[&("TCP", "mem")], 124);
        assert_eq!(counters[&("UDP", "mem")], 142);
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in "([A-Z][a-z6]{1,3}:? ?[0-9 a-z:-]{0,20}\\n?){0,12}|.*") {
            let _ = (parse(&text), parse6(&text), parse_sockstat(&text));
        }
    }
}
