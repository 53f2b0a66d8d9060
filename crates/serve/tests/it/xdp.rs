//! The in-kernel echo on a veth pair of its own.

use rungwise_serve::udp::{Config, Error, Server, XdpDevice, XdpMode};

use crate::client::{ask, connect, no_forks, wait_until};
use crate::namespace::Namespace;

fn start(namespace: &Namespace, listen: &str, mode: XdpMode) -> Server {
    let config = Config {
        xdp_echo: Some(XdpDevice {
            device: "veth0".to_owned(),
            mode,
        }),
        ..Config::new(listen.parse().unwrap())
    };
    namespace.run(move || {
        // Silent on purpose: only the kernel answers.
        let silent = |_| |_: &[u8], _: std::net::SocketAddr, _: &mut [u8]| None;
        Server::start(&config, silent).unwrap()
    })
}

fn echoes(namespace: &Namespace, server: &str) {
    let server = server.parse().unwrap();
    namespace.run(move || {
        let socket = connect(server);
        for size in [0, 1, 100, 1200] {
            let request = vec![7; size];
            assert_eq!(ask(&socket, &request), request);
        }
    });
}

#[test]
fn the_kernel_answers_both_families_and_counts() {
    let Some((here, there)) = Namespace::pair() else {
        return;
    };
    let server = start(&here, "[::]:7777", XdpMode::Generic);
    echoes(&there, "10.9.0.1:7777");
    echoes(&there, "[fd09::1]:7777");
    let counters = server.stop();
    let xdp = counters.xdp.clone().unwrap();
    assert_eq!((xdp.echoed, xdp.bytes), (8, 2 * 1301));
    assert_eq!(xdp.cpus.iter().map(|(_, count)| count).sum::<u64>(), 8);
    assert_eq!(counters.total().received, 0);
}

#[test]
fn native_mode_answers_ipv4_and_leaves_ipv6_to_the_socket() {
    let Some((here, there)) = Namespace::pair() else {
        return;
    };
    // The peer device needs a native program as well; an echo on another port leaves our traffic alone.
    let config = Config {
        xdp_echo: Some(XdpDevice {
            device: "veth1".to_owned(),
            mode: XdpMode::Native,
        }),
        ..Config::new("10.9.0.2:9".parse().unwrap())
    };
    let _peer = there.run(move || Server::start(&config, crate::client::echo).unwrap());
    let server = start(&here, "[::]:7777", XdpMode::Native);
    let note = server
        .read_backs()
        .iter()
        .find(|entry| entry.switch == "xdp-echo")
        .unwrap();
    assert!(
        note.actual
            .contains("veth: IPv4 replies without UDP checksum"),
        "{note}"
    );
    echoes(&there, "10.9.0.1:7777");
    there.run(|| {
        connect("[fd09::1]:7777".parse().unwrap())
            .send(b"to the socket")
            .unwrap()
    });
    wait_until(|| server.counters().total().received > 0);
    let counters = server.stop();
    assert_eq!(counters.xdp.clone().unwrap().echoed, 4);
    assert_eq!(counters.total().refused, 1);
}

#[test]
fn a_second_echo_on_the_device_is_refused_and_the_first_leaves_with_its_server() {
    let Some((here, there)) = Namespace::pair() else {
        return;
    };
    let _guard = no_forks();
    let first = start(&here, "10.9.0.1:7777", XdpMode::Generic);
    let second = Config {
        xdp_echo: Some(XdpDevice {
            device: "veth0".to_owned(),
            mode: XdpMode::Generic,
        }),
        ..Config::new("10.9.0.1:7778".parse().unwrap())
    };
    let start_second = move || Server::start(&second, crate::client::echo);
    let again = start_second.clone();
    let error = here.run(start_second).unwrap_err();
    assert!(
        error.to_string().contains("no other XDP program"),
        "{error}"
    );
    drop(first);
    let server = here.run(again).unwrap();
    echoes(&there, "10.9.0.1:7778");
    assert_eq!(server.stop().xdp.unwrap().echoed, 4);
}

#[test]
fn a_driver_without_xdp_is_distinguished_from_a_kernel_without_it() {
    let Some((here, _)) = Namespace::pair() else {
        return;
    };
    let config = Config {
        xdp_echo: Some(XdpDevice {
            device: "lo".to_owned(),
            mode: XdpMode::Native,
        }),
        ..Config::new("127.0.0.1:7777".parse().unwrap())
    };
    let error = here.run(move || Server::start(&config, crate::client::echo).unwrap_err());
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    assert!(error.to_string().contains("use generic mode"), "{error}");
}
