//! The example services against the clients that people use: dig and chronyd.

use std::net::SocketAddr;
use std::process::{Command, Output, Stdio};

use rungwise_serve::udp::{Config, Io, Server, XdpDevice, XdpMode};

use crate::client::spawn;
use crate::namespace::Namespace;
use crate::{dns, sntp};

/// Runs a program that must be installed and end well.
fn run(package: &str, program: &str, arguments: &[&str]) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = spawn(
        package,
        Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped()),
    )
    .wait_with_output()
    .unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr)
    );
    assert!(
        status.success(),
        "{program} {}: {text}",
        arguments.join(" ")
    );
    text
}

fn dig(server: SocketAddr, arguments: &[&str]) -> String {
    let (at, port) = (format!("@{}", server.ip()), server.port().to_string());
    // One try and no search list: what comes back is what this server said.
    let fixed = [
        at.as_str(),
        "-p",
        &port,
        "+tries=1",
        "+timeout=10",
        "+nosearch",
        "+norecurse",
    ];
    run("dnsutils", "dig", &[&fixed, arguments].concat())
}

#[test]
fn dig_accepts_the_dns_example() {
    for (listen, io) in [("127.0.0.1:0", Io::Batch(8)), ("[::1]:0", Io::Uring)] {
        let config = Config {
            io,
            ..Config::new(listen.parse().unwrap())
        };
        let server = Server::start(&config, |_| dns::handler()).unwrap();
        let ask = |arguments: &[&str]| dig(server.local_addr(), arguments);
        assert_eq!(
            ask(&["+short", "www.lab.test", "A"]),
            "192.0.2.10\n192.0.2.11\n"
        );
        assert_eq!(ask(&["+short", "WWW.lab.test", "AAAA"]), "2001:db8::10\n");
        assert_eq!(
            ask(&["+short", "text.lab.test", "TXT"]),
            "\"v=1\" \"two strings; one record\"\n"
        );
        assert_eq!(ask(&["+short", "lab.test", "NS"]), "ns.lab.test.\n");
        for (arguments, expected) in [
            (
                &["www.lab.test"][..],
                &["status: NOERROR", "flags: qr aa;", "udp: 1232"][..],
            ),
            (
                &["nobody.lab.test"],
                &["status: NXDOMAIN", "SOA", "AUTHORITY: 1"],
            ),
            (&["example.org"], &["status: REFUSED"]),
            (&["www.lab.test", "+opcode=2"], &["status: NOTIMP"]),
            (&["+header-only", "+noedns"], &["status: FORMERR"]),
            (
                &["www.lab.test", "+edns=1", "+noednsneg"],
                &["status: BADVERS"],
            ),
            (
                &["long.lab.test", "TXT", "+noedns", "+ignore"],
                &["flags: qr aa tc"],
            ),
            (&["long.lab.test", "TXT"], &["status: NOERROR", "ANSWER: 1"]),
            (
                &["www.lab.test", "+dnssec", "+cookie", "+nsid"],
                &["status: NOERROR", "flags: do; udp: 1232"],
            ),
        ] {
            let text = ask(arguments);
            for part in expected {
                assert!(
                    text.contains(part),
                    "{arguments:?} without '{part}': {text}"
                );
            }
            assert!(
                !text.contains("WARNING") && !text.contains("malformed"),
                "{arguments:?}: {text}"
            );
        }
    }
}

#[test]
fn dig_notices_nothing_of_af_xdp() {
    let Some((here, there)) = Namespace::pair() else {
        return;
    };
    for listen in ["10.9.0.1:7777", "[fd09::1]:7778"] {
        let config = Config {
            af_xdp: Some(XdpDevice {
                device: "veth0".to_owned(),
                mode: XdpMode::Native,
            }),
            ..Config::new(listen.parse().unwrap())
        };
        let server = here.run(move || Server::start(&config, |_| dns::handler()).unwrap());
        let address = server.local_addr();
        there.run(move || {
            let answer = dig(address, &["+short", "www.lab.test", "A"]);
            assert_eq!(answer, "192.0.2.10\n192.0.2.11\n");
            let text = dig(address, &["long.lab.test", "TXT"]);
            assert!(text.contains("status: NOERROR"), "{text}");
        });
        assert_eq!(server.stop().total().sent, 2);
    }
}

#[test]
fn chronyd_accepts_the_sntp_example() {
    for listen in ["127.0.0.1:0", "[::1]:0"] {
        let server =
            Server::start(&Config::new(listen.parse().unwrap()), |_| sntp::handler()).unwrap();
        let address = server.local_addr();
        let source = format!(
            "server {} port {} iburst maxsamples 1",
            address.ip(),
            address.port()
        );
        // A file of its own: chronyd deletes what it is given here when it ends, a device too.
        let pid_file = format!(
            "pidfile {}/chronyd-{}.pid",
            env!("CARGO_TARGET_TMPDIR"),
            address.port()
        );
        // Query only (-Q), not as another user, without its control socket.
        let arguments = [
            "-Q",
            "-t",
            "20",
            "-u",
            "root",
            &source,
            "cmdport 0",
            &pid_file,
        ];
        let text = run("chrony", "chronyd", &arguments);
        assert!(text.contains("System clock wrong by"), "{text}");
        assert!(server.stop().total().sent > 0);
    }
}
