//! Two variants at once: each has a service and a network of its own, and the load changes between them every few milliseconds.
//!
//! What differs between the variants must be settings of the service or of its network, and the threads that do the work of both
//! services must be bound to CPUs: the scheduler spreads free threads over the CPUs within tenths of a second, and turns are over before (on
//! two CPUs a server of two free threads made 535,000 transactions a second in turns and 712,000 otherwise, a pinned one as many
//! in both). Where a change reaches the whole machine, where a service uses its CPU without being asked (it polls), or where the
//! load is no closed loop, the two run one after the other as well.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use rungwise_host::cpu::{self, CpuMeter, CpuSource, EdgeMeter, ThreadTimes};
use rungwise_load::Error as LoadError;
use rungwise_load::engine::{Completed, Edge, Hooks, Stop, Turns};
use rungwise_load::parameters::Length;
use rungwise_model::machine::CpuWindow;

use super::service::Running;
use super::topology::Topology;
use super::witness::Witness;
use super::{Blueprint, Lab, Loader, closed, turn};
use crate::scenario::{Places, Service};
use crate::stage::{Changes, Sample, Setting, Stage as _, StageError, Variant};

/// How long an idle service is watched.
const IDLE: Duration = Duration::from_millis(30);
/// Windows in which it may become idle: one that has just started may not be done with it, least of all on a busy machine.
const WATCHES: u32 = 3;
/// How long it is watched once it was idle: a timer of ten times a second is seen.
const LONGER: Duration = Duration::from_millis(100);
/// A service that uses more than this share of a CPU while it is idle would disturb the other one's turns.
const POLLS: f64 = 0.05;
/// Share of a service's CPU time under load that its threads may use outside of pinned CPUs: a main thread, signals.
const FREE: f64 = 0.1;

/// Ten turns of each variant: with fewer, single turns decide.
const SHORTEST: Duration = Duration::from_millis(400);

/// The place of the other variant.
pub(super) struct Second {
    // Dropped in this order: the service ends before the namespace it lives in.
    pub(super) running: Running,
    pub(super) topology: Topology,
    /// Pairs of variants that cannot take turns.
    refused: Vec<[Variant; 2]>,
}

impl Second {
    /// Where this lab can have variants take turns: in namespaces, with a service and a load of its own.
    pub(super) fn build(blueprint: &Blueprint, places: Places) -> Result<Option<Self>, StageError> {
        let ours = matches!(blueprint.service, Service::Started(_));
        let closed = match &blueprint.loader {
            Loader::Own(own) => own.is_closed(&Changes::NONE),
            Loader::Program(_) => false,
        };
        if !blueprint.turns || !ours || !closed {
            return Ok(None);
        }
        let Some(topology) = Topology::second(&blueprint.topology)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            running: Running::new(blueprint.service.clone(), places, blueprint.ready.clone()),
            topology,
            refused: Vec::new(),
        }))
    }

    fn service_cpu(&self) -> Option<CpuSource> {
        self.topology.namespace_cpu()
    }
}

impl Lab {
    /// One run of both variants; `None` where they cannot take turns. `swapped`: the services change places.
    pub(super) fn both(
        &mut self,
        variants: [&Variant; 2],
        swapped: bool,
        seed: u64,
    ) -> Result<Option<[Sample; 2]>, StageError> {
        let refused = |second: &Second| {
            let known = |pair: &[Variant; 2]| [&pair[0], &pair[1]] == variants;
            second.refused.iter().any(known)
        };
        let Loader::Own(own) = &self.loader else {
            return Ok(None);
        };
        let closed = |variant: &&Variant| own.is_closed(&variant.workload);
        if self.second.as_ref().is_none_or(refused) || !variants.iter().all(closed) {
            return Ok(None);
        }
        // Seen before a second service is started for nothing.
        if self.running.pid().is_some() && !self.services()[0].iter().any(cpu::pins_threads) {
            return Ok(None);
        }
        let [first, second] = variants;
        let by_place = if swapped {
            [second, first]
        } else {
            [first, second]
        };
        let ran = match self.set_up_both(by_place) {
            Ok(true) => self.measure_both(by_place, seed),
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        };
        let ran = match ran {
            // Two services may need more than there is, and which of them failed for what is seen half by half.
            Err(StageError::ServiceFailed(_)) => {
                self.running.restart();
                None
            }
            ran => ran?,
        };
        let Some([here, there]) = ran else {
            self.leave_second();
            if let Some(second) = &mut self.second {
                second.refused.push(variants.map(Clone::clone));
            }
            return Ok(None);
        };
        Ok(Some(if swapped {
            [there, here]
        } else {
            [here, there]
        }))
    }

