//! How a service shows that it can take work, and the probes that ask it.
//!
//! A probe is one attempt and is bounded in time and in bytes; the service repeats it until its deadline. HTTP is spoken
//! by hand: of the answer only the status line matters (RFC 9112, section 4), and a client library would weigh more than
//! these lines.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::PROBE_EVERY;
use super::listening::Listening;

/// Longest that one HTTP answer may take: a guess. The first request to a JVM can take seconds, and an attempt that is
/// given up starts the work anew.
const HTTP_WITHIN: Duration = Duration::from_secs(5);
/// Bytes of an answer that are read: a status line is shorter, and what is longer is none.
const STATUS_LINE: usize = 512;
/// Characters of an answer that a message quotes.
const QUOTED: usize = 60;

/// How a service shows that it can take work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    /// A line on standard output that begins so.
    Line(String),
    /// A line on standard output or error that contains this.
    Log(String),
    /// Any reply to this request, which is sent again every 50 ms.
    Udp {
        /// Where to.
        address: SocketAddr,
        /// The datagram.
        request: Vec<u8>,
    },
    /// An accepted connection.
    Tcp(SocketAddr),
    /// An accepted connection to the Unix socket with this path.
    Unix(PathBuf),
    /// An answer with a status of 200 to 399.
    Http(Url),
    /// Not ended after this time; the weakest sign.
    Alive(Duration),
}

impl Ready {
    /// The sign that did not come; `last` is the result of the last attempt.
    pub(super) fn awaited(&self, last: Option<&str>) -> String {
        let missed = match self {
            Self::Line(prefix) => format!("no line on stdout starts with '{prefix}'"),
            Self::Log(text) => format!("no line of output contains '{text}'"),
            Self::Udp { address, .. } => format!("no reply came from udp {address}"),
            Self::Tcp(address) => format!("no connection to tcp {address} was accepted"),
            Self::Unix(path) => {
                format!("no connection to {} was accepted", path.display())
            }
            Self::Http(url) => format!("no answer with status 200 to 399 came from {url}"),
            Self::Alive(time) => format!("it did not stay alive for {} s", time.as_secs_f64()),
        };
        match last {
            Some(last) if !last.is_empty() => format!("{missed} (last attempt: {last})"),
            _ => missed,
        }
    }

    /// The remedy for a service that did not become ready and listens on these.
    pub(super) fn remedy(&self, listening: &[Listening]) -> String {
        let (protocol, address) = match self {
            Self::Line(_) | Self::Log(_) => {
                return "correct the line that is awaited, or allow more time with ready_within"
                    .to_owned();
            }
            Self::Alive(_) => return "see its output and its log".to_owned(),
            Self::Unix(path) => {
                return format!(
                    "have it listen on {}, or allow more time with ready_within",
                    path.display()
                );
            }
            Self::Udp { address, .. } => ("udp", *address),
            Self::Tcp(address) => ("tcp", *address),
            Self::Http(url) => ("tcp", url.address),
        };
        if listening.iter().any(|one| one.serves(protocol, address)) {
            "it listens there and does not answer: check its log, or allow more time with ready_within"
                .to_owned()
        } else if listening.is_empty() {
            "check its output and its log, or allow more time with ready_within".to_owned()
        } else {
            format!(
                "have it listen on {protocol} {address}, or correct the address at which the scenario expects it"
            )
        }
    }

