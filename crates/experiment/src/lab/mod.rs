//! The real stage: namespaces, a service process, knobs under a journal, traffic.
//!
//! One run is: bring every knob to the variant's value, have the service run with the variant's switches,
//! warm up, measure. A setting is never written over: going back undoes the edit that is in force, so the
//! journal holds at most one live edit per setting and the way back is the one a crash would take.

mod allocation;
mod blueprint;
mod capture;
mod collections;
mod knobs;
mod program;
mod read_back;
mod service;
mod topology;
mod turns;
mod witness;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rungwise_host::clock;
use rungwise_host::cpu::{self, CpuSource, EdgeMeter, Owner, Reach};
use rungwise_host::scratch::Scratch;
use rungwise_load::Error as LoadError;
use rungwise_load::engine::{Completed, Edge, Hooks, Stop, Surroundings, certify};
use rungwise_load::parameters::{Length, Load, Target};
use rungwise_model::load::GeneratorReport;
use rungwise_model::machine::CpuWindow;
use rungwise_model::tune::Run;
use rungwise_probes::{Capture, load_report};
use rungwise_stats::histogram::Histogram;

use self::allocation::{Allocation, Blocks};
pub use self::blueprint::{Blueprint, Loader, Means, Own};
pub use self::capture::{CapturePlace, Capturer};
use self::collections::Collections;
pub use self::knobs::Found;
use self::knobs::Knobs;
pub use self::program::Program;
use self::program::Ran;
use self::service::Running;
pub use self::topology::{Topology, Wanted};
use self::turns::Second;
use self::witness::Witness;
use crate::metric;
use crate::scenario::Places;
use crate::stage::{Changes, Sample, Stage, StageError, Variant};

/// A service under traffic, and the knobs around it.
pub struct Lab {
    // Dropped in this order: the service ends before the namespace it lives in.
    running: Running,
    second: Option<Second>,
    knobs: Knobs,
    topology: Topology,
    loader: Loader,
    allocation: Allocation,
    collections: Collections,
    untimed: bool,
    cpus: usize,
    began: Instant,
    earlier_s: f64,
    answered: bool,
    capturer: Option<Box<Capturer>>,
    interrupted: Arc<AtomicBool>,
    places: Places,
    scratch: Scratch,
}

/// A program that the lab starts needs so long until the service is under load, whatever it is.
const WARM: Duration = Duration::from_millis(500);
const NO_EYES: &str = "this lab cannot capture the machine";

/// How long the quiet gate measures foreign CPU.
const QUIET_WINDOW: Duration = Duration::from_millis(200);

impl Lab {
    /// Makes the topology and opens the journal; nothing is changed and nothing runs yet. `earlier_s` seconds of the
    /// experiment are past already.
    pub fn build(
        blueprint: &Blueprint,
        earlier_s: f64,
        state_dir: &Path,
        interrupted: Arc<AtomicBool>,
    ) -> Result<Self, StageError> {
        let scratch = Scratch::create()?;
        let places = Places {
            scratch: scratch.join("service").to_string_lossy().into_owned(),
            ..blueprint.places.clone()
        };
        let topology = Topology::build(&blueprint.topology)?;
        let second = Second::build(
            blueprint,
            Places {
                scratch: scratch.join("second").to_string_lossy().into_owned(),
                ..blueprint.places.clone()
            },
        )?;
        let all: Vec<&Topology> = [&topology]
            .into_iter()
            .chain(second.as_ref().map(|second| &second.topology))
            .collect();
        let knobs = Knobs::open(&all, state_dir, &blueprint.cpus)?;
        let running = Running::new(
            blueprint.service.clone(),
            places.clone(),
            blueprint.ready.clone(),
        );
        Ok(Self {
            running,
            second,
            knobs,
            topology,
            loader: blueprint.loader.clone(),
            allocation: Allocation::new(blueprint.jvm_readings.allocation),
            collections: Collections::new(blueprint.jvm_readings.collections),
            untimed: blueprint.untimed,
            places,
            cpus: blueprint.cpus.len(),
            began: clock::now(),
            earlier_s,
            answered: false,
            capturer: None,
            interrupted,
            scratch,
        })
    }

    /// Lets the lab take captures, for ladders whose rungs the rules choose.
    #[must_use]
    pub fn with_capture(mut self, capturer: Box<Capturer>) -> Self {
        self.capturer = Some(capturer);
        self
    }

    /// What is unavailable, one sentence each.
    pub fn losses(&self) -> &[String] {
        self.topology.losses()
    }

