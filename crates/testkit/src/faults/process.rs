//! Real services (nginx, redis, `PostgreSQL`) with one fault each: held up by their own threads, by others, by what they depend on.
#![expect(
    clippy::disallowed_methods,
    reason = "writes the configurations of services and answers after a time, as a service would"
)]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rungwise_host::namespace::Namespace;
use rungwise_host::process::{Launch, Ready, Service};
use rungwise_host::{Host as _, live::Live};
use tempfile::TempDir;

use super::lab::{Lab, Planted};
use super::{Fault, How, Result, Says, acts, watches};
use crate::Pair;

/// Where the services of this file listen.
const HTTP: u16 = 8080;
pub(super) const REDIS: u16 = 6379;
const POSTGRES: u16 = 5433;

/// A service starts in a moment, or on a busy machine in a few.
const STARTS_WITHIN: Duration = Duration::from_secs(30);

const fn first(rule: &'static str, about: &'static str) -> Says {
    Says {
        first: true,
        ..acts(rule, about)
    }
}

pub(super) fn start(namespace: &Namespace, argv: &[&str]) -> Result<Service> {
    Ok(Service::start(&Launch {
        argv: argv.iter().map(ToString::to_string).collect(),
        namespace: Some(namespace),
        ..Launch::default()
    })?)
}

pub(super) fn ready(service: &Service, port: u16) -> Result<()> {
    let address = (Pair::SERVER, port).into();
    service.wait_ready(&Ready::Tcp(address), STARTS_WITHIN)?;
    Ok(())
}

/// nginx with this many workers; `main` and `location` are lines of its configuration. `with` runs it.
fn nginx(
    namespace: &Namespace,
    with: &[&str],
    (workers, main, location): (usize, &str, &str),
) -> Result<(Service, TempDir)> {
    let folder = TempDir::new()?;
    let at = folder.path().display();
    let file = folder.path().join("nginx.conf");
    let text = format!(
        "daemon off; user root; worker_processes {workers}; pid {at}/pid; error_log {at}/error.log; {main}\n\
         events {{ worker_connections 4096; }}\n\
         http {{ access_log off; server {{ listen {HTTP} backlog=1024; keepalive_requests 100000000; \
         location / {{ {location} }} }} }}\n"
    );
    std::fs::write(&file, text)?;
    let file = file.display().to_string();
    let argv: Vec<&str> = with.iter().copied().chain(["nginx", "-c", &file]).collect();
    let service = start(namespace, &argv)?;
    ready(&service, HTTP)?;
    Ok((service, folder))
}

const HELLO: &str = "return 200 hello;";

fn redis(namespace: &Namespace, with: &[&str]) -> Result<Service> {
    let port = REDIS.to_string();
    let own = [
        "redis-server",
        "--port",
        &port,
        "--save",
        "",
        "--appendonly",
        "no",
    ];
    let argv: Vec<&str> = with
        .iter()
        .copied()
        .chain(own)
        .chain(["--protected-mode", "no"])
        .collect();
    let service = start(namespace, &argv)?;
    ready(&service, REDIS)?;
    Ok(service)
}

/// HTTP requests in a closed loop over this many connections.
fn wrk(namespace: &Namespace, connections: usize) -> Result<Service> {
    let url = format!("http://{}:{HTTP}/", Pair::SERVER);
    let connections = connections.to_string();
    start(
        namespace,
        &["wrk", "-t", "1", "-c", &connections, "-d", "120s", &url],
    )
}

fn gets(namespace: &Namespace, connections: usize) -> Result<Service> {
    // A script of a few hundred commands: the server works much longer on it than the client does.
    let script = "for i=1,300 do redis.call('get','k') end return 1";
    gets_of(namespace, connections, &["eval", script, "0"])
}

