//! Secrets stay where they are: planted wherever people put them, and searched for in everything that comes out.

use std::io::Read as _;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use flate2::read::GzDecoder;
use rungwise_host::clock;
use rungwise_host::namespace::Namespace;
use rungwise_host::recorded::Recorded;
use rungwise_probes::{bundle, gather, mask};

use super::formats;
use crate::run::{Bench, Ended};

/// Stands in every secret that is planted here.
const PLANTED: &str = "hunter2";

/// All that the tool makes of a bundle, and the bundle itself as plain text.
fn outputs(bench: &Bench, file: &Path) -> Vec<(String, String)> {
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(file).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    let mut outputs = vec![("the bundle".to_owned(), text)];
    for format in formats(bench) {
        let name = file.to_str().unwrap();
        let ended = bench.run(&["check", name, "--format", &format]);
        assert!(matches!(ended.code, Some(0 | 1 | 3)), "{}", ended.stderr);
        outputs.push((format, ended.stdout + &ended.stderr));
    }
    outputs
}

#[track_caller]
fn none_holds(outputs: &[(String, String)], secret: &str) {
    for (name, text) in outputs {
        if let Some(at) = text.find(secret) {
            let around: String = text[..at]
                .chars()
                .rev()
                .take(120)
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .collect();
            panic!("{name} holds {secret}: {around}{secret}");
        }
    }
}

#[test]
fn secrets_in_texts_of_the_kernel_are_in_no_output() {
    let bench = Bench::new();
    let lines = [
        format!("root=/dev/vda1 db.password={PLANTED} quiet"),
        format!("console=ttyS0 api_token:{PLANTED}"),
        format!("--auth-token {PLANTED} ro"),
        format!("SECRET_KEY=\"{PLANTED} and {PLANTED}\" ro"),
        format!("passphrase='two words {PLANTED}' ro"),
        format!("nfsroot=http://user:{PLANTED}@host/root ip=dhcp"),
        format!("init=/bin/x,password={PLANTED},ro"),
        format!("fetch=https://host/x?access_key={PLANTED}&y=1"),
        format!("rd.luks.key={PLANTED} pass={PLANTED} pwd={PLANTED} psk={PLANTED}"),
        format!("Authorization: Bearer {PLANTED}"),
        format!("{{\"password\":\"{PLANTED}\",\"x\": {{\"token\": \"{PLANTED}\"}}}}"),
    ];
    for line in lines {
        let mut host = Recorded::new("this host", 1).file("/proc/cmdline", &line);
        // Where else an administrator's words may stand: names of hosts, groups, tasks and interrupts.
        for path in [
            "/proc/version",
            "/proc/sys/kernel/hostname",
            "/proc/1/stat",
            "/proc/self/cgroup",
            "/proc/interrupts",
            "/proc/net/dev",
        ] {
            host = host.file(path, &line);
        }
        let mut capture = gather::gather(&host, None, Duration::ZERO, |_| true, clock::now);
        let read = capture.moments[0].files.contains_key("/proc/cmdline");
        assert!(read, "no probe reads the kernel command line any more");
        mask::secrets(&mut capture);
        let file = bench.path("host.rungwise");
        std::fs::write(&file, bundle::pack(&capture).unwrap()).unwrap();
        none_holds(&outputs(&bench, &file), PLANTED);
    }
}

/// A process with secrets wherever a process can have them; killed when dropped.
struct Careless(Child);

impl Careless {
    fn start(bench: &Bench) -> Self {
        let file = bench.write(&format!("password={PLANTED}"), "mapped and open");
        let folder = bench.path(&format!("token={PLANTED}"));
        std::fs::create_dir(&folder).unwrap();
        let program = format!(
            "import mmap, time\nf = open('{}')\nm = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)\nm[:]\n\
             print('ready', end='', flush=True)\ntime.sleep(600)",
            file.display()
        );
        let mut child = Command::new("python3")
            .args(["-c", &program, "--password", PLANTED])
            .arg(format!("--api-token={PLANTED}"))
            .current_dir(folder)
            .env("DB_PASSWORD", PLANTED)
            .env("PLAIN", PLANTED)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 starts; install it");
        let mut ready = [0; 5];
        child.stdout.take().unwrap().read_exact(&mut ready).unwrap();
        Self(child)
    }
}

impl Drop for Careless {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn secrets_of_a_process_are_in_no_output() {
    let bench = Bench::new();
    let careless = Careless::start(&bench);
    let pid = careless.0.id().to_string();
    let live = ["--for", "400ms", "--pid", &pid];
    for format in formats(&bench) {
        let mut words = vec!["check", "--format", &format];
        words.extend(live);
        let ended = bench.run(&words);
        assert!(matches!(ended.code, Some(0 | 1 | 3)), "{}", ended.stderr);
        none_holds(&[(format, ended.stdout + &ended.stderr)], PLANTED);
    }
    let mut words = vec!["capture", "-o", "host.rungwise"];
    words.extend(live);
    let ended = bench.run(&words).expect(0);
    none_holds(&[("capture".to_owned(), ended.stderr)], PLANTED);
    none_holds(&outputs(&bench, &bench.path("host.rungwise")), PLANTED);
}

#[test]
fn addresses_are_masked_where_that_is_asked_for() {
    const V4: &str = "198.51.100.77";
    const V6: &str = "2a00:dead:beef::77";
    const MAC: &str = "52:54:00:c0:ff:ee";
    let bench = Bench::new();
    let namespace = Namespace::create("addresses").expect("run the tests as root");
    let mut capture = bench.command(&[
        "capture",
        "-q",
        "--mask-addresses",
        "--for",
        "400ms",
        "-o",
        "host.rungwise",
    ]);
    let ended = namespace.run(move || {
        for words in [
            // A name made of the address, as udev does it.
            "link add enx525400c0ffee address 52:54:00:c0:ff:ee type veth peer name peer",
            "link set peer up",
            "link set enx525400c0ffee up",
            "address add 198.51.100.77/32 dev lo",
            "address add 2a00:dead:beef::77/128 dev lo",
        ] {
            let status = Command::new("ip").args(words.split(' ')).status().unwrap();
            assert!(status.success(), "ip {words}");
        }
        let mut kept = Vec::new();
        for address in [V4, V6] {
            let listener = TcpListener::bind((address, 4711)).unwrap();
            let client = TcpStream::connect((address, 4711)).unwrap();
            let server = listener.accept().unwrap();
            let udp = UdpSocket::bind((address, 4712)).unwrap();
            udp.connect((address, 4713)).unwrap();
            kept.push((listener, client, server, udp));
        }
        capture.output().unwrap()
    });
    Ended::from(ended).expect(0);
    let outputs = outputs(&bench, &bench.path("host.rungwise"));
    for port in ["4711", "4712"] {
        assert!(outputs[0].1.contains(port), "the sockets were not seen");
    }
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let mut spellings = vec![
        V4.to_owned(),
        V6.to_owned(),
        MAC.to_owned(),
        "198.51.100".to_owned(),
        "dead:beef".to_owned(),
        // As /proc/net/tcp and the names of devices print them.
        "4D6433C6".to_owned(),
        "2a00deadbeef".to_owned(),
        "525400c0ffee".to_owned(),
    ];
    if host.trim().len() > 2 {
        spellings.push(host.trim().to_owned());
    }
    for spelling in spellings {
        none_holds(&outputs, &spelling);
    }
}
