//! Services: started where they belong, watched, ended with all that is theirs.

use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use rungwise_host::Error;
use rungwise_host::namespace::Namespace;
use rungwise_host::process::{Attached, Launch, Ready, Service, Url, started_ticks};

use crate::{eventually, root_or_skip};

const LONG: Duration = Duration::from_secs(20);

fn shell(script: &str) -> Launch<'static> {
    Launch {
        argv: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
        ..Launch::default()
    }
}

#[test]
fn a_line_on_stdout_makes_it_ready_and_is_handed_back() {
    let service = Service::start(&shell(
        "echo booting; echo listening on 5353; exec sleep 60",
    ))
    .unwrap();
    let line = service
        .wait_ready(&Ready::Line("listening".to_owned()), LONG)
        .unwrap();
    assert_eq!(line.as_deref(), Some("listening on 5353"));
    assert!(service.alive());
    let pid = service.pid();
    drop(service);
    assert!(Attached::attach(pid).is_err(), "it was killed and reaped");
}

#[test]
fn one_that_dies_before_it_is_ready_is_reported_with_its_last_words() {
    let service = Service::start(&shell("echo no such zone >&2; exit 3")).unwrap();
    let error = service
        .wait_ready(&Ready::Line("listening".to_owned()), LONG)
        .unwrap_err();
    assert!(matches!(error, Error::Died { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("with exit status 3") && text.contains("no such zone"),
        "{text}"
    );
    assert!(service.cpu_time().is_err());
}

#[test]
fn one_that_says_nothing_is_not_ready_in_time() {
    let service = Service::start(&shell("exec sleep 60")).unwrap();
    let within = Duration::from_millis(120);
    for ready in [
        Ready::Log("ready".to_owned()),
        Ready::Tcp(([127, 0, 0, 1], 9).into()),
        Ready::Udp {
            address: ([127, 0, 0, 1], 9).into(),
            request: b"x".to_vec(),
        },
    ] {
        let error = service.wait_ready(&ready, within).unwrap_err();
        assert!(matches!(error, Error::NotReady(_)), "{error}");
    }
    assert_eq!(
        service.wait_ready(&Ready::Alive(within), LONG).unwrap(),
        None
    );
}

#[test]
fn one_that_listens_elsewhere_is_shown_with_its_command_line_its_output_and_its_ports() {
    // A child of the service has the socket; a free port is looked for first, and nothing listens on the awaited one.
    let script = "import os, socket, time\n\
        s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\n\
        u = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); u.bind(('::1', 0))\n\
        print('port', s.getsockname()[1], u.getsockname()[1], flush=True)\n\
        time.sleep(60)";
    let service = Service::start(&shell(&format!("python3 -c \"{script}\" & wait"))).unwrap();
    let line = service
        .wait_ready(&Ready::Line("port ".to_owned()), LONG)
        .unwrap()
        .unwrap();
    let ports: Vec<&str> = line.split(' ').skip(1).collect();
    let error = service
        .wait_ready(
            &Ready::Tcp(([127, 0, 0, 1], 9).into()),
            Duration::from_millis(120),
        )
        .unwrap_err()
        .to_string();
    for words in [
        "no connection to tcp 127.0.0.1:9 was accepted",
        "refused",
        "it was started as: /bin/sh -c 'python3 -c",
        &format!("tcp 127.0.0.1:{} (python3, pid ", ports[0]),
        &format!("udp [::1]:{} (python3, pid ", ports[1]),
        &line,
        "have it listen on tcp 127.0.0.1:9",
    ] {
        assert!(error.contains(words), "{words}: {error}");
    }
    // What others have open is not the service's.
    let own = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let own = format!("127.0.0.1:{} ", own.local_addr().unwrap().port());
    assert!(!error.contains(&own), "{error}");
}

#[test]
fn a_program_that_is_not_there_is_a_missing_precondition() {
    let launch = Launch {
        argv: vec!["no-such-program-77".to_owned()],
        ..Launch::default()
    };
    let error = Service::start(&launch).unwrap_err();
    assert!(
        error.is_precondition() && error.to_string().contains("no such program"),
        "{error}"
    );
    assert!(Service::start(&Launch::default()).is_err());
    let error = Service::start(&Launch {
        directory: Some("/nosuchdir".into()),
        ..shell("true")
    })
    .unwrap_err();
    assert!(error.to_string().contains("no such folder"), "{error}");
}

#[test]
fn stopping_takes_the_whole_group_even_if_it_ignores_the_request() {
    let script = "trap '' TERM; sleep 61 & echo child $!; while :; do wait; done";
    let mut service = Service::start(&shell(script)).unwrap();
    let line = service
        .wait_ready(&Ready::Line("child ".to_owned()), LONG)
        .unwrap()
        .unwrap();
    let child: u32 = line.strip_prefix("child ").unwrap().parse().unwrap();
    let child = Attached::attach(child).unwrap();
    let status = service.stop(Duration::from_millis(50)).unwrap();
    assert_eq!(status.signal(), Some(libc::SIGKILL));
    eventually("a member of the group lived on", || !child.alive());
    assert_eq!(
        service.stop(LONG).unwrap(),
        status,
        "a second stop tells the same"
    );
}

#[test]
fn one_that_obeys_ends_by_its_own_status() {
    let script = "trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done";
    let mut service = Service::start(&shell(script)).unwrap();
    service
        .wait_ready(&Ready::Line("up".to_owned()), LONG)
        .unwrap();
    assert_eq!(service.stop(LONG).unwrap().code(), Some(7));
}

#[test]
fn much_output_neither_blocks_it_nor_fills_our_memory() {
    let script = "i=0; while [ $i -lt 20000 ]; do echo line $i of a long log; i=$((i+1)); done; echo done; exec sleep 60";
    let service = Service::start(&shell(script)).unwrap();
    service
        .wait_ready(&Ready::Line("done".to_owned()), LONG)
        .unwrap();
    let tail = service.last_words();
    assert!(
        tail.ends_with("done") && tail.lines().count() <= 12,
        "{tail}"
    );
}

#[test]
fn cpu_time_covers_the_process_and_grows() {
    let service = Service::start(&shell("while :; do :; done")).unwrap();
    let attached = Attached::attach(service.pid()).unwrap();
    eventually("a spinning process used no CPU", || {
        service.cpu_time().unwrap() > Duration::from_millis(50)
    });
    assert!(attached.cpu_time().unwrap() > Duration::from_millis(50));
    assert!(started_ticks(attached.pid()).unwrap() > 0);
    drop(service);
    assert!(!attached.alive());
    assert!(
        attached.cpu_time().is_err(),
        "a number that was used again must not be read"
    );
}

#[test]
fn a_service_lives_in_its_namespace_and_keeps_its_folder() {
    if !root_or_skip() {
        return;
    }
    let lab = Namespace::create("service").unwrap();
    let script = "readlink /proc/self/ns/net; echo devices $(ls /sys/class/net); echo word $WORD; pwd; exec sleep 60";
    let service = Service::start(&Launch {
        namespace: Some(&lab),
        env: vec![("WORD".to_owned(), "given".to_owned())],
        ..shell(script)
    })
    .unwrap();
    let here = std::env::current_dir().unwrap().display().to_string();
    let inode = rungwise_host::Host::netns(&lab).unwrap();
    for line in [format!("net:[{inode}]"), "word given".to_owned(), here] {
        service.wait_ready(&Ready::Line(line), LONG).unwrap();
    }
    let devices = service
        .wait_ready(&Ready::Line("devices".to_owned()), LONG)
        .unwrap()
        .unwrap();
    assert!(
        devices.contains("lo") && !devices.contains("eth0"),
        "{devices}"
    );
}

#[test]
fn readiness_is_probed_where_the_service_lives() {
    if !root_or_skip() {
        return;
    }
    let lab = Namespace::create("probe").unwrap();
    // The test's own socket stands for the service's: what matters is where the probe comes from.
    let socket = lab
        .run(|| std::net::UdpSocket::bind("127.0.0.1:0"))
        .unwrap();
    let address = socket.local_addr().unwrap();
    let echo = std::thread::spawn(move || {
        let mut buffer = [0; 16];
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        socket.send_to(&buffer[..length], from).unwrap();
    });
    let service = Service::start(&Launch {
        namespace: Some(&lab),
        ..shell("exec sleep 60")
    })
    .unwrap();
    let ready = Ready::Udp {
        address,
        request: b"hello".to_vec(),
    };
    service.wait_ready(&ready, LONG).unwrap();
    echo.join().unwrap();
}

#[test]
fn an_http_answer_is_asked_for_where_the_service_lives_until_it_is_a_good_one() {
    use std::io::{Read as _, Write as _};
    if !root_or_skip() {
        return;
    }
    let lab = Namespace::create("http").unwrap();
    // The test's own socket stands for the service's.
    let listener = lab
        .run(|| std::net::TcpListener::bind("127.0.0.1:0"))
        .unwrap();
    let url = format!("http://{}/health", listener.local_addr().unwrap());
    let answers = std::thread::spawn(move || {
        for answer in ["503 Starting", "500 Broken", "204 No Content"] {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 512];
            let length = stream.read(&mut request).unwrap();
            assert!(request[..length].starts_with(b"GET /health HTTP/1.1"));
            write!(stream, "HTTP/1.1 {answer}\r\n\r\n").unwrap();
        }
    });
    let service = Service::start(&Launch {
        namespace: Some(&lab),
        ..shell("exec sleep 60")
    })
    .unwrap();
    let ready = Ready::Http(Url::parse(&url).unwrap());
    service.wait_ready(&ready, LONG).unwrap();
    answers.join().unwrap();
    // The listener is gone.
    let error = service
        .wait_ready(&ready, Duration::from_millis(120))
        .unwrap_err()
        .to_string();
    assert!(error.contains(&url) && error.contains("refused"), "{error}");
}