/// One command of redis, again and again.
pub(super) fn gets_of(
    namespace: &Namespace,
    connections: usize,
    command: &[&str],
) -> Result<Service> {
    let (host, port) = (Pair::SERVER.to_string(), REDIS.to_string());
    let connections = connections.to_string();
    let own = [
        "redis-benchmark",
        "-h",
        &host,
        "-p",
        &port,
        "-c",
        &connections,
    ];
    let argv: Vec<&str> = own
        .into_iter()
        .chain(["-n", "1000000000", "-q"])
        .chain(command.iter().copied())
        .collect();
    start(namespace, &argv)
}

/// The workers of a master.
fn workers(master: &Service) -> Result<Vec<u32>> {
    let pid = master.pid();
    let file = format!("/proc/{pid}/task/{pid}/children");
    let text = Live.text(Path::new(&file))?;
    Ok(text
        .split_ascii_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect())
}

pub(super) const STOPPED: Fault = Fault {
    id: "service: stopped worker",
    planted: "nginx with two workers under wrk, one of them stopped by SIGSTOP.",
    speaks: &[first("process-stopped", "process/*")],
    may: WAITS,
    how: How::Here(stopped),
};

/// What else may be said of a service under full load on two CPUs that it shares with its client.
const WAITS: &[(&str, &str)] = &[
    ("thread-saturated", "its worker uses the CPU that it gets"),
    ("clients-unread", "clients wait for what is held up"),
    ("runq-delay", "service and client share two CPUs"),
    (
        "slab-hot",
        "packets are made and freed, and little else is done",
    ),
    (
        "syscall-bound",
        "the client asks as fast as the machine lets it",
    ),
    ("tcp-listen-overflow", "connections are not accepted"),
    ("tcp-recvq-pile", "the socket is not read"),
    ("tcp-rwnd-limited", "the socket is not read"),
];

fn stopped(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let (master, folder) = nginx(&server, &[], (2, "", HELLO))?;
    let load = wrk(&client, 20)?;
    let worker = *workers(&master)?.first().ok_or("nginx has no worker")?;
    let pid = rustix::process::Pid::from_raw(i32::try_from(worker)?).ok_or("no pid")?;
    rustix::process::kill_process(pid, rustix::process::Signal::STOP)?;
    let pid = master.pid();
    Ok(Planted::in_namespace(server)
        .suffered_by(pid)
        .keep(load)
        .keep((master, folder))
        .keep(client))
}

pub(super) const TRACED: Fault = Fault {
    id: "service: traced by strace",
    planted: "nginx with two workers under wrk, and strace attached to both workers.",
    speaks: &[first("process-traced", "process/*")],
    may: WAITS,
    how: How::Here(traced),
};

fn traced(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let (master, folder) = nginx(&server, &[], (2, "", HELLO))?;
    let pids: Vec<String> = workers(&master)?.iter().map(ToString::to_string).collect();
    let mut argv = vec!["strace", "-o", "/dev/null"];
    for pid in &pids {
        argv.extend(["-p", pid.as_str()]);
    }
    let strace = start(&server, &argv)?;
    let load = wrk(&client, 20)?;
    let pid = master.pid();
    Ok(Planted::in_namespace(server)
        .suffered_by(pid)
        .keep(load)
        .keep(strace)
        .keep((master, folder))
        .keep(client))
}

pub(super) const ONE_THREAD: Fault = Fault {
    id: "service: one thread at its limit",
    planted: "redis, whose commands run in one thread, with a CPU of its own and a client that asks as fast as it can. Its nice value \
              of -15 keeps other work on the machine out of its way.",
    speaks: &[first("thread-saturated", "process/PID")],
    may: WAITS,
    how: How::Here(one_thread),
};

fn one_thread(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let service = redis(&server, &["taskset", "-c", "1", "nice", "-n", "-15"])?;
    let load = gets(&client, 50)?;
    for process in std::fs::read_dir(format!("/proc/{}/task", load.pid()))?.flatten() {
        let tid = process.file_name().to_string_lossy().parse()?;
        Live.pin_thread(load.pid(), tid, &[0])?;
    }
    let pid = service.pid();
    Ok(Planted::in_namespace(server)
        .suffered_by(pid)
        .keep(load)
        .keep(service)
        .keep(client))
}

