//! Which trials are made: drawn from a seed, or the fixed set.

use std::collections::BTreeMap;

use super::kinds::{Draw, HostKind, JvmKind, Kinds, Layer};
use super::score::{Claim, Expects, rule_of};

/// Severity of the fixed set: most of the way to ruin, so that it hurts on a fast machine as well.
const FIXED_SEVERITY: f64 = 0.9;
/// Share of trials with something else beside the fault.
const BESIDE: f64 = 0.25;
/// Of these, the share in which it is a second fault.
const SECOND: f64 = 0.5;

/// A trial before it is made.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Place in the run, from 1.
    pub number: usize,
    /// From 0, harmless, to 1, ruinous.
    pub severity: f64,
    /// What is planted.
    pub what: What,
}

/// What a trial plants.
#[derive(Clone, Debug)]
pub enum What {
    /// On a service of this machine.
    Host(Box<HostPlan>),
    /// In a JVM.
    Jvm(Box<JvmPlan>),
}

impl What {
    /// The first place, a middling load, nothing beside.
    fn simplify(&mut self, severity: f64) {
        match self {
            Self::Host(plan) => {
                plan.service.clone_from(&plan.kind.services[0]);
                plan.beside = Beside::Nothing;
                plan.params = at(&plan.kind.params, severity);
                plan.load = 0.5;
            }
            Self::Jvm(plan) => {
                plan.jdk = plan.kind.jdks[0];
                let first = plan.kind.collectors.first();
                plan.collector = first.cloned().unwrap_or_default();
            }
        }
    }
}

/// A host fault with all that was drawn.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// The kind.
    pub kind: HostKind,
    /// The service.
    pub service: String,
    /// From 0, the lightest ordinary load, to 1, the heaviest.
    pub load: f64,
    /// `check` is asked with `--pid`.
    pub with_pid: bool,
    /// Runs beside.
    pub beside: Beside,
    /// Parameters of the kind and of a second one.
    pub params: BTreeMap<String, String>,
    /// Path of the control group below one of ours.
    pub group: String,
}

/// What runs beside a fault.
#[derive(Clone, Debug)]
pub enum Beside {
    /// Nothing.
    Nothing,
    /// An ordinary load of a neighbour: a quarter of a CPU.
    Neighbour,
    /// Another fault, whose parameters are among the plan's.
    Fault(Box<HostKind>),
}

/// A JVM problem with all that was drawn.
#[derive(Clone, Debug)]
pub struct JvmPlan {
    /// The kind.
    pub kind: JvmKind,
    /// Major version.
    pub jdk: u32,
    /// Options that choose the collector.
    pub collector: String,
    /// Its parameters.
    pub params: BTreeMap<String, String>,
    /// The same at severity 0.
    pub harmless: BTreeMap<String, String>,
    /// An ordinary load of a neighbour runs beside it: a quarter of a CPU.
    pub neighbour: bool,
}

impl Plan {
    /// `count` trials of these kinds, from a seed. Each kind comes once before any comes twice.
    pub fn random(kinds: &Kinds, wanted: &Wanted, count: usize, seed: u64) -> Vec<Self> {
        let mut draw = Draw::seeded(seed);
        let all = wanted.of(kinds);
        let mut left: Vec<Either> = Vec::new();
        (1..=count)
            .map_while(|number| {
                if left.is_empty() {
                    left.clone_from(&all);
                }
                if left.is_empty() {
                    return None;
                }
                let at = (draw.unit() * left.len() as f64) as usize;
                let kind = left.swap_remove(at.min(left.len() - 1));
                let severity = wanted.severity.unwrap_or_else(|| draw.unit());
                let mut what = drawn(kinds, &kind, severity, &mut draw);
                if let What::Jvm(plan) = &mut what {
                    // Not a draw of the same row, which would change the trials that follow in seeds that were run before.
                    plan.neighbour = Draw::seeded(seed ^ number as u64).chance(BESIDE);
                }
                Some(Self {
                    number,
                    severity,
                    what,
                })
            })
            .collect()
    }

    /// One trial of each quick kind, or of each kind that is wanted by name, with the first of its services and nothing beside.
    pub fn fixed(kinds: &Kinds, wanted: &Wanted) -> Vec<Self> {
        let mut draw = Draw::seeded(0);
        let severity = wanted.severity.unwrap_or(FIXED_SEVERITY);
        let all = wanted.of(kinds).into_iter();
        let quick = all.filter(|kind| !wanted.ids.is_empty() || kind.is_quick());
        (1..)
            .zip(quick)
            .map(|(number, kind)| {
                let mut what = drawn(kinds, &kind, severity, &mut draw);
                what.simplify(severity);
                Self {
                    number,
                    severity,
                    what,
                }
            })
            .collect()
    }

