//! `load udp` against a server that is not ours.

use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::run::Bench;
use crate::tune::assert_valid;

/// A running nsd; killed when dropped.
struct Nsd {
    child: Child,
    port: u16,
}

impl Nsd {
    fn start(bench: &Bench) -> Self {
        let port = UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let dir = bench.dir.path().display();
        bench.write(
            "example.zone",
            "$ORIGIN example.\n$TTL 60\n@ SOA ns.example. root.example. 1 60 60 60 60\n@ NS ns.example.\nns A 192.0.2.1\nwww A 192.0.2.2\nwww AAAA 2001:db8::2\n",
        );
        let config = bench.write(
            "nsd.conf",
            &format!(
                "server:\n  ip-address: 127.0.0.1@{port}\n  username: \"\"\n  chroot: \"\"\n  zonesdir: \"{dir}\"\n  pidfile: \"{dir}/nsd.pid\"\n  xfrdfile: \"{dir}/xfrd\"\n  zonelistfile: \"{dir}/zones\"\n  database: \"\"\n  hide-version: yes\nremote-control:\n  control-enable: no\nzone:\n  name: example\n  zonefile: example.zone\n"
            ),
        );
        let child = Command::new("nsd")
            .arg("-d")
            .arg("-c")
            .arg(config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nsd starts; install the package nsd");
        let mut server = Self { child, port };
        server.wait();
        server
    }

    /// Until it answers any query.
    fn wait(&mut self) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        let query = b"\x12\x34\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03www\x07example\x00\x00\x01\x00\x01";
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            assert!(self.child.try_wait().unwrap().is_none(), "nsd ended");
            let _ = socket.send_to(query, ("127.0.0.1", self.port));
            if socket.recv(&mut [0; 512]).is_ok() {
                return;
            }
            assert!(Instant::now() < deadline, "nsd does not answer");
        }
    }
}

impl Drop for Nsd {
    fn drop(&mut self) {
        // SIGTERM lets it end its own server processes.
        crate::run::kill(self.child.id().cast_signed(), libc::SIGTERM);
        let _ = self.child.wait();
    }
}

#[test]
fn a_real_dns_server_answers_every_query_of_a_dnsperf_file() {
    let bench = Bench::new();
    let queries = bench.write(
        "queries",
        "; a comment\nwww.example A\nwww.example AAAA\nnothere.example A\n",
    );
    let server = Nsd::start(&bench);
    let target = format!("127.0.0.1:{}", server.port);
    let ended = bench.run(&[
        "load",
        "udp",
        &target,
        "--dns",
        queries.to_str().unwrap(),
        "--count",
        "3000",
        "--threads",
        "1",
        "--sockets",
        "2",
        "--depth",
        "4",
        "--warmup",
        "50ms",
        "--format",
        "json",
    ]);
    // 3 when the machine was too busy to certify; the counts hold all the same.
    assert!(
        matches!(ended.code, Some(0 | 3)),
        "{:?} {}",
        ended.code,
        ended.stderr
    );
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_valid(&report, "load");
    assert_eq!(report["sent"], 3000);
    assert_eq!(
        report["received"].as_u64().unwrap() + report["lost"].as_u64().unwrap(),
        3000
    );
    let missing = report["errors"]["rcode_nxdomain"].as_u64().unwrap();
    assert!(
        (990..=1010).contains(&missing),
        "a third of the names does not exist: {missing}"
    );
    assert!(report["errors"].get("rcode_servfail").is_none());
    assert!(report["latency_us"]["corrected"]["p50"].as_f64().unwrap() > 0.0);
}
