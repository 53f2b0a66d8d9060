//! Steering by CPU really steers: on loopback the softirq runs on the sender's CPU, so a client that is pinned
//! chooses its worker.

use rungwise_serve::udp::{Config, Pin, Server, Steering};

use crate::client::{ask, connect, cpus, on_cpu, serve, wait_until};

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
    let mut grown = Vec::new();
    wait_until(|| {
        let now = count();
        grown = now
            .iter()
            .zip(&before)
            .map(|(now, then)| now - then)
            .collect();
        grown.iter().sum::<u64>() == 50
    });
    grown
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

#[test]
fn a_group_of_one_can_be_steered() {
    for steering in [Steering::Cbpf, Steering::Ebpf { map: Vec::new() }] {
        let server = serve(&Config {
            reuseport: true,
            steering,
            ..Config::new("127.0.0.1:0".parse().unwrap())
        });
        assert_eq!(received(&server, cpus()[0]), [50]);
    }
}
