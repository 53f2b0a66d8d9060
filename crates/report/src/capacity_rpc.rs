//! The report of `capacity rpc`: whether the limits suffice, what each site needs, and what limits it.

use rungwise_model::capacity_rpc::{CapacityRpcReport, Limit, Plan, ROOM};

use crate::block::{Block, Cell, Column, Mark, Table, Tone, Verdict};
use crate::numbers;
use crate::tune::moment;

/// The whole report.
pub fn blocks(report: &CapacityRpcReport) -> Vec<Block> {
    let mut blocks = vec![Block::Verdict(verdict(report))];
    blocks.extend(report.notes.iter().map(|text| Block::Notice {
        tone: Tone::Doubt,
        text: text.clone(),
    }));
    blocks.push(Block::section("plans", "What each site needs"));
    blocks.push(Block::Table(plans(report)));
    if !report.limits.is_empty() {
        blocks.push(Block::section("limits", "What limits a site"));
        blocks.push(Block::Table(limits(&report.limits)));
    }
    blocks.push(Block::section("figures", "Figures"));
    blocks.push(Block::Facts(facts(report)));
    blocks
}

fn verdict(report: &CapacityRpcReport) -> Verdict {
    let short = |plan: &&Plan| plan.headroom.is_some_and(|headroom| headroom < 1.0);
    let tight = |plan: &Plan| plan.headroom.is_some_and(|headroom| headroom < ROOM);
    let all = report.plans.first();
    let mut sentences = Vec::new();
    if let Some(all) = all {
        let sites = if all.sites > 1 { " per site" } else { "" };
        sentences.push(format!(
            "{} needs at least {}{sites}",
            numbers::rate(report.wanted_per_s),
            connections(all.connections)
        ));
    }
    if let Some(fewer) = report.plans.get(1) {
        sentences.push(format!(
            "{} if one site fails",
            connections(fewer.connections)
        ));
    }
    let tightest = report.limits.first();
    if let (Some(plan), Some(limit)) = (report.plans.iter().find(short), tightest) {
        let when = if plan.sites < all.map_or(0, |all| all.sites) {
            "once a site has failed, "
        } else {
            ""
        };
        sentences.push(format!(
            "{when}the {} {} of {}",
            allows(limit),
            numbers::rate(limit.calls_per_s),
            numbers::rate(plan.calls_per_s)
        ));
    } else if let (Some(plan), Some(limit)) = (report.plans.last(), tightest) {
        sentences.push(format!(
            "the {} {} times what is wanted",
            allows(limit),
            numbers::significant(limit.calls_per_s / plan.calls_per_s)
        ));
    }
    let (symbol, word, tone) = if report.plans.iter().any(|plan| short(&plan)) {
        ("✗", "too little", Tone::Bad)
    } else if report.plans.iter().any(tight) {
        ("!", "barely enough", Tone::Doubt)
    } else if tightest.is_some() {
        ("✓", "enough", Tone::Good)
    } else {
        ("•", "calculated", Tone::Plain)
    };
    Verdict {
        mark: Mark { symbol, word, tone },
        sentence: sentences.join("; "),
        context: vec![report.target.clone(), moment(&report.envelope.started)],
        caveats: Vec::new(),
    }
}

/// `connections of a site allow`
fn allows(limit: &Limit) -> String {
    let verb = if limit.resource.ends_with('s') {
        "allow"
    } else {
        "allows"
    };
    format!("{} of a site {verb}", limit.resource)
}

fn connections(count: u64) -> String {
    match count {
        1 => "1 connection".to_owned(),
        count => format!("{} connections", numbers::count(count)),
    }
}

fn plans(report: &CapacityRpcReport) -> Table {
    let all = report.plans.first().map_or(0, |plan| plan.sites);
    let rows = report.plans.iter().map(|plan| {
        let title = match plan.sites {
            1 if all == 1 => "one site".to_owned(),
            sites if sites == all => format!("{sites} sites"),
            1 => "one site left".to_owned(),
            sites => format!("{sites} sites left"),
        };
        vec![
            Cell::text(title),
            Cell::number(Some(plan.calls_per_s), numbers::rate),
            Cell::count(plan.connections),
            Cell::number(plan.busy_threads, numbers::significant),
            Cell::number(plan.link_use, numbers::share),
            Cell::number(plan.headroom, |headroom| {
                format!("× {}", numbers::significant(headroom))
            }),
        ]
    });
    Table {
        caption: "Needs of a site".to_owned(),
        columns: vec![
            Column::words("Serving", "sites"),
            Column::number("Calls", "calls_per_s"),
            Column::number("Connections", "connections"),
            Column::number("Busy threads", "busy_threads"),
            Column::number("Link", "link_use"),
            Column::number("Allowed by its limits", "headroom"),
        ],
        rows: rows.collect(),
    }
}

fn limits(limits: &[Limit]) -> Table {
    let rows = limits.iter().map(|limit| {
        vec![
            Cell::text(&*limit.resource),
            Cell::number(Some(limit.calls_per_s), numbers::rate),
            Cell::text(&*limit.because),
        ]
    });
    Table {
        caption: "Calls that each limit allows".to_owned(),
        columns: vec![
            Column::words("Limit", "resource"),
            Column::number("Calls", "calls_per_s"),
            Column::words("Because of", "because"),
        ],
        rows: rows.collect(),
    }
}

fn facts(report: &CapacityRpcReport) -> Vec<(String, String)> {
    let call = &report.call;
    let one = call.connection_bytes_per_s / call.bytes;
    let mut facts = vec![
        ("A call".to_owned(), numbers::whole_bytes(call.bytes)),
        (
            "A connection".to_owned(),
            format!(
                "{}/s: {} calls per second",
                numbers::whole_bytes(call.connection_bytes_per_s),
                numbers::significant(one)
            ),
        ),
    ];
    let mut fact = |name: &str, value: Option<String>| {
        facts.extend(value.map(|value| (name.to_owned(), value)));
    };
    let site = &report.site;
    let link = site.link_bytes_per_s;
    fact(
        "Link of a site",
        link.map(|link| format!("{}/s", numbers::whole_bytes(link))),
    );
    fact(
        "Connections of a site",
        site.connections
            .map(|count| numbers::count(u64::from(count))),
    );
    fact(
        "Threads of a site",
        site.threads.map(|count| numbers::count(u64::from(count))),
    );
    let service = call.service_s;
    fact(
        "Time of a call in the service",
        service.map(|service_s| numbers::micros(service_s * 1e6)),
    );
    facts
}