pub(super) const TURNS: Fault = Fault {
    id: "service: threads take turns",
    planted: "A threaded server of Python that computes for each request, with wrk: one thread at a time has the global lock.",
    speaks: &[first("thread-saturated", "process/PID")],
    may: WAITS,
    how: How::Here(turns),
};

fn turns(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let script = include_str!("turns.py");
    let service = start(&server, &["python3", "-c", script, &HTTP.to_string()])?;
    ready(&service, HTTP)?;
    let load = wrk(&client, 16)?;
    let pid = service.pid();
    let planted = Planted::in_namespace(server).suffered_by(pid);
    Ok(planted.keep((load, service)).keep(client))
}

pub(super) const DESCRIPTORS: Fault = Fault {
    id: "service: descriptors used up",
    planted: "nginx with one worker that may open 64 files (a soft limit, as raising a hard one needs CAP_SYS_RESOURCE), and wrk with \
              200 connections.",
    speaks: &[first("descriptors-full", "process/PID")],
    may: WAITS,
    how: How::Here(descriptors),
};

fn descriptors(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let (master, folder) = nginx(&server, &["prlimit", "--nofile=64:1024"], (1, "", HELLO))?;
    let load = wrk(&client, 200)?;
    let pid = *workers(&master)?.first().ok_or("nginx has no worker")?;
    Ok(Planted::in_namespace(server)
        .suffered_by(pid)
        .costing(|namespace| Ok(namespace.run(refused)))
        .keep(load)
        .keep((master, folder))
        .keep(client))
}

/// Share of new clients that get no reply within half a second.
fn refused() -> f64 {
    const CLIENTS: u32 = 10;
    let replied = |_: &u32| {
        let reply = || -> std::io::Result<usize> {
            let mut client = TcpStream::connect((Pair::SERVER, HTTP))?;
            client.set_read_timeout(Some(Duration::from_millis(500)))?;
            client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")?;
            client.read(&mut [0; 4096])
        };
        reply().is_ok_and(|length| length > 0)
    };
    let good = (0..CLIENTS).filter(replied).count();
    1.0 - good as f64 / f64::from(CLIENTS)
}

