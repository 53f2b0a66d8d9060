//! How full each resource of the host is, on one scale: the first question of the USE method (Gregg 2013).

use rungwise_model::evidence::{Evidence, Key, Subject, Unit};
use rungwise_model::keys;

use super::readings::{self, number};
use crate::block::{Bar, BarGroup, Bars, Cell, Chart, Column, Part, Plot, Table};
use crate::{numbers, scale};

/// A resource and how full it is, from 0 to 1.
struct Resource {
    name: String,
    share: f64,
}

/// One bar for each resource that is known.
pub(super) fn picture(evidence: &Evidence) -> Option<Chart> {
    let resources = resources(evidence);
    let fullest = resources
        .iter()
        .max_by(|a, b| a.share.total_cmp(&b.share))?;
    let title = format!(
        "Fullest: {}, {}",
        fullest.name,
        numbers::share(fullest.share)
    );
    let alone = |resource: &Resource| BarGroup {
        title: resource.name.clone(),
        bars: vec![Bar {
            label: String::new(),
            values: vec![resource.share],
            total: numbers::share(resource.share),
        }],
    };
    let row = |resource: &Resource| {
        vec![
            Cell::text(resource.name.clone()),
            Cell::number(Some(resource.share), numbers::share),
        ]
    };
    Some(Chart {
        id: "fullness",
        title,
        note: "CPUs and disks: busy share of the window. Links: share of the link speed. Memory, buffers and tables: \
               share in use."
            .to_owned(),
        data: Table {
            caption: String::new(),
            columns: vec![
                Column::words("Resource", "resource").unit(Unit::Text),
                Column::number("In use", "share").unit(Unit::Fraction),
            ],
            rows: resources.iter().map(row).collect(),
        },
        plot: Plot::Bars(Bars {
            quantity: "in use".to_owned(),
            unit: scale::Unit::Share,
            whole: true,
            parts: vec![Part {
                name: "in use",
                hue: 0,
                fill: '#',
            }],
            groups: resources.iter().map(alone).collect(),
        }),
    })
}

/// In the order of the tiles above: CPU, memory, disk, network, sockets.
fn resources(evidence: &Evidence) -> Vec<Resource> {
    let host = |name: &str, key, full: fn(f64) -> f64| {
        let share = full(number(evidence, key, &Subject::host())?);
        Some(Resource {
            name: name.to_owned(),
            share,
        })
    };
    // The one that is most so; where none is, without a name.
    let most = |name: &str, key: &'static Key| {
        let all = evidence.each(key).ok()?;
        let largest = readings::largest(evidence, key, 1);
        let share = |subject| number(evidence, key, subject);
        match largest.first() {
            Some(subject) => Some(Resource {
                name: format!("{name} {}", subject.name()),
                share: share(subject)?,
            }),
            None if all.is_empty() => None,
            None => Some(Resource {
                name: name.to_owned(),
                share: 0.0,
            }),
        }
    };
    let all = [
        host("CPUs, mean", &keys::CPU_BUSY_MEAN, |busy| busy),
        most("CPU", &keys::CPU_BUSY),
        host("memory", &keys::MEMORY_AVAILABLE, |available| {
            1.0 - available
        }),
        most("disk", &keys::DISK_BUSY),
        most("link", &keys::DEVICE_USE),
        most("UDP receive buffer", &keys::UDP_SOCKET_QUEUE),
        accept_queue(evidence),
        host("connection tracking", &keys::CONNTRACK_USE, |used| used),
        host("ports to one destination", &keys::TCP_PORTS_USED, |used| {
            used
        }),
    ];
    all.into_iter()
        .flatten()
        .filter(|resource| resource.share.is_finite())
        .map(|resource| Resource {
            share: resource.share.clamp(0.0, 1.0),
            ..resource
        })
        .collect()
}

/// The listener whose connections wait most, as a share of what may wait there.
fn accept_queue(evidence: &Evidence) -> Option<Resource> {
    let filled = |listener: &Subject| {
        let waiting = number(evidence, &keys::TCP_ACCEPT_QUEUE, listener)?;
        let most = number(evidence, &keys::TCP_ACCEPT_BACKLOG, listener)?;
        (most > 0.0).then_some(waiting / most)
    };
    readings::subjects(evidence, &[&keys::TCP_ACCEPT_BACKLOG])
        .iter()
        .filter_map(|listener| {
            Some(Resource {
                name: format!("accept queue {}", listener.name()),
                share: filled(listener)?,
            })
        })
        .max_by(|a, b| a.share.total_cmp(&b.share))
}

#[cfg(test)]
mod tests {
    use rungwise_model::evidence::{Kind, Origin};

    use super::*;

    #[test]
    fn each_resource_is_as_full_as_its_fullest_part() {
        let mut evidence = Evidence::over(10.0);
        let origin = || Origin::new("test", "");
        assert!(picture(&evidence).is_none());
        let host = Subject::host;
        evidence.number(&keys::CPU_BUSY_MEAN, host(), 0.25, origin());
        evidence.number(&keys::MEMORY_AVAILABLE, host(), 0.2, origin());
        for (disk, busy) in [("sda", 0.1), ("sdb", 0.5)] {
            evidence.number(
                &keys::DISK_BUSY,
                Subject::new(Kind::Disk, disk),
                busy,
                origin(),
            );
        }
        evidence.number(&keys::DEVICE_USE, Subject::device("eth0"), 0.0, origin());
        let chart = picture(&evidence).unwrap();
        assert_eq!(
            chart.title,
            format!("Fullest: memory, {}", numbers::share(0.8))
        );
        let Plot::Bars(bars) = chart.plot else {
            panic!("no bars");
        };
        let drawn: Vec<(&str, f64)> = bars
            .groups
            .iter()
            .map(|group| (&*group.title, (group.bars[0].values[0] * 100.0).round()))
            .collect();
        assert_eq!(
            drawn,
            [
                ("CPUs, mean", 25.0),
                ("memory", 80.0),
                ("disk sdb", 50.0),
                ("link", 0.0)
            ]
        );
    }
}