    /// `count` trials of each kind at evenly spaced severities, in the first of its places, with nothing beside. The order is drawn, so
    /// that a machine that becomes slower with time makes no curve.
    pub fn steps(kinds: &Kinds, wanted: &Wanted, count: u16, seed: u64) -> Vec<Self> {
        let mut draw = Draw::seeded(seed);
        let last = f64::from(count.saturating_sub(1).max(1));
        let mut left = Vec::new();
        for kind in wanted.of(kinds) {
            left.extend((0..count).map(|step| (kind.clone(), f64::from(step) / last)));
        }
        let mut plans = Vec::new();
        while !left.is_empty() {
            let at = (draw.unit() * left.len() as f64) as usize;
            let (kind, severity) = left.swap_remove(at.min(left.len() - 1));
            let mut what = drawn(kinds, &kind, severity, &mut draw);
            what.simplify(severity);
            if let What::Host(plan) = &mut what {
                plan.with_pid = false;
            }
            plans.push(Self {
                number: plans.len() + 1,
                severity,
                what,
            });
        }
        plans
    }

    /// Name of the kind.
    pub fn id(&self) -> &str {
        match &self.what {
            What::Host(plan) => &plan.kind.id,
            What::Jvm(plan) => &plan.kind.id,
        }
    }

    /// Rules that name it, and those that name the fault beside it.
    pub fn expects(&self) -> Expects {
        match &self.what {
            What::Host(plan) => Expects {
                own: plan.kind.expects.clone(),
                second: match &plan.beside {
                    Beside::Fault(second) => second.expects.clone(),
                    Beside::Nothing | Beside::Neighbour => Vec::new(),
                },
            },
            What::Jvm(plan) => Expects {
                own: plan.kind.expects.clone(),
                second: Vec::new(),
            },
        }
    }

    /// These rules name what will hurt later.
    pub fn forewarned(&self, acts: &[Claim]) -> bool {
        let What::Jvm(plan) = &self.what else {
            return false;
        };
        let expects = |act: &Claim| {
            let mut expects = plan.kind.expects.iter();
            expects.any(|one| rule_of(one) == act.rule)
        };
        plan.kind.forewarns && acts.iter().all(expects)
    }

    /// What it is planted in: a service, or a JVM and its collector.
    pub fn place(&self) -> String {
        match &self.what {
            What::Host(plan) => match &plan.beside {
                Beside::Nothing => plan.service.clone(),
                Beside::Neighbour => format!("{} beside a neighbour", plan.service),
                Beside::Fault(second) => format!("{} with {}", plan.service, second.id),
            },
            What::Jvm(plan) => plan.place(),
        }
    }
}

impl JvmPlan {
    /// Its JVM and collector.
    pub fn place(&self) -> String {
        let Self { jdk, collector, .. } = self;
        let jvm = format!("jdk {jdk} {collector}");
        let beside = if self.neighbour {
            " beside a neighbour"
        } else {
            ""
        };
        format!("{}{beside}", jvm.trim_end())
    }
}

/// Which kinds are meant.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// By name; all where none is named.
    pub ids: Vec<String>,
    /// Of one layer.
    pub layer: Option<Layer>,
    /// Not drawn, but this.
    pub severity: Option<f64>,
}

#[derive(Clone, Debug)]
enum Either {
    Host(Box<HostKind>),
    Jvm(Box<JvmKind>),
}

impl Either {
    fn is_quick(&self) -> bool {
        match self {
            Self::Host(kind) => kind.quick,
            Self::Jvm(kind) => kind.quick,
        }
    }
}

impl Wanted {
    fn of(&self, kinds: &Kinds) -> Vec<Either> {
        let named = |id: &String| self.ids.is_empty() || self.ids.contains(id);
        let layer = |layer| self.layer.is_none_or(|wanted| wanted == layer);
        let host = kinds
            .host
            .iter()
            .filter(|kind| layer(Layer::Host) && named(&kind.id));
        let jvm = kinds
            .jvm
            .iter()
            .filter(|kind| layer(Layer::Jvm) && named(&kind.id));
        host.cloned()
            .map(|kind| Either::Host(Box::new(kind)))
            .chain(jvm.cloned().map(|kind| Either::Jvm(Box::new(kind))))
            .collect()
    }
}

fn drawn(kinds: &Kinds, kind: &Either, severity: f64, draw: &mut Draw) -> What {
    match kind {
        Either::Host(kind) => {
            let service = draw.one_of(&kind.services).clone();
            let beside = beside(kinds, kind, &service, draw);
            let mut params = BTreeMap::new();
            if let Beside::Fault(second) = &beside {
                params.extend(at(&second.params, draw.unit()));
            }
            params.extend(at(&kind.params, severity));
            What::Host(Box::new(HostPlan {
                kind: (**kind).clone(),
                service,
                load: draw.unit(),
                with_pid: draw.chance(0.5),
                beside,
                params,
                group: (0..=draw.between(0.0, 3.0) as usize)
                    .map(|_| draw.word())
                    .collect::<Vec<_>>()
                    .join("/"),
            }))
        }
        Either::Jvm(kind) => What::Jvm(Box::new(JvmPlan {
            kind: (**kind).clone(),
            jdk: *draw.one_of(&kind.jdks),
            collector: if kind.collectors.is_empty() {
                String::new()
            } else {
                draw.one_of(&kind.collectors).clone()
            },
            params: at(&kind.params, severity),
            harmless: at(&kind.params, 0.0),
            neighbour: false,
        })),
    }
}

