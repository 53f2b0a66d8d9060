//! A small service of our own with faults that Debian's programs cannot be made to have: `xtask faults-app`.
//!
//! One thread per connection; a request is a line, or the head of HTTP, and so is the reply. What goes wrong is chosen by variables of the
//! environment, each 0 or absent where the service is well.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// What goes wrong; times in microseconds.
#[derive(Debug, Default)]
struct Faults {
    /// Sleeps under one mutex for each request.
    lock_hold: u64,
    /// Computes under one spinlock for each request.
    spin_hold: u64,
    /// A writer keeps the read-write lock that requests read, so much of each 20 ms.
    writer_hold: u64,
    /// Sleeps before each accept.
    accept_delay: u64,
    /// Sleeps before each reply.
    delay: u64,
    /// Computes for each request.
    work: u64,
    /// Writes a line to this file and syncs it, each so many requests.
    sync_every: u64,
    /// Reads a piece of the file at a random place, for each request.
    reads: u64,
    /// Touches so many random pages of memory for each request.
    pages: u64,
    /// Starts so many threads for each request.
    threads: u64,
    /// Sends replies in two pieces, with Nagle's algorithm, each so many requests.
    split_every: u64,
    /// Closes without reading what came, each so many requests.
    reset_every: u64,
    /// Asks an address by UDP before a reply, and waits so long for an answer, each so many requests.
    ask_timeout: u64,
    ask_every: u64,
}

struct App {
    faults: Faults,
    lock: Mutex<()>,
    rwlock: RwLock<()>,
    spin: AtomicBool,
    count: AtomicU64,
    memory: Vec<AtomicU64>,
    file: Option<Mutex<File>>,
    ask: Option<String>,
}

/// Eight bytes each; a page holds so many.
const WORDS_PER_PAGE: usize = 512;
/// Bytes read at once.
const PIECE: usize = 64 * 1024;

/// Serves for ever.
pub fn serve(listen: &str) -> Result<()> {
    let number = |name: &str| {
        let text = std::env::var(name).ok();
        text.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0)
    };
    let faults = Faults {
        lock_hold: number("LOCK_HOLD"),
        spin_hold: number("SPIN_HOLD"),
        writer_hold: number("WRITER_HOLD"),
        accept_delay: number("ACCEPT_DELAY"),
        delay: number("DELAY"),
        work: number("WORK"),
        sync_every: number("SYNC_EVERY"),
        reads: number("READS"),
        pages: number("PAGES"),
        threads: number("THREADS"),
        split_every: number("SPLIT_EVERY"),
        reset_every: number("RESET_EVERY"),
        ask_timeout: number("ASK_TIMEOUT"),
        ask_every: number("ASK_EVERY"),
    };
    let file = std::env::var("FILE").ok().map(|name| {
        let mut options = OpenOptions::new();
        let opened = options.read(true).append(true).create(true).open(&name);
        opened
            .map(Mutex::new)
            .with_context(|| format!("cannot open {name}"))
    });
    let words = number("MEMORY_MB") as usize * 1024 * 1024 / 8;
    let app = Arc::new(App {
        faults,
        lock: Mutex::default(),
        rwlock: RwLock::default(),
        spin: AtomicBool::default(),
        count: AtomicU64::default(),
        // Touched, so that it is there.
        memory: (0..words as u64).map(AtomicU64::new).collect(),
        file: file.transpose()?,
        ask: std::env::var("ASK").ok(),
    });
    let backlog = i32::try_from(number("BACKLOG"))
        .ok()
        .filter(|&length| length > 0);
    let listener =
        TcpListener::bind(listen).with_context(|| format!("cannot listen on {listen}"))?;
    if let Some(length) = backlog {
        // A second listen(2) sets the length anew.
        rustix::net::listen(listener.as_fd(), length).context("cannot set the backlog")?;
    }
    if app.faults.writer_hold > 0 {
        let app = Arc::clone(&app);
        std::thread::spawn(move || {
            loop {
                let held = app.rwlock.write();
                nap(app.faults.writer_hold);
                drop(held);
                nap(20_000_u64.saturating_sub(app.faults.writer_hold));
            }
        });
    }
    loop {
        nap(app.faults.accept_delay);
        // Out of descriptors or of threads: as services do, it goes on.
        let Ok((stream, _)) = listener.accept() else {
            nap(1000);
            continue;
        };
        let app = Arc::clone(&app);
        let builder = std::thread::Builder::new().stack_size(128 * 1024);
        let _ = builder.spawn(move || app.connection(stream));
    }
}

fn nap(microseconds: u64) {
    if microseconds > 0 {
        std::thread::sleep(Duration::from_micros(microseconds));
    }
}

