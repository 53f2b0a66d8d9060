//! Steering by CPU really steers: on loopback the softirq runs on the sender's CPU, so a client that is pinned
//! chooses its worker.

use rungwise_serve::udp::{Config, Pin, Server, Steering};

use crate::client::{ask, connect, cpus, on_cpu, serve};

/// Requests per worker after a client on `cpu` asked 50 times over 10 flows.
fn received(server: &Server, cpu: usize) -> Vec<u64> {
    let count = || -> Vec<u64> {
        server
            .counters()
            .workers
            .iter()
            .map(|worker| worker.received)
            .collect()
    };
    let before = count();
    on_cpu(cpu, || {
        for _ in 0..10 {
            let socket = connect(server.local_addr());
            for n in 0..5_u8 {
                assert_eq!(ask(&socket, &[n]), [n]);
            }
        }
    });
    // A worker publishes after it has sent, so the last reply may be ahead of its count.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    loop {
        let grown: Vec<u64> = count()
            .iter()
            .zip(&before)
            .map(|(now, then)| now - then)
            .collect();
        if grown.iter().sum::<u64>() == 50 {
            return grown;
        }
        assert!(
            std::time::Instant::now() < deadline,
            "counted {grown:?} of 50"
        );
        std::thread::yield_now();
    }
}

#[test]
fn cbpf_hands_each_cpu_to_the_worker_of_its_number() {
    let cpus = cpus();
    let workers = cpus.last().unwrap() + 1;
    let server = serve(&Config {
        workers,
        reuseport: true,
        steering: Steering::Cbpf,
        ..Config::new("127.0.0.1:0".parse().unwrap())
    });
    for cpu in cpus {
        assert_eq!(received(&server, cpu)[cpu], 50, "client on cpu {cpu}");
    }
}

#[test]
fn ebpf_follows_workers_to_cpus_in_any_order() {
    let mut cpus = cpus();
    cpus.reverse();
    let server = serve(&Config {
        workers: cpus.len(),
        reuseport: true,
        steering: Steering::Ebpf { map: Vec::new() },
        pin: Pin::Cpus(cpus.clone()),
        ..Config::new("[::1]:0".parse().unwrap())
    });
    for (worker, cpu) in cpus.into_iter().enumerate() {
        assert_eq!(received(&server, cpu)[worker], 50, "client on cpu {cpu}");
    }
}

#[test]
fn ebpf_takes_any_map() {
    let cpus = cpus();
    let server = serve(&Config {
        workers: 3,
        reuseport: true,
        steering: Steering::Ebpf {
            map: vec![2; cpus.last().unwrap() + 1],
        },
        ..Config::new("127.0.0.1:0".parse().unwrap())
    });
    for cpu in cpus {
        assert_eq!(received(&server, cpu), [0, 0, 50], "client on cpu {cpu}");
    }
}