/// Threads of this process that end when it is dropped.
#[derive(Debug)]
struct Until {
    over: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Until {
    fn new() -> Self {
        Self {
            over: Arc::new(AtomicBool::new(false)),
            threads: Vec::new(),
        }
    }

    fn with(mut self, work: impl Fn(&AtomicBool) + Send + 'static) -> Self {
        let over = Arc::clone(&self.over);
        self.threads.push(std::thread::spawn(move || work(&over)));
        self
    }
}

impl Drop for Until {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

pub(super) const LOCK: Fault = Fault {
    id: "service: threads behind one mutex",
    planted: "32 threads of one process that hold the same mutex for 5 ms and do without it for 1 ms.",
    speaks: &[first("user-lock", "process/PID")],
    may: WAITS,
    how: How::Here(lock),
};

fn lock(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let mutex = Arc::new(Mutex::new(()));
    let threads = (0..32).fold(Until::new(), |threads, _| {
        let mutex = Arc::clone(&mutex);
        threads.with(move |over| {
            while !over.load(Ordering::Relaxed) {
                if let Ok(held) = mutex.lock() {
                    std::thread::sleep(Duration::from_millis(5));
                    drop(held);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        })
    });
    let pid = std::process::id();
    Ok(Planted::in_namespace(server)
        .suffered_by(pid)
        .keep(threads)
        .keep(client))
}

pub(super) const UPSTREAM: Fault = Fault {
    id: "service: slow upstream",
    planted: "nginx that passes requests on to a server which answers each after 150 to 350 ms, and wrk with 20 connections.",
    speaks: &[first("upstream-slow", "process/*")],
    may: WAITS,
    how: How::Here(upstream),
};

fn upstream(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let listener = client.run(|| TcpListener::bind((Pair::CLIENT, 9001)))?;
    listener.set_nonblocking(true)?;
    let backend = Until::new().with(move |over| {
        let mut open: Vec<(Instant, TcpStream)> = Vec::new();
        while !over.load(Ordering::Relaxed) {
            while let Ok((connection, _)) = listener.accept() {
                open.push((Instant::now(), connection));
            }
            // nginx makes a connection for each request.
            // Answers take different times, so that requests do not march in step.
            let due = |(since, connection): &(Instant, TcpStream)| {
                let port = connection.peer_addr().map_or(0, |peer| peer.port());
                since.elapsed() >= Duration::from_millis(150 + u64::from(port) * 7 % 200)
            };
            let answered: Vec<_> = open.extract_if(.., |one| due(one)).collect();
            for (_, mut connection) in answered {
                let _ = connection.read(&mut [0; 4096]);
                let _ = connection.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let pass = format!("proxy_pass http://{}:9001;", Pair::CLIENT);
    let (master, folder) = nginx(&server, &[], (2, "", &pass))?;
    let load = wrk(&client, 20)?;
    let pid = master.pid();
    Ok(Planted::in_namespace(server)
        .suffered_by(pid)
        .keep(load)
        .keep((master, folder))
        .keep(backend)
        .keep(client))
}

pub(super) const SILENT: Fault = Fault {
    id: "service: upstream that does not answer",
    planted: "nginx that passes requests on to an address without a host, and wrk with 20 connections.",
    speaks: &[first("connect-unanswered", "process/*")],
    may: WAITS,
    how: How::Here(silent),
};

fn silent(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let (master, folder) = nginx(&server, &[], (2, "", "proxy_pass http://10.78.0.9:80;"))?;
    let load = wrk(&client, 20)?;
    let pid = master.pid();
    Ok(Planted::in_namespace(server)
        .suffered_by(pid)
        .keep(load)
        .keep((master, folder))
        .keep(client))
}

pub(super) const ROW: Fault = Fault {
    id: "service: sessions that update one row",
    planted: "PostgreSQL, and pgbench with 16 sessions that update the same row and hold it for 20 ms.",
    speaks: &[first("database-lock", "process/PID")],
    may: WAITS,
    how: How::Here(row),
};

const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";

fn row(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let folder = TempDir::new()?;
    let path = folder.path().display().to_string();
    let (initdb, postgres) = (format!("{PROGRAMS}/initdb"), format!("{PROGRAMS}/postgres"));
    let (data, port) = (format!("{path}/data"), POSTGRES.to_string());
    let as_user = [
        "setpriv",
        "--reuid=postgres",
        "--regid=postgres",
        "--clear-groups",
    ];
    finish(&server, &["chown", "postgres", &path])?;
    let made = [initdb.as_str(), "-D", &data, "-A", "trust", "-N"];
    finish(&server, &[&as_user[..], &made].concat())?;
    std::fs::write(
        folder.path().join("data/pg_hba.conf"),
        "host all all all trust\n",
    )?;
    let runs = [
        postgres.as_str(),
        "-D",
        &data,
        "-k",
        "",
        "-p",
        &port,
        "-c",
        "listen_addresses=*",
    ];
    let service = start(&server, &[&as_user[..], &runs].concat())?;
    ready(&service, POSTGRES)?;
    let host = Pair::SERVER.to_string();
    let to = ["-h", &host, "-p", &port, "-U", "postgres"];
    finish(
        &client,
        &[&["pgbench"], &to[..], &["-i", "-q", "postgres"]].concat(),
    )?;
    let script = folder.path().join("row.sql");
    std::fs::write(
        &script,
        "begin; update pgbench_accounts set abalance = abalance + 1 where aid = 1; select pg_sleep(0.02); commit;\n",
    )?;
    let script = script.display().to_string();
    let how = ["-n", "-c", "16", "-T", "120", "-f", &script, "postgres"];
    let load = start(&client, &[&["pgbench"], &to[..], &how].concat())?;
    let pid = service.pid();
    Ok(Planted::in_namespace(server)
        .suffered_by(pid)
        .keep(load)
        .keep((service, folder))
        .keep(client))
}

/// Runs a program to its end.
fn finish(namespace: &Namespace, argv: &[&str]) -> Result<()> {
    let mut service = start(namespace, argv)?;
    let deadline = Instant::now() + STARTS_WITHIN;
    while service.alive() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    let words = service.last_words();
    let status = service.stop(Duration::ZERO)?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{}: {status}: {words}", argv.join(" ")).into())
    }
}

pub(super) const FORKS: Fault = Fault {
    id: "service: short-lived processes beside it",
    planted: "A shell that starts /bin/true again and again.",
    // The other CPU is idle.
    speaks: &[watches("fork-storm", "process/*")],
    may: WAITS,
    how: How::Here(forks),
};

fn forks(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let shell = start(&server, &["sh", "-c", "while :; do /bin/true; done"])?;
    Ok(Planted::in_namespace(server).keep(shell).keep(client))
}

pub(super) const LOW: Fault = Fault {
    id: "service: low priority",
    planted: "redis under SCHED_IDLE beside three processes that spin.",
    speaks: &[first("priority-low", "process/PID")],
    may: WAITS,
    how: How::Here(low),
};

fn low(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let service = redis(&server, &["chrt", "-i", "0"])?;
    let spinning = (0..3)
        .map(|_| start(&server, &["sh", "-c", "while :; do :; done"]))
        .collect::<Result<Vec<_>>>()?;
    let load = gets(&client, 5)?;
    let pid = service.pid();
    Ok(Planted::in_namespace(server)
        .suffered_by(pid)
        .keep(load)
        .keep((service, spinning))
        .keep(client))
}

pub(super) const HEALTHY: Fault = Fault {
    id: "service: healthy nginx",
    planted: "nginx with two workers and 20 requests every 4 ms, over connections that stay open.",
    speaks: &[],
    may: &[],
    how: How::Here(healthy),
};

fn healthy(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let (master, folder) = nginx(&server, &[], (2, "", HELLO))?;
    let connections = client.run(|| -> std::io::Result<Vec<_>> {
        (0..20)
            .map(|_| TcpStream::connect((Pair::SERVER, HTTP)))
            .collect()
    })?;
    let load = Until::new().with(move |over| {
        while !over.load(Ordering::Relaxed) {
            for mut connection in &connections {
                let _ = connection.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            }
            for mut connection in &connections {
                let _ = connection.read(&mut [0; 4096]);
            }
            std::thread::sleep(Duration::from_millis(4));
        }
    });
    let pid = master.pid();
    Ok(Planted::in_namespace(server)
        .suffered_by(pid)
        .keep(load)
        .keep((master, folder))
        .keep(client))
}

pub(super) const UNIX: Fault = Fault {
    id: "full queue of a Unix socket",
    planted: "An application that takes a connection from its Unix socket every 20 ms, with room for one more, and six callers.",
    speaks: &[first("unix-listen-overflow", "port/unix:*")],
    may: WAITS,
    how: How::Here(unix),
};

fn unix(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let folder = tempfile::tempdir()?;
    let script = "use IO::Socket::UNIX; use Time::HiRes 'sleep'; my $path = $ARGV[0]; \
        my $queue = IO::Socket::UNIX->new(Local => $path, Listen => 1) or die; \
        for (1 .. 6) { if (fork == 0) { my $parent = getppid; \
            while (getppid == $parent) { my $caller = IO::Socket::UNIX->new(Peer => $path); sysread $caller, my $answer, 9 if $caller } exit } } \
        while (1) { my $caller = $queue->accept or next; sleep 0.02; syswrite $caller, 'done'; close $caller }";
    let path = folder.path().join("app.sock");
    let path = path.to_str().ok_or("the path is no text")?.to_owned();
    let application = start(&server, &["perl", "-e", script, &path])?;
    Ok(Planted::in_namespace(server)
        .keep(application)
        .keep(folder)
        .keep(client))
}

pub(super) const UNIX_DEAD: Fault = Fault {
    id: "dead upstream behind a Unix socket",
    planted: "nginx with one worker that passes requests on to a Unix socket whose application has exited and left the file, and wrk with \
              four connections: every answer is 502.",
    speaks: &[first("connect-failed", "process/*")],
    may: WAITS,
    how: How::Here(unix_dead),
};

fn unix_dead(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let left = TempDir::new()?;
    let path = left.path().join("app.sock");
    drop(std::os::unix::net::UnixListener::bind(&path)?);
    let pass = format!("proxy_pass http://unix:{}:/;", path.display());
    let (master, folder) = nginx(&server, &[], (1, "", &pass))?;
    let load = wrk(&client, 4)?;
    let pid = master.pid();
    Ok(Planted::in_namespace(server)
        .suffered_by(pid)
        .keep(load)
        .keep((master, folder, left))
        .keep(client))
}

pub(super) const UNIX_STOPPED: Fault = Fault {
    id: "service: stopped behind a Unix socket",
    planted: "An application whose two workers, which share its Unix socket, are stopped by SIGSTOP, and six callers that wait in its queue.",
    speaks: &[first("process-stopped", "process/*")],
    may: WAITS,
    how: How::Here(unix_stopped),
};

fn unix_stopped(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let folder = tempfile::tempdir()?;
    let script = "use IO::Socket::UNIX; my $path = $ARGV[0]; \
        my $queue = IO::Socket::UNIX->new(Local => $path, Listen => 50) or die; \
        for (1 .. 2) { if (fork == 0) { my $parent = getppid; \
            while (getppid == $parent) { my $caller = $queue->accept or next; syswrite $caller, 'done'; close $caller } exit } } \
        sleep 3600";
    let path = folder.path().join("app.sock");
    let path = path.to_str().ok_or("the path is no text")?.to_owned();
    let application = start(&server, &["perl", "-e", script, &path])?;
    application.wait_ready(&Ready::Unix(path.clone().into()), STARTS_WITHIN)?;
    let pid = application.pid();
    for process in workers(&application)? {
        let process = rustix::process::Pid::from_raw(i32::try_from(process)?).ok_or("no pid")?;
        rustix::process::kill_process(process, rustix::process::Signal::STOP)?;
    }
    let script = "use IO::Socket::UNIX; my @callers = map { IO::Socket::UNIX->new(Peer => $ARGV[0]) } 1 .. 6; sleep 3600";
    let callers = start(&server, &["perl", "-e", script, &path])?;
    Ok(Planted::in_namespace(server)
        .suffered_by(pid)
        .keep((application, callers))
        .keep(folder)
        .keep(client))
}

pub(super) const RESTARTS: Fault = Fault {
    id: "service that starts again and again",
    planted: "A service that listens for 300 ms, and is not there for the next 100 ms.",
    speaks: &[first("service-restarts", "port/tcp/0.0.0.0:9000")],
    may: WAITS,
    how: How::Here(restarts),
};

fn restarts(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let script = "use IO::Socket::INET; use Time::HiRes 'sleep'; while (1) { \
        my $socket = IO::Socket::INET->new(LocalPort => 9000, Listen => 5, ReuseAddr => 1) or die; \
        sleep 0.3; close $socket; sleep 0.1 }";
    let service = start(&server, &["perl", "-e", script])?;
    Ok(Planted::in_namespace(server).keep(service).keep(client))
}

pub(super) const RESOLVER_LATE: Fault = Fault {
    id: "service: late resolver",
    planted: "A program that looks up a name again and again, with a connected UDP socket as the resolver of the C library has it; the DNS server \
              answers after 120 ms.",
    speaks: &[first("dns-unanswered", "process/PID")],
    may: &[],
    how: How::Here(resolver_late),
};

fn resolver_late(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let script = r#"
        my $server = IO::Socket::INET->new(LocalAddr => $ARGV[0], LocalPort => 53, Proto => "udp") or die $!;
        $| = 1;
        print "ready\n";
        while (1) {
            my $to = recv $server, my $query, 512, 0;
            select undef, undef, undef, 0.12;
            send $server, $query, 0, $to;
        }"#;
    let address = Pair::CLIENT.to_string();
    let inet = "-MIO::Socket::INET";
    let late = start(&client, &["perl", inet, "-e", script, &address])?;
    late.wait_ready(&Ready::Line("ready".to_owned()), STARTS_WITHIN)?;
    let script = r#"while (1) {
        my $socket = IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => 53, Proto => "udp") or die $!;
        send $socket, "\x12\x34\1\0\0\1\0\0\0\0\0\0\3www\7example\0\0\1\0\1", 0;
        my $waits = "";
        vec($waits, fileno $socket, 1) = 1;
        select $waits, undef, undef, 2;
        select undef, undef, undef, 0.05;
    }"#;
    let service = start(&server, &["perl", inet, "-e", script, &address])?;
    let pid = service.pid();
    Ok(Planted::in_namespace(server)
        .suffered_by(pid)
        .keep((service, late))
        .keep(client))
}

pub(super) const RESOLVER: Fault = Fault {
    id: "service: dead resolver",
    planted: "A program that looks up a name, with a connected UDP socket as the resolver of the C library has it, waits 0.9 s and looks it up \
              again; the DNS server never answers.",
    speaks: &[first("dns-unanswered", "process/PID")],
    may: &[],
    how: How::Here(resolver),
};

fn resolver(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    // Nobody reads from it.
    let dead = client.run(|| UdpSocket::bind((Pair::CLIENT, 53)))?;
    let script = r#"while (1) {
        my $socket = IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => 53, Proto => "udp") or die $!;
        send $socket, "\x12\x34\1\0\0\1\0\0\0\0\0\0\3www\7example\0\0\1\0\1", 0;
        select undef, undef, undef, 0.9;
    }"#;
    let address = Pair::CLIENT.to_string();
    let service = start(
        &server,
        &["perl", "-MIO::Socket::INET", "-e", script, &address],
    )?;
    let pid = service.pid();
    Ok(Planted::in_namespace(server)
        .suffered_by(pid)
        .keep(service)
        .keep(dead)
        .keep(client))
}

pub(super) const HUNG: Fault = Fault {
    id: "service: hangs",
    planted: "A server that answers the first request of each connection and never the second, as when all its threads wait for one lock; \
              eight requests have been open for 6 s, and another comes every second.",
    speaks: &[Says {
        first: true,
        ..watches("unexplained-wait", "process/PID")
    }],
    may: &[],
    how: How::Here(hung),
};

fn hung(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let inet = "-MIO::Socket::INET";
    let script = r"
        my $queue = IO::Socket::INET->new(LocalPort => $ARGV[0], Listen => 64, ReuseAddr => 1) or die $!;
        my @held;
        while (my $caller = $queue->accept) {
            sysread $caller, my $request, 64;
            syswrite $caller, 'done';
            sysread $caller, $request, 64;
            push @held, $caller;
        }";
    let service = start(&server, &["perl", inet, "-e", script, &HTTP.to_string()])?;
    ready(&service, HTTP)?;
    let script = r#"
        my @held;
        while (1) {
            my $socket = IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => $ARGV[1]) or die $!;
            syswrite $socket, "GET /first";
            sysread $socket, my $answer, 64;
            select undef, undef, undef, 0.03;
            syswrite $socket, "GET /second";
            push @held, $socket;
            sleep 1 if @held >= 8;
        }"#;
    let (address, port) = (Pair::SERVER.to_string(), HTTP.to_string());
    let callers = start(&client, &["perl", inet, "-e", script, &address, &port])?;
    std::thread::sleep(Duration::from_secs(6));
    let pid = service.pid();
    Ok(Planted::in_namespace(server)
        .suffered_by(pid)
        .keep((service, callers))
        .keep(client))
}