fn compute(microseconds: u64) {
    let began = Instant::now();
    while began.elapsed() < Duration::from_micros(microseconds) {
        std::hint::spin_loop();
    }
}

impl App {
    fn connection(&self, stream: TcpStream) {
        let Ok(mut writer) = stream.try_clone() else {
            return;
        };
        let nagle = self.faults.split_every > 0;
        let _ = writer.set_nodelay(!nagle);
        // What is not read at once stays with the kernel, which resets a connection that is closed over it.
        let room = if self.faults.reset_every > 0 {
            16
        } else {
            8192
        };
        let mut reader = BufReader::with_capacity(room, stream);
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|count| count > 0) {
            let http = line.starts_with("GET /");
            while http && !line.ends_with("\r\n\r\n") {
                if !reader.read_line(&mut line).is_ok_and(|count| count > 0) {
                    return;
                }
            }
            let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
            let each = |every: u64| every > 0 && count.is_multiple_of(every);
            if each(self.faults.reset_every) {
                // The client's further bytes stay unread.
                let _ = writer.write_all(b"half");
                return;
            }
            let good = self.answer(count, each(self.faults.sync_every)).is_ok();
            let text = if good { "fine" } else { "ERR cannot write" };
            let reply = if http {
                let status = if good { "200 OK" } else { "500 Failed" };
                format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{text}",
                    text.len()
                )
            } else {
                format!("{text} END\n")
            };
            let split = if each(self.faults.split_every) {
                reply.len() / 2
            } else {
                0
            };
            let (first, second) = reply.as_bytes().split_at(split);
            let sent = writer
                .write_all(first)
                .and_then(|()| writer.write_all(second));
            if sent.is_err() {
                return;
            }
            line.clear();
        }
    }

    fn answer(&self, count: u64, sync: bool) -> Result<()> {
        let faults = &self.faults;
        compute(faults.work);
        nap(faults.delay);
        if faults.lock_hold > 0 {
            let held = self.lock.lock();
            nap(faults.lock_hold);
            drop(held);
        }
        if faults.spin_hold > 0 {
            while self.spin.swap(true, Ordering::Acquire) {
                std::hint::spin_loop();
            }
            compute(faults.spin_hold);
            self.spin.store(false, Ordering::Release);
        }
        if faults.writer_hold > 0 {
            drop(self.rwlock.read());
        }
        // Any walk over the memory will do that is not in order (Knuth's multiplier).
        let mut place = count.wrapping_mul(6_364_136_223_846_793_005);
        for _ in 0..faults.pages {
            place = place
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let pages = self.memory.len() / WORDS_PER_PAGE;
            let page = (place >> 33) as usize % pages.max(1);
            if let Some(word) = self.memory.get(page * WORDS_PER_PAGE) {
                word.fetch_add(1, Ordering::Relaxed);
            }
        }
        let asks = faults.ask_every > 0 && count.is_multiple_of(faults.ask_every);
        let threads: Vec<_> = (0..faults.threads)
            .filter_map(|_| {
                let builder = std::thread::Builder::new().stack_size(64 * 1024);
                builder.spawn(|| nap(2000)).ok()
            })
            .collect();
        for thread in threads {
            let _ = thread.join();
        }
        if let (true, Some(server)) = (asks, &self.ask) {
            ask(server, faults.ask_timeout);
        }
        if let Some(file) = &self.file {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            if faults.reads > 0 {
                let length = file.metadata()?.len().max(PIECE as u64);
                let mut piece = vec![0; PIECE];
                for _ in 0..faults.reads {
                    place = place
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    file.seek(SeekFrom::Start((place >> 16) % (length - PIECE as u64 + 1)))?;
                    let _ = file.read(&mut piece)?;
                }
            } else {
                file.write_all(&[b'x'; 200])?;
                if sync {
                    file.sync_data()?;
                }
            }
        }
        Ok(())
    }
}

/// A query as resolvers send it, and a wait for its answer. The wait for the next server, which answers at once, is omitted.
fn ask(server: &str, timeout: u64) {
    // Header with one question: "db.internal", type A, class IN (RFC 1035, section 4).
    const QUESTION: &[u8] =
        b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x02db\x08internal\x00\x00\x01\x00\x01";
    let Ok(socket) = UdpSocket::bind("0.0.0.0:0") else {
        return;
    };
    let _ = socket.set_read_timeout(Some(Duration::from_micros(timeout)));
    if socket.connect(server).is_ok() && socket.send(QUESTION).is_ok() {
        let _ = socket.recv(&mut [0; 512]);
    }
}