    /// Answers whether the two can take turns.
    fn set_up_both(&mut self, variants: [&Variant; 2]) -> Result<bool, StageError> {
        self.check_interrupt()?;
        let Some(second) = &mut self.second else {
            return Ok(false);
        };
        let [here, there] = variants;
        let set = self
            .knobs
            .bring_to(&[(&self.topology, here), (&second.topology, there)]);
        match set {
            Ok(()) => {}
            // It can be had in the first place, or the comparison would not have begun.
            Err(StageError::Unavailable(_)) => return Ok(false),
            Err(error) => return Err(self.blamed(error)),
        }
        if self.knobs.reach_the_host(&differing(variants)) {
            return Ok(false);
        }
        let before = (self.running.pid(), second.running.pid());
        let mut started = |pid| self.knobs.answer_for(pid);
        let ran = self.running.ensure(&self.topology, here, &mut started);
        let ran = ran.and_then(|()| second.running.ensure(&second.topology, there, &mut started));
        let anew = before != (self.running.pid(), second.running.pid());
        ran.map_err(|error| self.blamed(error))?;
        let pinned = |service: &Option<CpuSource>| service.iter().any(cpu::pins_threads);
        Ok(!anew || self.services().iter().all(pinned) && !self.polls()?)
    }

    /// Whether one of the services uses CPU time without requests, also after some windows in which it may finish its start.
    fn polls(&self) -> Result<bool, StageError> {
        let services: Vec<CpuSource> = self.services().into_iter().flatten().collect();
        for _ in 0..WATCHES {
            if !uses_cpu(&services, IDLE)? {
                break;
            }
        }
        uses_cpu(&services, LONGER)
    }

    /// CPU time of the service in each place.
    fn services(&self) -> [Option<CpuSource>; 2] {
        let second = self.second.as_ref().and_then(Second::service_cpu);
        [self.service_cpu(), second]
    }

    /// Both runs; `None` where threads that are free to move did a part of the work.
    fn measure_both(
        &mut self,
        variants: [&Variant; 2],
        seed: u64,
    ) -> Result<Option<[Sample; 2]>, StageError> {
        let at_s = self.elapsed_s();
        let (Loader::Own(own), Some(second)) = (&mut self.loader, &self.second) else {
            return Err(StageError::Broken(
                "this lab has no second place".to_owned(),
            ));
        };
        // The time of both halves: each has every other turn of it.
        let length = Length {
            warmup: own.warmup,
            stop: Stop::After((2 * own.measure).max(SHORTEST)),
            seed,
        };
        let [here, there] = variants.map(|variant| own.load(&variant.workload));
        let (here, there) = (
            here.map_err(StageError::Unavailable)?,
            there.map_err(StageError::Unavailable)?,
        );
        let target = own.target.clone();
        let entries = [self.topology.client_entry(), second.topology.client_entry()];
        let sources = self.cpu_sources();
        let services = self.services();
        let first: Vec<CpuSource> = services[0].iter().cloned().collect();
        let threads: Vec<ThreadTimes> = (services.iter().flatten()).map(ThreadTimes::now).collect();
        let (meter, first_meter) = (EdgeMeter::new(&sources), EdgeMeter::new(&first));
        let witnesses = [
            Witness::for_service(&self.topology, &self.running, &*here, &target),
            Witness::for_service(&second.topology, &second.running, &*there, &target),
        ];
        let at_edge = |edge: Edge| {
            turn(&meter, edge);
            turn(&first_meter, edge);
            for witness in witnesses.iter().flatten() {
                witness.at(edge);
            }
        };
        let turns = Turns::new(seed);
        let seats = turns.seats();
        let interrupted = &*self.interrupted;
        let ended = thread::scope(|scope| {
            let other = scope.spawn(|| {
                let hooks = Hooks {
                    thread_start: &*entries[1],
                    // Both windows are the same, and the first load calls out its edges.
                    window: &|_| {},
                    interrupted,
                    turns: Some(seats[1]),
                };
                there.run(&length, &hooks, &mut |_| {})
            });
            let hooks = Hooks {
                thread_start: &*entries[0],
                window: &at_edge,
                interrupted,
                turns: Some(seats[0]),
            };
            let one = here.run(&length, &hooks, &mut |_| {});
            let other = other
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            [one, other]
        });
        self.check_interrupt()?;
        // A dead service explains whatever the client saw.
        let alive = self.running.still_alive();
        alive.map_err(|error| self.blamed(error))?;
        if let Some(second) = &mut self.second {
            let alive = second.running.still_alive();
            alive.map_err(|error| self.blamed(error))?;
        }
        let [here, there] = both_or_the_reason(ended).map_err(|error| {
            let error = self.unmeasured(error);
            self.blamed(error)
        })?;
        self.answered = true;
        let both = closed(meter)?;
        let first_s = closed(first_meter)?.service_cpu_s;
        let half = |service_cpu_s: f64, run: &Completed| CpuWindow {
            seconds: both.seconds / 2.0,
            service_cpu_s,
            client_cpu_s: run.client_cpu_s,
            ..both.clone()
        };
        let (of_first, of_second) = (
            half(first_s, &here),
            half(both.service_cpu_s - first_s, &there),
        );
        if threads.iter().any(|times| times.free_share() > FREE) {
            return Ok(None);
        }
        let [of_here, of_there] = &self.services().map(Vec::from_iter);
        let mut samples = [
            self.sample(at_s, here, of_first, of_here),
            self.sample(at_s, there, of_second, of_there),
        ];
        for (sample, witness) in samples.iter_mut().zip(witnesses) {
            sample.run.served = witness.and_then(Witness::seen);
        }
        Ok(Some(samples))
    }
}

