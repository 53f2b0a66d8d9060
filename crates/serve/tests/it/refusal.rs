//! A kernel that refuses: played by a seccomp filter on the starting thread, which its workers inherit.
#![allow(unsafe_code, reason = "seccomp has no safe door in std")]

use rungwise_serve::udp::Server;
use rungwise_serve::udp::{Config, Error, Io, PathMtu, Pin, Steering, XdpDevice, XdpMode};

use crate::client::{ask, connect, echo};

/// What is refused: a system call by its number, or setsockopt(2) of one option by its level and name.
#[derive(Clone, Copy)]
pub(crate) enum Call {
    Any(libc::c_long),
    Option(i32, i32),
}

/// Runs `work` on a thread for which system call `number` fails with `error`.
fn without<T: Send>(number: libc::c_long, error: i32, work: impl FnOnce() -> T + Send) -> T {
    refusing(Call::Any(number), error, work)
}

/// Runs `work` on a thread for which `call` fails with `error`.
pub(crate) fn refusing<T: Send>(call: Call, error: i32, work: impl FnOnce() -> T + Send) -> T {
    let filtered = move || {
        let insn = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter {
            code: code as u16,
            jt,
            jf,
            k,
        };
        // In struct seccomp_data the number is at offset 0, argument i at 16 + 8 i, its lower half first.
        let compared: &[(u32, u32)] = match call {
            Call::Any(number) => &[(0, number as u32)],
            Call::Option(level, name) => &[
                (0, libc::SYS_setsockopt as u32),
                (24, level as u32),
                (32, name as u32),
            ],
        };
        let mut program = Vec::new();
        for (done, (offset, value)) in compared.iter().enumerate() {
            program.push(insn(
                libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
                *offset,
                0,
                0,
            ));
            // Another value goes to the last instruction: over the loads and jumps that are left, and the refusal.
            let over = 2 * (compared.len() - done - 1) + 1;
            program.push(insn(
                libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
                *value,
                0,
                over as u8,
            ));
        }
        for answer in [
            libc::SECCOMP_RET_ERRNO | error as u32,
            libc::SECCOMP_RET_ALLOW,
        ] {
            program.push(insn(libc::BPF_RET | libc::BPF_K, answer, 0, 0));
        }
        let program = libc::sock_fprog {
            len: program.len() as u16,
            filter: program.as_mut_ptr(),
        };
        // SAFETY: the program outlives the calls, which only read it.
        unsafe {
            assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
            assert_eq!(
                libc::prctl(
                    libc::PR_SET_SECCOMP,
                    libc::SECCOMP_MODE_FILTER,
                    &raw const program
                ),
                0
            );
        }
        work()
    };
    std::thread::scope(|scope| scope.spawn(filtered).join().unwrap())
}

fn plain() -> Config {
    Config::new("127.0.0.1:0".parse().unwrap())
}

/// The error without fallback; with it, a server that still answers and the line that says what happened.
fn refused(config: &Config) -> (Error, String) {
    let error = Server::start(config, echo).unwrap_err();
    let config = Config {
        fallback: true,
        ..config.clone()
    };
    let server = Server::start(&config, echo).unwrap();
    assert_eq!(ask(&connect(server.local_addr()), b"x"), b"x");
    let differing: Vec<_> = server
        .read_backs()
        .iter()
        .filter(|entry| !entry.holds)
        .map(ToString::to_string)
        .collect();
    (error, differing.join("\n"))
}

#[test]
fn without_io_uring_the_error_names_it_and_the_fallback_is_batches() {
    let config = Config {
        io: Io::Uring,
        ..plain()
    };
    let (error, line) = without(libc::SYS_io_uring_setup, libc::ENOSYS, || refused(&config));
    assert!(
        matches!(error, Error::Unsupported { since: "6.1", .. }),
        "{error}"
    );
    assert!(
        line.starts_with("io: io_uring; DIFFERS: batch of 32: no io_uring"),
        "{line}"
    );
}

#[test]
fn without_the_right_to_use_it_io_uring_is_refused_with_a_remedy() {
    let config = Config {
        io: Io::Uring,
        ..plain()
    };
    let (error, _) = without(libc::SYS_io_uring_setup, libc::EPERM, || refused(&config));
    assert!(error.to_string().contains("io_uring_disabled"), "{error}");
}

#[test]
fn without_a_socket_option_the_error_names_it_and_the_server_goes_on_as_configured() {
    let (socket, udp) = (libc::SOL_SOCKET, libc::SOL_UDP);
    let group = Config {
        workers: 2,
        reuseport: true,
        ..plain()
    };
    let plain = plain();
    for (level, name, config, feature, since, instead) in [
        (
            libc::SOL_IP,
            libc::IP_MTU_DISCOVER,
            Config {
                path_mtu: PathMtu::Do,
                ..plain.clone()
            },
            "IP_MTU_DISCOVER",
            "2.6",
            "pmtudisc: do; DIFFERS: the kernel's default: no IP_MTU_DISCOVER",
        ),
        (
            udp,
            libc::UDP_GRO,
            Config {
                gro: true,
                ..plain.clone()
            },
            "UDP_GRO",
            "5.0",
            "gro: 1; DIFFERS: off: no UDP_GRO",
        ),
        (
            udp,
            libc::UDP_SEGMENT,
            Config {
                gso: true,
                ..plain.clone()
            },
            "UDP_SEGMENT",
            "4.18",
            "gso: on; DIFFERS: replies are sent one by one: no UDP_SEGMENT",
        ),
        (
            socket,
            libc::SO_INCOMING_CPU,
            Config {
                incoming_cpu: true,
                ..group.clone()
            },
            "SO_INCOMING_CPU",
            "4.4",
            "incoming-cpu: 0; DIFFERS: off: no SO_INCOMING_CPU",
        ),
    ] {
        let call = Call::Option(level, name);
        let (error, line) = refusing(call, libc::ENOPROTOOPT, || refused(&config));
        assert!(
            matches!(error, Error::Unsupported { feature: named, since: first, .. } if (named, first) == (feature, since)),
            "{feature}: {error}"
        );
        assert!(line.starts_with(instead), "{feature}: {line}");
    }
}

