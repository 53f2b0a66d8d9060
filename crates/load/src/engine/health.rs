//! Whether a measurement may be used: the generator judges itself.
//!
//! A slow or disturbed client looks exactly like a slow server, so each way in which the client can spoil
//! the numbers has a limit here and a sentence with cause, effect and remedy. The limits are those of
//! `docs/load.md`: 5 % foreign CPU is where the paired runs of the reference machine begin to scatter; the
//! others are conventions, small against the 2 % that the ladder resolves.

use rungwise_model::load::ClientHealth;
use rungwise_model::machine::CpuWindow;
// The rule `client-bound` draws the same lines.
pub use rungwise_model::load::{DROPS, LATE, ROOM, SATURATED, SERVER_BUSY};

use super::Completed;

/// More foreign CPU than this spoils a run.
pub const FOREIGN: f64 = 0.05;

/// What the generator cannot see itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Surroundings {
    /// Busy CPU of neither generator nor server during the window, as a fraction of all CPUs.
    pub foreign_cpu: Option<f64>,
    /// Why that is unknown although it should be, and what would help; absent where it is known, or where the caller judges it.
    pub foreign_hidden: Option<&'static str>,
    /// CPU seconds of the server during the window, over window times CPUs that it may use.
    pub server_busy: Option<f64>,
    /// Idle share of the CPUs that client and server both run on; absent where they share none, or where it is unknown.
    /// Where none was idle the machine as a whole is the limit.
    pub shared_idle: Option<f64>,
    /// Neither the rate nor a latency of the run is judged, so a generator that limits the rate spoils nothing.
    pub untimed: bool,
}

impl Surroundings {
    /// Of a window on one machine with the server, which may use `server_cpus` CPUs, `shared_cpus` of them together with the
    /// generator. `unsure` is the share by which an idle CPU may be misread in such a window: in doubt no run is taken for a
    /// limit of the client.
    pub fn beside(cpu: &CpuWindow, server_cpus: usize, shared_cpus: usize, unsure: f64) -> Self {
        let mut idle: Vec<f64> = cpu.per_cpu.iter().map(|split| split.idle).collect();
        // Where only some CPUs may be used, the busiest are these.
        idle.sort_by(f64::total_cmp);
        idle.truncate(shared_cpus);
        let mean = idle.iter().sum::<f64>() / idle.len().max(1) as f64;
        Self {
            foreign_cpu: Some(cpu.foreign),
            foreign_hidden: None,
            server_busy: Some(cpu.service_cpu_s / (cpu.seconds * server_cpus.max(1) as f64)),
            shared_idle: (shared_cpus > 0).then(|| (mean - unsure).max(0.0)),
            untimed: false,
        }
    }

    /// CPU time that one side used was not available to the other.
    fn machine_was_full(&self) -> bool {
        self.shared_idle.is_some_and(|idle| idle <= ROOM)
    }
}