/// Whether one of these services used more CPU time than an idle one while it was watched.
fn uses_cpu(services: &[CpuSource], window: Duration) -> Result<bool, StageError> {
    let meters: Result<Vec<CpuMeter>, _> = services
        .iter()
        .map(|service| CpuMeter::begin(std::slice::from_ref(service)))
        .collect();
    thread::sleep(window);
    for meter in meters? {
        let window = meter.end()?;
        if window.service_cpu_s > POLLS * window.seconds {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What the variants do not have in common.
fn differing([one, other]: [&Variant; 2]) -> BTreeSet<&Setting> {
    let differs = |setting: &&Setting| one.settings.get(*setting) != other.settings.get(*setting);
    let all = one.settings.keys().chain(other.settings.keys());
    all.filter(differs).collect()
}

/// The runs of both; else why there are none. A load whose partner has failed ends as interrupted, which explains nothing.
fn both_or_the_reason(
    ended: [Result<Completed, LoadError>; 2],
) -> Result<[Completed; 2], LoadError> {
    let [one, other] = ended;
    match (one, other) {
        (Ok(one), Ok(other)) => Ok([one, other]),
        (Ok(_) | Err(LoadError::Interrupted { .. }), Err(why)) | (Err(why), _) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::Side;

    #[test]
    fn what_one_variant_lacks_or_has_otherwise_differs() {
        let setting = |knob: &str, side| Setting {
            knob: knob.to_owned(),
            side,
        };
        let [gro, rps, pin] = ["nic.gro", "net.rps", "pin"].map(|knob| setting(knob, Side::Server));
        let one = Variant::default().with(&[
            (gro.clone(), "on".to_owned()),
            (pin.clone(), "on".to_owned()),
        ]);
        let other = Variant::default().with(&[
            (gro.clone(), "off".to_owned()),
            (pin, "on".to_owned()),
            (rps.clone(), "3".to_owned()),
        ]);
        assert_eq!(differing([&one, &other]), BTreeSet::from([&gro, &rps]));
        assert!(differing([&one, &one]).is_empty());
    }

    #[test]
    fn the_load_that_failed_says_why_and_not_its_partner() {
        let why = |ended| both_or_the_reason(ended).unwrap_err().to_string();
        let interrupted = || Err(LoadError::Interrupted { after_s: 0.0 });
        let limit = || {
            Err(LoadError::FileLimit {
                needed: 9,
                limit: 8,
            })
        };
        assert_eq!(why([interrupted(), limit()]), why([limit(), interrupted()]));
        assert_eq!(
            why([Ok(Completed::default()), limit()]),
            why([limit(), limit()])
        );
    }
}
