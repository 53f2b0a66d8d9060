//! What a recording says, as evidence for the rules.

use rungwise_model::evidence::{Absence, Evidence, Key, Kind, Origin, Subject};
use rungwise_model::jfr::{Code, Io, Recording};
use rungwise_model::keys;

/// The evidence of a recording.
pub fn evidence(recording: &Recording) -> Evidence {
    let mut of = OfRecording {
        evidence: Evidence::over(recording.duration_s),
        recording,
    };
    of.samples();
    of.locks();
    of.exceptions();
    of.io();
    of.evidence
}

struct OfRecording<'r> {
    evidence: Evidence,
    recording: &'r Recording,
}

fn subject() -> Subject {
    Subject::new(Kind::Recording, 1)
}

impl OfRecording<'_> {
    fn number(&mut self, key: &'static Key, value: f64, source: &str, line: String) {
        self.evidence
            .number(key, subject(), value, Origin::new(source, line));
    }

    fn text(&mut self, key: &'static Key, value: String, source: &str) {
        self.evidence
            .text(key, subject(), value, Origin::new(source, ""));
    }

    fn absent(&mut self, keys: &[&'static Key], why: &Absence) {
        self.evidence.absent(keys, why, "recording");
    }

    /// Whether the JVM would have recorded such an event: its type is enabled, or there is one.
    fn records(&self, types: &[&str]) -> bool {
        types.iter().any(|of| {
            self.recording.thresholds.contains_key(*of) || self.recording.events.contains_key(*of)
        })
    }

    fn samples(&mut self) {
        let samples = &self.recording.samples;
        let Some(source) = samples.source.clone() else {
            let why = Absence::because("the recording has no stack samples")
                .remedy("record with jcmd PID JFR.start settings=profile, or async-profiler");
            let keys: &[&'static Key] = &[
                &keys::RECORDING_SAMPLES,
                &keys::RECORDING_LOGGING,
                &keys::RECORDING_CODE,
            ];
            self.absent(keys, &why);
            return;
        };
        let all = samples.counted;
        self.number(&keys::RECORDING_SAMPLES, all as f64, &source, String::new());
        let code = &self.recording.code;
        let logging = code.iter().find(|code| code.kind == "logging");
        let other = code.iter().find(|code| code.kind != "logging");
        for (share, at, found) in [
            (
                &keys::RECORDING_LOGGING,
                &keys::RECORDING_LOGGING_AT,
                logging,
            ),
            (&keys::RECORDING_CODE, &keys::RECORDING_CODE_AT, other),
        ] {
            let line = found.map_or_else(String::new, |code| {
                format!("{} of {all} samples in {}", code.samples, code.kind)
            });
            let value = found.map_or(0.0, |code| code.share);
            self.number(share, value, &source, line);
            if let Some(code) = found {
                self.text(at, entered(code), &source);
            }
        }
        if let Some(code) = other {
            self.text(&keys::RECORDING_CODE_KIND, code.kind.clone(), &source);
        }
    }

    fn locks(&mut self) {
        let recording = self.recording;
        if recording.duration_s <= 0.0 {
            let why = Absence::because("the recording was not finished, so its length is unknown");
            self.absent(&[&keys::RECORDING_LOCK_WAITERS], &why);
            return;
        }
        if !self.records(&["jdk.JavaMonitorEnter", "jdk.ThreadPark"]) {
            let why = Absence::because("the recording has no events of contended locks").remedy(
                "record with jcmd PID JFR.start settings=profile, or async-profiler -e lock",
            );
            self.absent(&[&keys::RECORDING_LOCK_WAITERS], &why);
            return;
        }
        let source = "jdk.JavaMonitorEnter, jdk.ThreadPark";
        let Some(lock) = recording.locks.first() else {
            self.number(&keys::RECORDING_LOCK_WAITERS, 0.0, source, String::new());
            return;
        };
        let waiters = lock.times.total_ms / 1e3 / recording.duration_s;
        let line = format!(
            "{} waits of {} threads, {:.0} ms in {:.1} s",
            lock.times.count, lock.threads, lock.times.total_ms, recording.duration_s
        );
        self.number(&keys::RECORDING_LOCK_WAITERS, waiters, source, line);
        let longest = lock.times.longest_ms / 1e3;
        self.number(
            &keys::RECORDING_LOCK_LONGEST,
            longest,
            source,
            String::new(),
        );
        let at = lock.sites.first().and_then(|site| site.frames.first());
        let class = match at {
            Some(at) => format!("{} in {at}", lock.class),
            None => lock.class.clone(),
        };
        self.text(&keys::RECORDING_LOCK, class, source);
        if let Some(owner) = &lock.owner {
            self.text(&keys::RECORDING_LOCK_OWNER, owner.clone(), source);
        }
    }

    fn exceptions(&mut self) {
        let exceptions = &self.recording.exceptions;
        let counted = exceptions.classes.iter().map(|class| class.count);
        let counted = counted.sum::<u64>();
        let by_event = (counted > 0 && self.recording.duration_s > 0.0)
            .then(|| counted as f64 / self.recording.duration_s);
        let rate = exceptions.thrown_per_s.or(by_event);
        let Some(rate) = rate else {
            let why = Absence::because("the recording counts no exceptions twice")
                .remedy("record for more than a second with jdk.ExceptionStatistics enabled");
            self.absent(&[&keys::RECORDING_THROWN], &why);
            return;
        };
        let line = match exceptions.thrown {
            Some(thrown) => format!("{thrown} by jdk.ExceptionStatistics"),
            None => format!("{counted} events"),
        };
        self.number(&keys::RECORDING_THROWN, rate, "exceptions", line);
        if let Some(first) = self.recording.exceptions.classes.first() {
            let class = match &first.at {
                Some(at) => format!("{} in {at}", first.class),
                None => first.class.clone(),
            };
            self.text(&keys::RECORDING_THROWN_CLASS, class, "exceptions");
        }
    }

    fn io(&mut self) {
        let recording = self.recording;
        let kinds: [(&'static Key, &'static Key, &str); 2] = [
            (
                &keys::RECORDING_FILE_LONGEST,
                &keys::RECORDING_FILE_PLACE,
                "file-",
            ),
            (
                &keys::RECORDING_SOCKET_LONGEST,
                &keys::RECORDING_SOCKET_PLACE,
                "socket-",
            ),
        ];
        let types = [
            &["jdk.FileRead", "jdk.FileWrite", "jdk.FileForce"][..],
            &["jdk.SocketRead", "jdk.SocketWrite"],
        ];
        for ((longest, place, start), types) in kinds.into_iter().zip(types) {
            if !self.records(types) {
                let why =
                    Absence::because(format!("the recording has none of {}", types.join(", ")))
                        .remedy("record with jcmd PID JFR.start settings=profile");
                self.absent(&[longest], &why);
                continue;
            }
            let of_kind = recording.io.iter().filter(|io| io.kind.starts_with(start));
            let slowest = of_kind.max_by(|a, b| a.times.longest_ms.total_cmp(&b.times.longest_ms));
            let line = slowest.map_or_else(String::new, |io| {
                format!(
                    "{} {}: {} operations, {:.0} ms",
                    io.kind, io.place, io.times.count, io.times.total_ms
                )
            });
            let value = slowest.map_or(0.0, |io| io.times.longest_ms / 1e3);
            self.number(longest, value, "I/O events", line);
            if let Some(io) = slowest {
                self.text(place, placed(io), "I/O events");
            }
        }
    }
}

fn entered(code: &Code) -> String {
    match &code.caller {
        Some(caller) => format!("{}, called by {caller}", code.method),
        None => code.method.clone(),
    }
}

fn placed(io: &Io) -> String {
    let (of, operation) = io.kind.split_once('-').unwrap_or(("", &io.kind));
    let place = format!("{operation} of {of} {}", io.place);
    match &io.at {
        Some(at) => format!("{place} in {at}"),
        None => place,
    }
}