/// Decides whether `completed` may be used and writes the reasons why not.
pub fn certify(completed: &mut Completed, around: &Surroundings) {
    let measurement = &mut completed.measurement;
    let client = &measurement.client;
    let mut reasons = Vec::new();
    let held = measurement.connections.as_ref();
    if let Some(why) = held.and_then(|held| held.partial.as_ref()) {
        reasons.push(format!("this is a part of what was asked for: {why}"));
    }
    // Connections may be held without a ping.
    if measurement.received == 0 && held.is_none_or(|held| held.ping_s.is_some()) {
        reasons.push(
            "no answer in the measured window; look at the errors, and check that the server survived the warm-up"
                .to_owned(),
        );
    }
    if client.saturated && !around.untimed {
        let busy = percent(client.busy.unwrap_or(SATURATED));
        match around.server_busy {
            None => reasons.push(format!(
                "the generator's threads were busy {busy} of the time and the server's load is unknown, so the client may limit the rate; \
                 add --threads, or move the generator to another machine"
            )),
            Some(server) if server < SERVER_BUSY && !around.machine_was_full() => reasons.push(format!(
                "the generator's threads were busy {busy} of the time but the server only {}, so the client limits the rate; add \
                 --threads, or give the generator more CPUs",
                percent(server)
            )),
            Some(_) => {}
        }
    }
    if let Some(foreign) = around.foreign_cpu.filter(|share| *share > FOREIGN) {
        reasons.push(format!(
            "other processes used {} of the CPUs (limit {}), which lowers rates and raises latencies unevenly; \
             repeat on a quiet machine",
            percent(foreign),
            percent(FOREIGN)
        ));
    }
    if let Some(why) = around.foreign_hidden {
        reasons.push(format!(
            "CPU use of other processes is unknown and may have lowered rates and raised latencies: {why}"
        ));
    }
    let drops = client.socket_drops as f64;
    if drops > DROPS * measurement.received as f64 {
        reasons.push(format!(
            "the kernel dropped {drops} replies at the generator's own sockets (limit {} of replies); they count as lost although the \
             server sent them; raise net.core.rmem_max, or lower --depth",
            percent(DROPS)
        ));
    }
    if client.late_sends > LATE {
        let late = percent(client.late_sends);
        let limit = percent(LATE);
        reasons.push(if client.starved {
            format!(
                "{late} of requests left more than 1 ms late (limit {limit}), mostly because every slot waited for a reply, so the server \
                 saw less load than offered; raise --connections, --sockets or --depth, or lower --rate"
            )
        } else {
            format!(
                "{late} of requests left more than 1 ms late (limit {limit}) because the generator was delayed, which appears as server \
                 latency; add --threads, pin them, or lower --rate"
            )
        });
    }
    measurement.client = ClientHealth {
        server_busy: around.server_busy,
        shared_idle: around.shared_idle,
        foreign_cpu: around.foreign_cpu,
        certified: reasons.is_empty(),
        reasons,
        ..measurement.client.clone()
    };
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 1.0 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

#[cfg(test)]
mod tests {
    use rungwise_model::machine::CpuSplit;

    use super::*;

    #[test]
    fn room_is_what_the_clock_can_tell_from_none_on_the_cpus_that_both_may_use() {
        let idle = |idle: &[f64], shared, unsure| {
            let cpu = CpuWindow {
                seconds: 4.0,
                per_cpu: idle
                    .iter()
                    .map(|idle| CpuSplit {
                        idle: *idle,
                        ..CpuSplit::default()
                    })
                    .collect(),
                service_cpu_s: 2.0,
                ..CpuWindow::default()
            };
            let around = Surroundings::beside(&cpu, 1, shared, unsure);
            assert_eq!(around.server_busy, Some(0.5), "of the one CPU it may use");
            around.shared_idle
        };
        assert!((idle(&[0.5, 0.7], 2, 0.005).unwrap() - 0.595).abs() < 1e-9);
        // The other two belong to somebody else.
        assert_eq!(idle(&[0.0, 1.0, 1.0, 0.01], 2, 0.005), Some(0.0));
        assert_eq!(idle(&[0.3, 0.4], 2, 0.4), Some(0.0), "may be rounding");
        assert_eq!(idle(&[0.3, 0.4], 0, 0.0), None, "they share no CPU");
    }

    fn completed(change: impl FnOnce(&mut Completed)) -> Completed {
        let mut completed = Completed::default();
        completed.measurement.client.busy = Some(0.5);
        completed.measurement.received = 10_000;
        change(&mut completed);
        completed
    }

    fn saturated(completed: &mut Completed) {
        completed.measurement.client.busy = Some(0.99);
        completed.measurement.client.saturated = true;
    }

    #[track_caller]
    fn expect(mut completed: Completed, around: Surroundings, word: Option<&str>) {
        certify(&mut completed, &around);
        let client = &completed.measurement.client;
        assert_eq!(client.certified, word.is_none(), "{:?}", client.reasons);
        assert_eq!(
            client.reasons.len(),
            usize::from(word.is_some()),
            "{:?}",
            client.reasons
        );
        if let Some(word) = word {
            assert!(client.reasons[0].contains(word), "{:?}", client.reasons);
        }
    }

    #[test]
    fn a_healthy_client_is_certified() {
        expect(completed(|_| {}), Surroundings::default(), None);
    }

    #[test]
    fn a_busy_client_is_certified_only_beside_a_busy_server_or_on_shared_cpus() {
        let around = |server_busy, shared_idle| Surroundings {
            server_busy,
            shared_idle,
            ..Surroundings::default()
        };
        expect(completed(saturated), around(None, None), Some("unknown"));
        let full = Some(0.0);
        expect(completed(saturated), around(None, full), Some("unknown"));
        expect(
            completed(saturated),
            around(Some(0.94), None),
            Some("server only 94 %"),
        );
        expect(completed(saturated), around(Some(0.95), None), None);
        expect(completed(saturated), around(Some(0.5), full), None);
        let room = Some(0.06);
        expect(
            completed(saturated),
            around(Some(0.5), room),
            Some("server only 50 %"),
        );
        let untimed = Surroundings {
            untimed: true,
            ..around(Some(0.5), room)
        };
        expect(completed(saturated), untimed, None);
    }

    #[test]
    fn the_report_keeps_what_the_certificate_rests_on() {
        let mut completed = completed(saturated);
        certify(
            &mut completed,
            &Surroundings {
                foreign_cpu: Some(0.01),
                server_busy: Some(0.4),
                shared_idle: Some(0.3),
                ..Surroundings::default()
            },
        );
        let client = &completed.measurement.client;
        assert_eq!(client.server_busy, Some(0.4));
        assert_eq!(client.shared_idle, Some(0.3));
        assert_eq!(client.foreign_cpu, Some(0.01));
    }

    #[test]
    fn each_limit_is_inclusive_and_has_its_own_sentence() {
        let foreign = |share| Surroundings {
            foreign_cpu: Some(share),
            ..Surroundings::default()
        };
        expect(completed(|_| {}), foreign(0.05), None);
        expect(completed(|_| {}), foreign(0.051), Some("other processes"));
        let hidden = Surroundings {
            foreign_hidden: Some("name the server"),
            ..Surroundings::default()
        };
        expect(completed(|_| {}), hidden, Some("unknown and may have"));
        let none = Surroundings::default();
        expect(
            completed(|c| c.measurement.client.socket_drops = 10),
            none,
            None,
        );
        expect(
            completed(|c| c.measurement.client.socket_drops = 11),
            none,
            Some("rmem_max"),
        );
        expect(
            completed(|c| c.measurement.client.late_sends = 0.01),
            none,
            None,
        );
        expect(
            completed(|c| c.measurement.client.late_sends = 0.011),
            none,
            Some("was delayed"),
        );
        let starved = |c: &mut Completed| {
            c.measurement.client.late_sends = 0.5;
            c.measurement.client.starved = true;
        };
        expect(completed(starved), none, Some("every slot waited"));
        expect(
            completed(|c| c.measurement.received = 0),
            none,
            Some("no answer"),
        );
    }
}