    /// One attempt, within `left` of the time for all of them: nothing where the service is ready, else what came instead.
    /// An error means that the attempt could not be made at all.
    pub(super) fn attempt(&self, left: Duration) -> io::Result<Option<String>> {
        // Refused until the port is open; that is the question, not an error.
        let asked = match self {
            Self::Udp { address, request } => return udp_reply(*address, request),
            Self::Tcp(address) => TcpStream::connect_timeout(address, PROBE_EVERY).map(drop),
            // At once, or refused: it waits only where a queue is full, and the first connection there ends the attempts.
            Self::Unix(path) => UnixStream::connect(path).map(drop),
            Self::Http(url) => {
                let within = HTTP_WITHIN.min(left).max(PROBE_EVERY);
                return Ok(match url.status_line(within) {
                    Ok(line) if is_success(&line) => None,
                    Ok(line) => Some(quoted(&line)),
                    Err(error) => Some(error.to_string()),
                });
            }
            // These are waited for, not asked for.
            Self::Line(_) | Self::Log(_) | Self::Alive(_) => Ok(()),
        };
        Ok(asked.err().map(|error| error.to_string()))
    }
}

fn udp_reply(address: SocketAddr, request: &[u8]) -> io::Result<Option<String>> {
    let any: SocketAddr = if address.is_ipv4() {
        ([0; 4], 0).into()
    } else {
        ([0_u16; 8], 0).into()
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(PROBE_EVERY))?;
    let reply = socket
        .send(request)
        .and_then(|_| socket.recv(&mut [0; 1]).map(drop));
    Ok(match reply {
        Ok(()) => None,
        // The plain case: nothing came, which the message says already.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Some(String::new()),
        Err(error) => Some(error.to_string()),
    })
}

/// An address that answers HTTP without TLS: `http://127.0.0.1:8080/health`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    address: SocketAddr,
    /// Host and port as they were written, for the `Host` header.
    authority: String,
    path: String,
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "http://{}{}", self.authority, self.path)
    }
}