fn at(params: &BTreeMap<String, super::kinds::Range>, severity: f64) -> BTreeMap<String, String> {
    params
        .iter()
        .map(|(name, range)| (name.clone(), range.at(severity)))
        .collect()
}

/// A second fault is one on the same service and of another resource that needs neither another start nor another load, and has no
/// parameter of the same name. One that starts the service again would lose it.
fn beside(kinds: &Kinds, kind: &HostKind, service: &String, draw: &mut Draw) -> Beside {
    if !draw.chance(BESIDE) {
        return Beside::Nothing;
    }
    let fits = |other: &&HostKind| {
        other.services.contains(service)
            && other.resource != kind.resource
            && !other.is_healthy()
            && other.env.is_empty()
            && other.base.is_empty()
            && other.pressed.is_empty()
            && other.load.is_empty()
            && other
                .params
                .keys()
                .all(|name| !kind.params.contains_key(name))
    };
    let others: Vec<&HostKind> = kinds.host.iter().filter(fits).collect();
    // A healthy load with a fault beside it would not be healthy.
    if kind.is_healthy() || !kind.env.is_empty() || others.is_empty() || !draw.chance(SECOND) {
        return Beside::Neighbour;
    }
    Beside::Fault(Box::new((*draw.one_of(&others)).clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_plans_the_same_trials() {
        let kinds = Kinds::built_in().unwrap();
        let planned = |seed| {
            Plan::random(&kinds, &Wanted::default(), 30, seed)
                .iter()
                .map(|plan| format!("{} {} {:.6}", plan.id(), plan.place(), plan.severity))
                .collect::<Vec<_>>()
        };
        assert_eq!(planned(5), planned(5));
        assert_ne!(planned(5), planned(6));
    }

    #[test]
    fn each_kind_comes_once_before_any_comes_twice() {
        let kinds = Kinds::built_in().unwrap();
        let count = kinds.host.len() + kinds.jvm.len();
        let plans = Plan::random(&kinds, &Wanted::default(), 2 * count, 1);
        let mut ids: Vec<&str> = plans[..count].iter().map(Plan::id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
        assert_eq!(plans.len(), 2 * count);
    }

    #[test]
    fn nothing_is_planned_of_kinds_that_do_not_exist() {
        let kinds = Kinds::built_in().unwrap();
        let wanted = Wanted {
            ids: vec!["no-such-kind".to_owned()],
            ..Wanted::default()
        };
        assert!(Plan::random(&kinds, &wanted, 3, 1).is_empty());
    }

    #[test]
    fn a_second_fault_shares_the_service_and_hits_another_resource() {
        let kinds = Kinds::built_in().unwrap();
        let mut seen = 0;
        for plan in Plan::random(&kinds, &Wanted::default(), 500, 3) {
            if let What::Host(host) = &plan.what
                && let Beside::Fault(second) = &host.beside
            {
                seen += 1;
                assert!(second.services.contains(&host.service));
                assert_ne!(second.resource, host.kind.resource);
                let expects = plan.expects();
                assert_eq!(expects.second, second.expects);
                assert_eq!(expects.own, host.kind.expects);
            }
        }
        assert!(seen > 10, "{seen}");
    }

    #[test]
    fn steps_are_evenly_spaced_in_one_place_and_a_drawn_order() {
        let kinds = Kinds::built_in().unwrap();
        let wanted = Wanted {
            ids: vec!["cpu-all-busy".to_owned(), "jvm-heap-small".to_owned()],
            ..Wanted::default()
        };
        let plans = Plan::steps(&kinds, &wanted, 5, 4);
        let severities = |id: &str| -> Vec<f64> {
            let of = plans.iter().filter(|plan| plan.id() == id);
            of.map(|plan| plan.severity).collect()
        };
        for id in &wanted.ids {
            let drawn = severities(id);
            let mut sorted = drawn.clone();
            sorted.sort_by(f64::total_cmp);
            assert_eq!(sorted, [0.0, 0.25, 0.5, 0.75, 1.0]);
            assert_ne!(sorted, drawn, "{id}");
        }
        let numbers: Vec<usize> = plans.iter().map(|plan| plan.number).collect();
        assert_eq!(numbers, (1..=10).collect::<Vec<_>>());
        for plan in &plans {
            match &plan.what {
                What::Host(host) => {
                    assert_eq!(host.service, "redis");
                    assert!(matches!(host.beside, Beside::Nothing));
                    assert_eq!(host.params.len(), 1, "{:?}", host.params);
                }
                What::Jvm(jvm) => assert_eq!(jvm.jdk, jvm.kind.jdks[0]),
            }
        }
    }

    #[test]
    fn the_fixed_set_is_small_and_has_a_healthy_load() {
        let kinds = Kinds::built_in().unwrap();
        let plans = Plan::fixed(&kinds, &Wanted::default());
        assert!((5..=8).contains(&plans.len()), "{}", plans.len());
        assert!(plans.iter().any(|plan| plan.expects().own.is_empty()));
    }
}
