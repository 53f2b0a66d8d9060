//! Rules under evidence that no machine gives: nothing at all, and anything.

use proptest::prelude::*;
use rungwise_model::check::Outcome;
use rungwise_model::evidence::{
    Absence, Evidence, Key, Kind, Origin, Reading, Subject, Unit, Value,
};
use rungwise_model::keys;
use rungwise_rules::{RULES, change};

use crate::none_of;

#[test]
fn without_evidence_every_rule_is_undecided_and_says_what_is_missing() {
    let nothing = Evidence::over(10.0);
    let mut offenders = Vec::new();
    for rule in RULES {
        for finding in rule.findings(&nothing) {
            if finding.outcome != Outcome::Undecided || finding.missing.is_empty() {
                offenders.push(format!("{}: {finding:?}", rule.id));
            }
        }
    }
    none_of(&offenders, "rules that decide without evidence");
}

/// Names of subjects that meet across keys, so that rules find several readings of one thing.
const NAMES: &[&str] = &["0", "1", "7", "eth0", "lo", "41:42", "/web.slice"];

/// Words that some rule takes for something, and words that nobody expects.
const WORDS: &[&str] = &[
    "",
    "on",
    "off",
    "always",
    "madvise",
    "never",
    "enforcing",
    "inactive",
    "performance",
    "powersave",
    "0",
    "1",
    "0-3,8",
    "eth0",
    "nginx 41",
    "sd",
    "sdfn",
    "sack timestamps",
    "kvm",
    "4096 131072 6291456",
    "\u{1f980}",
    "9999999999999999999999",
    "CMS",
    "G1",
    "generational ZGC",
    "1.8.0_504-b01",
    "17.0.15+6",
    "-Xmn1g -XX:+UseG1GC",
    ",,-,",
];

fn subject(key: &'static Key) -> impl Strategy<Value = Subject> {
    let names: Vec<String> = match key.of {
        Kind::Host => vec![String::new()],
        Kind::Queue => vec!["eth0:rx-0".into(), "eth0:tx-1".into(), "lo:rx-0".into()],
        Kind::Port => vec![
            "udp/0.0.0.0:9000".into(),
            "tcp/[::]:80".into(),
            "odd".into(),
        ],
        Kind::Connection => vec![
            "10.0.0.1:80>10.0.0.2:40000".into(),
            "10.0.0.2:40000>10.0.0.1:80".into(),
            "[::1]:80>[::1]:41000".into(),
            "odd".into(),
        ],
        Kind::Process => vec!["41".into(), "1".into(), "odd".into()],
        _ => NAMES.iter().map(|name| (*name).to_owned()).collect(),
    };
    proptest::sample::select(names).prop_map(move |name| Subject::new(key.of, name))
}

/// Small, large, negative and just at a line: whatever a probe might hand over by mistake.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        0.0..1.0,
        0.0..100_000.0,
        -2.0..2.0,
        Just(f64::MAX),
        Just(f64::MIN_POSITIVE),
    ]
}

fn reading() -> impl Strategy<Value = Reading> {
    let keys: Vec<&'static Key> = keys::all().collect();
    proptest::sample::select(keys).prop_flat_map(|key| {
        let value = match key.unit {
            Unit::Text => proptest::sample::select(WORDS)
                .prop_map(|words| Value::Text(words.to_owned()))
                .boxed(),
            _ => number().prop_map(Value::Number).boxed(),
        };
        let value = prop_oneof![
            9 => value,
            1 => Just(Value::Absent(Absence::because("not permitted"))),
        ];
        let series = prop_oneof![Just(Vec::new()), proptest::collection::vec(number(), 3),];
        (subject(key), value, series).prop_map(move |(subject, value, series)| Reading {
            key,
            subject,
            value,
            series,
            origin: Origin::new("random", "1 2 3"),
        })
    })
}

proptest! {
    // Some hundred readings over some 250 keys: most rules see some of their keys and not others.
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_rule_panics_or_is_silent_or_wavers(
        seconds in 0.0..100.0_f64,
        asked in proptest::sample::select(RULES),
        readings in proptest::collection::vec(reading(), 0..1200),
    ) {
        let (mut evidence, mut other) = (Evidence::over(seconds), Evidence::over(seconds));
        for (at, reading) in readings.into_iter().enumerate() {
            if at % 3 == 0 {
                other.add(reading.clone());
            }
            evidence.add(reading);
        }
        prop_assert_eq!(change::judge(asked, &evidence, &other).len(), 2);
        for rule in RULES {
            let said = rule.findings(&evidence);
            prop_assert!(!said.is_empty(), "{} is silent", rule.id);
            prop_assert_eq!(&said, &rule.findings(&evidence), "{} wavers", rule.id);
            for finding in said {
                let finite = finding.distance.is_none_or(|distance| (0.0..=1.0).contains(&distance));
                prop_assert!(finite, "{}: distance {:?}", rule.id, finding.distance);
            }
        }
    }
}