    /// What was built, for the method section.
    pub fn description(&self) -> Vec<String> {
        self.topology.description()
    }

    /// What the machine held of everything that was changed so far, in the order of the first change.
    pub fn found(&self) -> Vec<Found> {
        self.knobs.found.clone()
    }

    /// Stops the service, undoes every edit and closes the journal. Settings that could not be restored are the error.
    pub fn close(mut self) -> Result<(), String> {
        self.running.stop();
        self.leave_second();
        self.knobs.close()
    }

    /// CPU time of the service: of its namespace, else of its processes.
    fn service_cpu(&self) -> Option<CpuSource> {
        self.topology.namespace_cpu().or_else(|| self.running.cpu())
    }

    /// Processes whose CPU time is not foreign: this process (the client), the service and all that it starts.
    fn cpu_sources(&self) -> Vec<CpuSource> {
        let second = self.second.as_ref();
        let second = second.and_then(|second| second.topology.namespace_cpu());
        self.service_cpu()
            .into_iter()
            .chain(second)
            .chain([CpuSource::own(Owner::Client)])
            .collect()
    }

    /// Ends the service of the second place: what runs next has the machine to itself.
    fn leave_second(&mut self) {
        if let Some(second) = &mut self.second {
            second.running.stop();
        }
    }

    fn check_interrupt(&self) -> Result<(), StageError> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(StageError::Interrupted);
        }
        Ok(())
    }

    fn set_up(&mut self, variant: &Variant) -> Result<(), StageError> {
        self.check_interrupt()?;
        self.leave_second();
        let set = self.knobs.bring_to(&[(&self.topology, variant)]);
        set.and_then(|()| {
            let started = |pid| self.knobs.answer_for(pid);
            self.running.ensure(&self.topology, variant, started)?;
            self.allocation.follow(&self.running)?;
            let scratch = Path::new(&self.places.scratch);
            self.collections.follow(&self.running, scratch)
        })
        .map_err(|error| self.blamed(error))
    }

    /// A lost device explains whatever else failed.
    fn blamed(&self, error: StageError) -> StageError {
        let second = self.second.as_ref();
        let topologies = second.map(|second| &second.topology).into_iter();
        let mut topologies = topologies.chain([&self.topology]);
        let lost = topologies.find_map(Topology::lost_device);
        lost.map_or(error, StageError::Broken)
    }

    /// What it means that the generator could not measure.
    fn unmeasured(&self, error: LoadError) -> StageError {
        match error {
            // Down before the first measurement, not brought down by a variant.
            LoadError::NoReplies { .. } if !self.answered => {
                StageError::Precondition(error.to_string())
            }
            LoadError::NoReplies {
                target,
                sent,
                after_s,
                ..
            } => StageError::ServiceFailed(format!(
                "{target} stopped answering: no reply to {sent} requests in {after_s:.1} s; {}",
                self.running.silence()
            )),
            other => StageError::Broken(other.to_string()),
        }
    }

    /// What the generator cannot see itself. Client and server are on this machine, wherever they were put on it.
    fn surroundings(&self, cpu: &CpuWindow, sources: &[CpuSource]) -> Surroundings {
        let unsure = cpu::resolution(Duration::from_secs_f64(cpu.seconds.max(0.0)));
        // A service of which no thread can be read may use what the generator may.
        let Reach { service, shared } = Reach::read_affinity(sources).unwrap_or(Reach {
            service: self.cpus,
            shared: self.cpus,
        });
        Surroundings::beside(cpu, service, shared, unsure)
    }

    /// One run by the generator.
    fn run_own(
        &mut self,
        load: &dyn Load,
        length: &Length,
        (warmup, counted): (u64, Option<u64>),
        target: &Target,
    ) -> Result<Sample, StageError> {
        self.warm_up(load, warmup, length.seed)?;
        let at_s = self.elapsed_s();
        let sources = self.cpu_sources();
        let meter = EdgeMeter::new(&sources);
        let witness = Witness::for_service(&self.topology, &self.running, load, target);
        let collections = self.collections.log();
        let on_edge = |edge: Edge| {
            turn(&meter, edge);
            if let Some(witness) = &witness {
                witness.at(edge);
            }
            if let Some(log) = &collections {
                log.at(edge);
            }
        };
        let thread_start = self.topology.client_entry();
        let ended = load.run(
            length,
            &Hooks {
                thread_start: &*thread_start,
                window: &on_edge,
                interrupted: &self.interrupted,
                turns: None,
            },
            &mut |_| {},
        );
        self.check_interrupt()?;
        // A dead service explains whatever the client saw.
        let alive = self.running.still_alive();
        alive.map_err(|error| self.blamed(error))?;
        let completed = ended.map_err(|error| self.blamed(self.unmeasured(error)))?;
        self.answered = true;
        let answered = counted.unwrap_or(completed.arrived);
        let mut sample = self.sample(at_s, completed, closed(meter)?, &sources);
        sample.run.served = witness.and_then(Witness::seen);
        if let Some(log) = collections {
            log.put(&mut sample.run);
        }
        if let Some(counters) = self.allocation.counters() {
            let blocks = Blocks {
                load,
                entry: &*thread_start,
                interrupted: &self.interrupted,
                seed: length.seed,
            };
            let bytes = blocks.measure(&counters, answered);
            self.check_interrupt()?;
            let alive = self.running.still_alive();
            alive.map_err(|error| self.blamed(error))?;
            allocation::put(&mut sample.run, bytes);
        }
        Ok(sample)
    }

    /// Sends so many requests, of which nothing is measured.
    fn warm_up(&mut self, load: &dyn Load, requests: u64, seed: u64) -> Result<(), StageError> {
        if requests == 0 {
            return Ok(());
        }
        let thread_start = self.topology.client_entry();
        let length = Length {
            warmup: Duration::ZERO,
            stop: Stop::Count(requests),
            seed,
        };
        let hooks = Hooks {
            thread_start: &*thread_start,
            window: &|_| {},
            interrupted: &self.interrupted,
            turns: None,
        };
        let ended = load.run(&length, &hooks, &mut |_| {});
        self.check_interrupt()?;
        let alive = self.running.still_alive();
        alive.map_err(|error| self.blamed(error))?;
        ended.map_err(|error| self.blamed(self.unmeasured(error)))?;
        Ok(())
    }

    /// What a run of the generator gave, of which `cpu` is the CPU time and `sources` are whose.
    fn sample(
        &self,
        at_s: f64,
        mut completed: Completed,
        cpu: CpuWindow,
        sources: &[CpuSource],
    ) -> Sample {
        certify(
            &mut completed,
            &Surroundings {
                // Judged by the pair's gate, whose limit is the scenario's; a pair that it refuses may still count by cost.
                foreign_cpu: None,
                untimed: self.untimed,
                ..self.surroundings(&cpu, sources)
            },
        );
        let measured = &completed.measurement;
        // CPU time of the window belongs to what was answered within it, whenever that was asked.
        let arrived = completed.arrived.max(1) as f64;
        let server_us = cpu.service_cpu_s * 1e6 / arrived;
        let client_us = completed.client_cpu_s * 1e6 / arrived;
        let sent = measured.sent.max(1) as f64;
        let latency = measured.latency_us.corrected;
        let metrics = [("p99.9", latency.p999), ("max", latency.max)];
        let metrics = metrics.map(|(name, value)| (name.to_owned(), value));
        let certified = if measured.client.certified {
            Ok(())
        } else {
            Err(measured.client.reasons.clone())
        };
        Sample {
            run: Run {
                at_s,
                rate_per_s: measured.achieved_per_s,
                loss: measured.lost as f64 / sent,
                wrong: completed.wrong as f64 / sent,
                cpu_us_per_tx: server_us + client_us,
                server_us_per_tx: server_us,
                client_us_per_tx: client_us,
                p50_us: Some(latency.p50),
                p99_us: Some(latency.p99),
                metrics: metrics.into(),
                unavailable: BTreeMap::new(),
                cpu,
                certified,
                served: None,
            },
            latency: completed.corrected,
        }
    }

    /// The program's run from its start to its end.
    fn run_to_end(
        &mut self,
        program: &Program,
        changes: (&Changes, Option<u64>),
        service: &[CpuSource],
    ) -> Result<Ran, StageError> {
        let ran = program.run(
            &self.places,
            &self.scratch,
            changes,
            self.topology.client_namespace(),
            service,
            &self.interrupted,
        );
        self.check_interrupt()?;
        let alive = self.running.still_alive();
        alive.map_err(|error| self.blamed(error))?;
        let ran = ran.map_err(|error| match error {
            // It worked before, so it is the variant's doing.
            StageError::Precondition(why) if self.answered => {
                self.blamed(StageError::ServiceFailed(why))
            }
            other => self.blamed(other),
        })?;
        self.answered = true;
        Ok(ran)
    }

    /// One run by a program.
    fn run_program(&mut self, program: &Program, variant: &Variant) -> Result<Sample, StageError> {
        if program.warmup_requests > 0 {
            let changes = (&variant.workload, Some(program.warmup_requests));
            self.run_to_end(program, changes, &[])?;
        }
        let at_s = self.elapsed_s();
        let service = Vec::from_iter(self.service_cpu());
        let counters = self.allocation.counters();
        let before = counters.as_ref().map(|counters| counters.at_rest());
        let collections = self.collections.log();
        if let Some(log) = &collections {
            log.at(Edge::Began);
        }
        let ran = self.run_to_end(program, (&variant.workload, None), &service)?;
        if let Some(log) = &collections {
            log.at(Edge::Ended);
        }
        let figures = ran.figures;
        let rate_per_s = figures.rate_per_s.or(ran.picked.get("rate").copied());
        // Where the program tells neither rate nor time, a run counts as one transaction.
        let seconds = figures.seconds.unwrap_or(ran.cpu.seconds);
        let done = rate_per_s.map_or(1.0, |rate| (rate * seconds).max(1.0));
        let server_us = ran.cpu.service_cpu_s * 1e6 / done;
        let client_us = ran.client_cpu_s * 1e6 / done;
        let errors = figures.errors.or(ran.picked.get("errors").copied());
        let latency = |name: &str| {
            let picked = ran.picked.get(name).map(|seconds| seconds * 1e6);
            figures.latency_us.get(name).copied().or(picked)
        };
        let (p50_us, p99_us) = (latency("p50"), latency("p99"));
        let mut metrics: BTreeMap<String, f64> = figures.latency_us.clone();
        for (name, number) in &ran.picked {
            // Latencies are picked in seconds and reported in microseconds; the reader's own come first.
            let unit = if metric::is_time(name) { 1e6 } else { 1.0 };
            metrics.entry(name.clone()).or_insert(number * unit);
        }
        // These stand by themselves.
        metrics.retain(|name, _| !["rate", "errors", "p50", "p99"].contains(&name.as_str()));
        let mut sample = Sample {
            run: Run {
                at_s,
                rate_per_s: rate_per_s.unwrap_or(0.0),
                loss: 0.0,
                wrong: errors.unwrap_or(0.0),
                cpu_us_per_tx: server_us + client_us,
                server_us_per_tx: server_us,
                client_us_per_tx: client_us,
                p50_us,
                p99_us,
                metrics,
                unavailable: BTreeMap::new(),
                cpu: ran.cpu,
                certified: Ok(()),
                served: None,
            },
            latency: Histogram::new(),
        };
        if let Some((counters, before)) = counters.zip(before) {
            let by_rate = rate_per_s.map(|rate| rate * seconds);
            let answered = figures.requests.or(by_rate);
            let bytes = before
                .map_err(|error| error.to_string())
                .and_then(|before| allocation::of_program(before, &counters, answered));
            allocation::put(&mut sample.run, bytes);
        }
        if let Some(log) = collections {
            log.put(&mut sample.run);
        }
        Ok(sample)
    }

    /// Captures the machine while a program loads the service repeatedly.
    fn capture_beside(
        &mut self,
        program: &Program,
        variant: &Variant,
        window: Duration,
    ) -> Result<Capture, StageError> {
        let Some(capturer) = &mut self.capturer else {
            return Err(StageError::Broken(NO_EYES.to_owned()));
        };
        let host = self.topology.seen();
        let place = CapturePlace {
            host: &*host,
            service: self.running.pid(),
            window,
        };
        let over = &AtomicBool::new(false);
        let namespace = self.topology.client_namespace();
        let (places, scratch) = (&self.places, &self.scratch);
        let (captured, loaded) = std::thread::scope(|scope| {
            let (began, begun) = channel();
            let load = scope.spawn(move || {
                let _ = began.send(());
                while !over.load(Ordering::Relaxed) {
                    let changes = (&variant.workload, None);
                    match program.run(places, scratch, changes, namespace, &[], over) {
                        Ok(_) | Err(StageError::Interrupted) => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            });
            // Also where the capture panics: the scope waits for the load.
            let until = SetAtEnd(over);
            // A load that never began says itself why.
            let captured = begun.recv().ok().map(|()| {
                std::thread::sleep(WARM);
                capturer(&place)
            });
            drop(until);
            let loaded = load
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (captured, loaded)
        });
        self.check_interrupt()?;
        let alive = self.running.still_alive();
        alive.map_err(|error| self.blamed(error))?;
        loaded?;
        match captured {
            Some(Ok(capture)) => Ok(capture),
            Some(Err(why)) => Err(StageError::Unavailable(why)),
            None => Err(StageError::Broken(
                "the load program did not start".to_owned(),
            )),
        }
    }
}

/// Sets a flag when it is dropped.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Stage for Lab {
    fn try_out(&mut self, variant: &Variant) -> Result<(), StageError> {
        self.set_up(variant)
    }

    fn run(&mut self, variant: &Variant, seed: u64) -> Result<Sample, StageError> {
        self.set_up(variant)?;
        match &mut self.loader {
            Loader::Own(own) => {
                let load = own
                    .load(&variant.workload)
                    .map_err(StageError::Unavailable)?;
                let length = Length {
                    warmup: own.warmup,
                    stop: Stop::After(own.measure),
                    seed,
                };
                let by_count = (own.warmup_requests, own.counted_requests);
                let target = own.target.clone();
                self.run_own(&*load, &length, by_count, &target)
            }
            Loader::Program(program) => {
                let program = program.clone();
                self.run_program(&program, variant)
            }
        }
    }

    fn run_in_turns(
        &mut self,
        variants: [&Variant; 2],
        swapped: bool,
        seed: u64,
    ) -> Result<Option<[Sample; 2]>, StageError> {
        self.both(variants, swapped, seed)
    }

    fn restart(&mut self) -> Result<(), StageError> {
        let alive = self.running.still_alive();
        self.running.restart();
        self.leave_second();
        alive
    }

    fn capture(
        &mut self,
        variant: &Variant,
        window_s: f64,
        seed: u64,
    ) -> Result<Capture, StageError> {
        self.set_up(variant)?;
        let sources = self.cpu_sources();
        let window = Duration::from_secs_f64(window_s);
        let own = match &mut self.loader {
            Loader::Own(own) => own,
            Loader::Program(program) => {
                let program = program.clone();
                return self.capture_beside(&program, variant, window);
            }
        };
        let load = own
            .load(&variant.workload)
            .map_err(StageError::Unavailable)?;
        // The load outlasts the capture, whose ends take their time.
        let length = Length {
            warmup: own.warmup,
            stop: Stop::After(window + capture::MARGIN),
            seed,
        };
        let warmup = own.warmup_requests;
        self.warm_up(&*load, warmup, seed)?;
        let Some(capturer) = &mut self.capturer else {
            return Err(StageError::Broken(NO_EYES.to_owned()));
        };
        let host = self.topology.seen();
        let place = CapturePlace {
            host: &*host,
            service: self.running.pid(),
            window,
        };
        let entry = self.topology.client_entry();
        let meter = EdgeMeter::new(&sources);
        let at_edge = |edge: Edge| turn(&meter, edge);
        let captured = capture::under_load(
            (&*load, &length),
            &*entry,
            &at_edge,
            &self.interrupted,
            || capturer(&place),
        );
        self.check_interrupt()?;
        let alive = self.running.still_alive();
        alive.map_err(|error| self.blamed(error))?;
        let (mut capture, mut completed) = captured.map_err(|error| self.blamed(error))?;
        let cpu = closed(meter)?;
        certify(&mut completed, &self.surroundings(&cpu, &sources));
        load_report::put(&mut capture, GeneratorReport::from(&completed.measurement));
        Ok(capture)
    }

    fn foreign_now(&mut self) -> Result<f64, StageError> {
        self.check_interrupt()?;
        let sources = self.cpu_sources();
        Ok(cpu::foreign_now(QUIET_WINDOW, &sources)?)
    }

    fn elapsed_s(&self) -> f64 {
        self.earlier_s + (clock::now() - self.began).as_secs_f64()
    }
}

/// Opens and closes a meter at the edges that the generator calls out.
fn turn(meter: &EdgeMeter<'_>, edge: Edge) {
    match edge {
        Edge::Began => meter.open(),
        Edge::Ended => meter.close(),
    }
}

/// The window of a run that has ended.
fn closed(meter: EdgeMeter<'_>) -> Result<CpuWindow, StageError> {
    meter.window()?.ok_or_else(|| {
        StageError::Broken("the generator ended without a measured window".to_owned())
    })
}

impl From<rungwise_host::Error> for StageError {
    fn from(error: rungwise_host::Error) -> Self {
        if error.is_precondition() {
            Self::Precondition(error.to_string())
        } else {
            Self::Broken(error.to_string())
        }
    }
}
