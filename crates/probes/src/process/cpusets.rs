//! CPUs that the control group of a process allows: its cpuset.
//!
//! An affinity mask cannot exceed the cpuset of the group, so a narrow mask has two possible causes with different
//! fixes. `/proc/PID/cpuset` names the group; its effective CPUs are `cpuset.cpus.effective` (cgroup v2) or
//! `cpuset.effective_cpus` (v1). Source: kernel/cgroup/cpuset.c (`proc_cpuset_show`, `sched_setaffinity` through
//! `cpuset_cpus_allowed`), Linux 6.18; cpuset(7).

use rungwise_model::evidence::{Absence, Evidence, Kind, Origin, Subject};
use rungwise_model::keys;

use crate::capture::Raw;
use crate::probe::{What, When};
use crate::{Cost, Probe, Source, Window, enter};

const CPUSETS: &str = "/proc/{service}/cpuset";
const EFFECTIVE: [&str; 2] = ["cpuset.cpus.effective", "cpuset.effective_cpus"];

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-pid-cpuset",
    summary: "the cpuset of the control group of each service",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[
        Source::once(CPUSETS),
        Source {
            what: What::Groups,
            when: When::Each,
        },
    ],
    yields: &[&keys::PROCESS_CPUSET, &keys::PROCESS_CPUSET_GROUP],
    derive,
    doc: "\
The effective CPUs of the control group, for processes (at most 16) that serve clients over TCP or use 1 % of a CPU \
and are not in the root group. In a container the group has its name inside the container, and its files may be \
missing. Sources: kernel/cgroup/cpuset.c of Linux 6.18; cpuset(7).",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let files = window.moments().last().map(|last| &last.files);
    for (path, stars) in window.matching("/proc/*/cpuset") {
        let (Some(pid), Ok(text)) = (stars.first(), window.text(path)) else {
            continue;
        };
        let group = text.trim();
        if group.len() < 2 {
            continue;
        }
        let ends = EFFECTIVE.map(|file| format!("{group}/{file}"));
        // Of groups whose paths have the same end, the one nearest to the root is used.
        let found = files
            .into_iter()
            .flatten()
            .filter_map(|(file, raw)| match raw {
                Raw::Text(text) if ends.iter().any(|end| file.ends_with(end)) => Some((file, text)),
                _ => None,
            })
            .min_by_key(|(file, _)| file.len());
        let Some((file, cpus)) = found else { continue };
        let subject = || Subject::new(Kind::Process, pid);
        let origin = || Origin::new(file, cpus.trim());
        evidence.text(&keys::PROCESS_CPUSET, subject(), cpus.trim(), origin());
        evidence.text(&keys::PROCESS_CPUSET_GROUP, subject(), group, origin());
    }
    let none = Absence::none("no service is in a group with a cpuset");
    enter::absent_if_unset(evidence, PROBE.yields, &none, "/proc/PID/cpuset");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Capture, Moment};

    #[test]
    fn the_group_of_a_process_names_its_cpus() {
        let files = [
            ("/proc/41/cpuset", "/app/web\n"),
            ("/proc/42/cpuset", "/\n"),
            (
                "/sys/fs/cgroup/cpuset/a/app/web/cpuset.effective_cpus",
                "1\n",
            ),
            ("/sys/fs/cgroup/cpuset/app/web/cpuset.effective_cpus", "0\n"),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), Raw::Text(text.to_owned())));
        let capture = Capture {
            moments: vec![Moment {
                files: files.into(),
                ..Moment::default()
            }],
            ..Capture::default()
        };
        let mut evidence = Evidence::over(1.0);
        derive(&Window::of(&capture), &mut evidence);
        let process = |pid| Subject::new(Kind::Process, pid);
        let words = |key| evidence.words(key, &process(41)).unwrap().value.to_owned();
        assert_eq!(words(&keys::PROCESS_CPUSET), "0");
        assert_eq!(words(&keys::PROCESS_CPUSET_GROUP), "/app/web");
        assert!(evidence.words(&keys::PROCESS_CPUSET, &process(42)).is_err());
    }
}