impl Url {
    /// Reads an address; why it is none, and what to write.
    pub fn parse(text: &str) -> Result<Self, String> {
        const WRITE: &str = "write http://127.0.0.1:8080/health or http://[::1]:8080/";
        if text.starts_with("https://") {
            return Err(format!(
                "'{text}' needs TLS, which the readiness probe does not speak; use ready_tcp with the address and port"
            ));
        }
        let rest = text
            .strip_prefix("http://")
            .ok_or_else(|| format!("'{text}' does not begin with http://; {WRITE}"))?;
        let (authority, path) = rest
            .find('/')
            .map_or((rest, "/"), |slash| rest.split_at(slash));
        // A name would be looked up by the host's resolver, which the service's namespace may not reach.
        let address = authority.parse::<SocketAddr>().or_else(|_| {
            let host = authority
                .strip_prefix('[')
                .and_then(|inner| inner.strip_suffix(']'))
                .unwrap_or(authority);
            host.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 80))
        });
        let address = address.map_err(|_| {
            format!("'{authority}' in '{text}' is not an IP address with a port; {WRITE}")
        })?;
        // A line break would begin another header.
        if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "the path of '{text}' contains a character that a URL cannot hold; escape it as %20"
            ));
        }
        Ok(Self {
            address,
            authority: authority.to_owned(),
            path: path.split('#').next().unwrap_or("/").to_owned(),
        })
    }

    /// The first line of the answer to one request.
    fn status_line(&self, within: Duration) -> io::Result<String> {
        let deadline = Instant::now() + within;
        let left = || match deadline.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::Error::from(io::ErrorKind::TimedOut)),
            left => Ok(left),
        };
        let mut stream = TcpStream::connect_timeout(&self.address, left()?)?;
        stream.set_write_timeout(Some(left()?))?;
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: rungwise\r\nAccept: */*\r\nConnection: close\r\n\r\n",
            self.path, self.authority
        );
        stream.write_all(request.as_bytes())?;
        let mut line = Vec::new();
        let mut bytes = [0; 64];
        while line.len() < STATUS_LINE && !line.contains(&b'\n') {
            // Each read may take only what is left: a service that sends a byte a second gets no more time.
            stream.set_read_timeout(Some(left()?))?;
            match stream.read(&mut bytes) {
                Ok(0) => break,
                Ok(length) => line.extend_from_slice(&bytes[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "connected, but no answer came in time",
                    ));
                }
                Err(error) => return Err(error),
            }
        }
        let end = line.iter().position(|byte| *byte == b'\n');
        line.truncate(end.unwrap_or(line.len()));
        if line.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the connection was closed without an answer",
            ));
        }
        Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
    }
}

/// A status line of HTTP/1 with a status of 200 to 399.
fn is_success(line: &str) -> bool {
    let mut words = line.split(' ');
    let version = words.next().unwrap_or_default();
    let status = words.next().unwrap_or_default();
    version.starts_with("HTTP/1.") && status.len() == 3 && status.starts_with(['2', '3'])
}

/// An answer as a message may hold it: short, and without control characters.
fn quoted(line: &str) -> String {
    let plain: String = line
        .chars()
        .map(|c| if c.is_control() { '.' } else { c })
        .take(QUOTED)
        .collect();
    format!("the answer '{plain}'")
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_url_is_an_address_and_a_path_and_a_mistake_says_what_to_write() {
        let url = Url::parse("http://10.77.0.1:8080/health?deep=1").unwrap();
        assert_eq!(url.address, ([10, 77, 0, 1], 8080).into());
        assert_eq!(url.path, "/health?deep=1");
        assert_eq!(url.to_string(), "http://10.77.0.1:8080/health?deep=1");
        for (text, address) in [
            ("http://127.0.0.1", "127.0.0.1:80"),
            ("http://[::1]/", "[::1]:80"),
            ("http://[::1]:81/", "[::1]:81"),
        ] {
            assert_eq!(Url::parse(text).unwrap().address.to_string(), address);
        }
        for (text, words) in [
            ("https://127.0.0.1/", "ready_tcp"),
            ("127.0.0.1:80", "does not begin with http://"),
            ("http://shop.example/", "not an IP address"),
            ("http://127.0.0.1:99999/", "not an IP address"),
            ("http://127.0.0.1/a b", "%20"),
            ("http://127.0.0.1/\r\nX: y", "%20"),
        ] {
            let error = Url::parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn only_a_status_of_2xx_or_3xx_is_a_success() {
        for line in ["HTTP/1.1 200 OK", "HTTP/1.0 204", "HTTP/1.1 302 Found"] {
            assert!(is_success(line), "{line}");
        }
        for line in [
            "HTTP/1.1 503 Service Unavailable",
            "HTTP/1.1 404 Not Found",
            "HTTP/1.1 20 OK",
            "HTTP/1.1 2000 OK",
            "SSH-2.0-OpenSSH_9.6",
            "+PONG",
            "",
        ] {
            assert!(!is_success(line), "{line}");
        }
    }

    /// What an attempt gives against a server that says `answer` to whoever connects.
    fn attempt(answer: &'static [u8], within: Duration) -> Option<String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 512];
                let length = stream.read(&mut request).unwrap();
                assert!(request[..length].starts_with(b"GET / HTTP/1.1\r\nHost: 127.0.0.1:"));
                // It may have hung up already.
                let _ = stream.write_all(answer);
                if answer.is_empty() {
                    // Says nothing and does not close, until the other side does.
                    let _ = stream.read(&mut request);
                }
            });
            Ready::Http(url).attempt(within).unwrap()
        })
    }

    #[test]
    fn an_answer_is_judged_by_its_first_line_and_bounded_in_bytes_and_time() {
        static FLOOD: [u8; 1 << 16] = [b'x'; 1 << 16];
        let long = Duration::from_secs(20);
        assert_eq!(attempt(b"HTTP/1.1 200 OK\r\n\r\n", long), None);
        let refused = attempt(b"HTTP/1.1 503 Starting\r\n\r\n", long).unwrap();
        assert_eq!(refused, "the answer 'HTTP/1.1 503 Starting'");
        let flood = attempt(&FLOOD, long).unwrap();
        assert!(flood.len() < 100, "{flood}");
        let silent = attempt(b"", Duration::from_millis(60)).unwrap();
        assert!(silent.contains("no answer came in time"), "{silent}");
    }
}