#[test]
fn without_a_group_the_workers_have_no_socket_each_and_nothing_falls_back() {
    let config = Config {
        workers: 2,
        reuseport: true,
        fallback: true,
        ..plain()
    };
    let call = Call::Option(libc::SOL_SOCKET, libc::SO_REUSEPORT);
    let error = refusing(call, libc::ENOPROTOOPT, || {
        Server::start(&config, echo).unwrap_err()
    });
    assert!(
        matches!(
            error,
            Error::Unsupported {
                feature: "SO_REUSEPORT",
                since: "3.9",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_buffer_that_may_not_be_that_large_is_refused_with_the_sysctl_to_raise() {
    let bytes = Some(1 << 30);
    for (forced, sysctl, config) in [
        (
            libc::SO_RCVBUFFORCE,
            "net.core.rmem_max",
            Config {
                rcvbuf: bytes,
                ..plain()
            },
        ),
        (
            libc::SO_SNDBUFFORCE,
            "net.core.wmem_max",
            Config {
                sndbuf: bytes,
                ..plain()
            },
        ),
    ] {
        // As for an ordinary user: what remains is cut to the maximum.
        let call = Call::Option(libc::SOL_SOCKET, forced);
        let (error, line) = refusing(call, libc::EPERM, || refused(&config));
        let said = error.to_string();
        assert!(
            said.contains(sysctl) && said.contains("CAP_NET_ADMIN"),
            "{said}"
        );
        assert!(line.contains("buf: 1073741824 B; DIFFERS: "), "{line}");
    }
}

#[test]
fn without_bpf_steering_falls_back_to_the_flow_hash() {
    let config = Config {
        workers: 2,
        reuseport: true,
        steering: Steering::Ebpf { map: Vec::new() },
        ..plain()
    };
    let (error, line) = without(libc::SYS_bpf, libc::EPERM, || refused(&config));
    assert!(error.to_string().contains("CAP_BPF"), "{error}");
    assert!(
        line.starts_with("steering: ebpf; DIFFERS: flow hash"),
        "{line}"
    );
    let (error, _) = without(libc::SYS_bpf, libc::ENOSYS, || refused(&config));
    assert!(
        matches!(error, Error::Unsupported { since: "4.19", .. }),
        "{error}"
    );
}

#[test]
fn a_cpu_beyond_the_last_worker_is_named_too() {
    let config = Config {
        workers: 1,
        pin: Pin::Cpus(vec![0, 1000]),
        ..plain()
    };
    let (error, _) = refused(&config);
    let said = error.to_string();
    assert!(
        said.contains("cpu 1000") && said.contains("online"),
        "{said}"
    );
}

#[test]
fn a_cpu_that_does_not_exist_cannot_be_pinned_to() {
    let config = Config {
        workers: 2,
        pin: Pin::Cpus(vec![0, 1000]),
        ..plain()
    };
    let (error, line) = refused(&config);
    assert!(
        error.to_string().contains("worker 1 on cpu 1000"),
        "{error}"
    );
    assert!(
        line.starts_with("pin: worker 1 on cpu 1000; DIFFERS: not pinned"),
        "{line}"
    );
}

/// A device by this name, in the mode that each one has.
fn on(device: &str) -> XdpDevice {
    XdpDevice {
        device: device.to_owned(),
        mode: XdpMode::Generic,
    }
}

fn on_a_free_port() -> Config {
    let free = connect("127.0.0.1:9".parse().unwrap()).local_addr();
    Config::new((std::net::Ipv4Addr::LOCALHOST, free.unwrap().port()).into())
}

#[test]
fn an_xdp_echo_on_no_device_falls_back_to_sockets() {
    let config = Config {
        xdp_echo: Some(on("no-such-device")),
        ..on_a_free_port()
    };
    let (error, line) = refused(&config);
    assert!(error.to_string().contains("no-such-device"), "{error}");
    assert!(line.contains("off, served from sockets"), "{line}");
}

#[test]
fn without_af_xdp_the_error_names_it_and_sockets_answer() {
    let config = Config {
        af_xdp: Some(on("no-such-device")),
        ..on_a_free_port()
    };
    let (error, line) = refused(&config);
    assert!(error.to_string().contains("no-such-device"), "{error}");
    assert!(line.contains("off, served from sockets"), "{line}");
    let config = Config {
        af_xdp: Some(on("lo")),
        ..config
    };
    let (error, line) = without(libc::SYS_bpf, libc::EPERM, || refused(&config));
    assert!(error.to_string().contains("CAP_BPF"), "{error}");
    assert!(line.contains("off, served from sockets"), "{line}");
}
