//! Time by stages of the code: servlet, business, JDBC, log, RPC, by names of packages.
//!
//! A thread with something to do in one dump is a sample, and the innermost frame of any stage says in which stage it is. Frames of the
//! JDK are of no stage: they work for the one that called them. Code of no named stage goes by its package.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use rungwise_model::threads::{Doing, Stage};

use crate::activity::Activity;
use crate::frame::{self, method};
use crate::graph::Graph;
use crate::times::add;

/// Parts of a package's name by which unnamed code is divided.
const PARTS: usize = 3;
/// Stages of one JVM; further ones are left out.
const MOST: usize = 100;
/// The stage of a sample without a frame outside the JDK.
const JDK: &str = "JDK only";

/// Beginnings of class names of common libraries, by stage.
const KNOWN: &[(&str, &[&str])] = &[
    (
        "log",
        &[
            "org.apache.log4j.",
            "org.apache.logging.",
            "ch.qos.logback.",
            "org.slf4j.",
            "java.util.logging.",
            "org.apache.commons.logging.",
        ],
    ),
    (
        "jdbc",
        &[
            "java.sql.",
            "javax.sql.",
            "com.mysql.",
            "org.mariadb.jdbc.",
            "org.postgresql.",
            "oracle.jdbc.",
            "oracle.net.",
            "oracle.ucp.",
            "com.microsoft.sqlserver.",
            "com.ibm.db2.",
            "org.h2.",
            "com.zaxxer.hikari.",
            "com.alibaba.druid.",
            "com.mchange.v2.",
            "org.apache.commons.dbcp",
            "org.apache.tomcat.jdbc.",
            "org.springframework.jdbc.",
        ],
    ),
    (
        "serialization",
        &[
            "java.io.ObjectInputStream",
            "java.io.ObjectOutputStream",
            "com.fasterxml.jackson.",
            "com.alibaba.fastjson",
            "com.google.gson.",
            "com.google.protobuf.",
            "com.caucho.hessian.",
            "com.esotericsoftware.kryo.",
        ],
    ),
    (
        "rpc",
        &[
            "org.apache.dubbo.",
            "com.alibaba.dubbo.",
            "io.grpc.",
            "org.apache.thrift.",
            "feign.",
            "org.apache.http.",
            "org.apache.hc.",
            "okhttp3.",
            "java.net.http.",
            "jdk.internal.net.http.",
        ],
    ),
    (
        "servlet",
        &[
            "javax.servlet.",
            "jakarta.servlet.",
            "org.apache.catalina.",
            "org.apache.coyote.",
            "org.apache.tomcat.",
            "org.eclipse.jetty.",
            "io.undertow.",
            "org.springframework.web.",
            "org.springframework.boot.",
        ],
    ),
];

/// The names of stages, in the order in which they are tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// Beginning of a class name and its stage; the user's.
    named: Vec<(String, String)>,
}

/// Why a line names no stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadStage(String);

impl std::fmt::Display for BadStage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "'{}' names no stage: write NAME=PACKAGE, such as dao=com.shop.dao",
            self.0
        )
    }
}

impl std::error::Error for BadStage {}

impl Stages {
    /// Adds `NAME=PREFIX` or `NAME=PREFIX,PREFIX`: classes whose name begins with the prefix are of this stage. Earlier ones and longer
    /// prefixes of the same call win; all of them win over the known libraries.
    ///
    /// # Errors
    ///
    /// There is no `=`, or nothing on one of its sides.
    pub fn add(&mut self, line: &str) -> Result<(), BadStage> {
        let bad = || BadStage(line.trim().to_owned());
        let (name, prefixes) = line.split_once('=').ok_or_else(bad)?;
        let (name, mut count) = (name.trim(), 0);
        for prefix in prefixes.split(',').map(str::trim) {
            if prefix.is_empty() || prefix.contains(char::is_whitespace) {
                return Err(bad());
            }
            // `com.shop.*` as imports have it.
            let prefix = prefix.trim_end_matches('*');
            self.named.push((prefix.to_owned(), name.to_owned()));
            count += 1;
        }
        if name.is_empty() || count == 0 {
            return Err(bad());
        }
        Ok(())
    }

    /// Adds the stages of a file: one a line, as [`Stages::add`] takes them; empty lines and those that begin with `#` are left out.
    ///
    /// # Errors
    ///
    /// The first line that names no stage.
    pub fn add_lines(&mut self, text: &str) -> Result<(), BadStage> {
        let lines = text.lines().map(str::trim);
        let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.try_for_each(|line| self.add(line))
    }

    /// The stage of a frame; none for the JDK's.
    fn of<'s>(&'s self, frame: &'s str) -> Option<Cow<'s, str>> {
        let name = method(frame);
        let named = self.named.iter().find(|(prefix, _)| {
            // A package, not the beginning of another one's name.
            let rest = name.strip_prefix(&**prefix);
            rest.is_some_and(|rest| {
                prefix.ends_with('.') || rest.is_empty() || rest.starts_with(['.', '$'])
            })
        });
        if let Some((_, stage)) = named {
            return Some(Cow::Borrowed(stage));
        }
        let known = KNOWN
            .iter()
            .find(|(_, prefixes)| prefixes.iter().any(|prefix| name.starts_with(prefix)));
        if let Some((stage, _)) = known {
            return Some(Cow::Borrowed(stage));
        }
        if frame::is_of_jdk(frame) {
            return None;
        }
        Some(Cow::Owned(package(name)))
    }

    /// The shares of the stages in dumps of one JVM and one form; the largest first.
    pub(crate) fn shares(&self, jvm: u64, graphs: &[&Graph<'_>]) -> Vec<Stage> {
        let mut stages: BTreeMap<String, (Doing, u64)> = BTreeMap::new();
        let mut samples = 0_u32;
        // Threads of a pool have many frames in common.
        let mut known: BTreeMap<&str, Option<Cow<'_, str>>> = BTreeMap::new();
        for graph in graphs {
            for (thread, doing) in graph.dump.threads.iter().zip(&graph.doing) {
                if matches!(doing, Activity::Jvm | Activity::Idle) {
                    continue;
                }
                samples += 1;
                let mut seen = BTreeSet::new();
                for frame in &thread.frames {
                    let stage = known.entry(frame).or_insert_with(|| self.of(frame));
                    let Some(stage) = stage.as_deref().filter(|stage| !seen.contains(*stage))
                    else {
                        continue;
                    };
                    let (own, total) = stages.entry(stage.to_owned()).or_default();
                    if seen.is_empty() {
                        add(own, *doing);
                    }
                    *total += 1;
                    seen.insert(stage.to_owned());
                }
                if seen.is_empty() {
                    let (own, total) = stages.entry(JDK.to_owned()).or_default();
                    add(own, *doing);
                    *total += 1;
                }
            }
        }
        let of_all = |count: u64| count as f64 / f64::max(1.0, f64::from(samples));
        let mut stages: Vec<Stage> = stages
            .into_iter()
            .map(|(name, (own, total))| Stage {
                jvm,
                name,
                own_share: of_all(own.running + own.lock_waiting + own.waiting),
                own,
                total_share: of_all(total),
                mean_threads: total as f64 / graphs.len().max(1) as f64,
                ms_per_request: None,
            })
            .collect();
        stages.sort_by(|a, b| {
            let order = b.own_share.total_cmp(&a.own_share);
            order.then(b.total_share.total_cmp(&a.total_share))
        });
        stages.truncate(MOST);
        stages
    }
}

/// The first parts of the package of `org.a.b.c.Class.method`; the class where it has no package.
fn package(name: &str) -> String {
    let mut parts: Vec<&str> = name.split('.').collect();
    // The method, and the class if anything is left of it.
    parts.pop();
    if parts.len() > 1 {
        parts.pop();
    }
    parts.truncate(PARTS);
    let package = parts.join(".");
    // A lambda or inner class is of its class.
    package.split('$').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Parser, summary_by};

    #[test]
    fn a_frame_is_of_the_users_stage_then_of_a_known_library_then_of_its_package() {
        let mut stages = Stages::default();
        stages.add("dao = com.shop.dao, com.shop.cache.*").unwrap();
        stages
            .add_lines("# ours\n\nweb=org.apache.catalina\n")
            .unwrap();
        for (frame, expected) in [
            ("app//com.shop.dao.Orders.find(O.java:1)", Some("dao")),
            ("com.shop.daoless.X.y(X.java:1)", Some("com.shop.daoless")),
            ("com.shop.cache.Cache.get(C.java:1)", Some("dao")),
            ("org.apache.catalina.core.X.y(X.java:1)", Some("web")),
            ("org.apache.coyote.X.y(X.java:1)", Some("servlet")),
            ("com.mysql.cj.A.b(A.java)", Some("jdbc")),
            ("Main$Inner.run(M.java)", Some("Main")),
            ("shop.Main$$Lambda/0x1.run(M.java)", Some("shop")),
            ("java.lang.Object.wait(Native Method)", None),
            ("", Some("")),
        ] {
            assert_eq!(stages.of(frame).as_deref(), expected, "{frame}");
        }
        for bad in ["", "dao", "=x", "dao=", "dao= ,", "dao=a b"] {
            assert!(stages.add(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_innermost_stage_owns_a_sample_and_all_have_part_in_it() {
        let thread = |name: &str, state: &str, frames: &[&str]| {
            let frames = frames
                .iter()
                .map(|it| format!("\tat {it}(X.java:1)\n"))
                .collect::<Vec<_>>()
                .concat();
            format!(
                "\"{name}\" #1 tid=0x1 nid=0x1 x\n   java.lang.Thread.State: {state}\n{frames}\n"
            )
        };
        let text = [
            "Full thread dump OpenJDK 64-Bit Server VM (17 mixed mode):\n\n".to_owned(),
            thread(
                "a",
                "RUNNABLE",
                &[
                    "java.net.Socket.read",
                    "org.postgresql.A.b",
                    "shop.Dao.find",
                    "org.apache.coyote.C.d",
                ],
            ),
            thread(
                "b",
                "RUNNABLE",
                &["shop.Dao.count", "org.apache.coyote.C.d"],
            ),
            thread(
                "c",
                "RUNNABLE",
                &["java.util.HashMap.get", "java.lang.Thread.run"],
            ),
            // It waits for work.
            thread(
                "d",
                "WAITING",
                &[
                    "java.util.concurrent.LinkedBlockingQueue.take",
                    "shop.Worker.run",
                ],
            ),
        ]
        .concat();
        let mut parser = Parser::new();
        parser.begin("dump");
        parser.push(text.as_bytes());
        let stages = summary_by(parser.finish().0, &Stages::default()).stages;
        let of = |name: &str| {
            let stage = stages.iter().find(|stage| stage.name == name).unwrap();
            (stage.own.running, (stage.total_share * 3.0).round() as u64)
        };
        assert_eq!(of("jdbc"), (1, 1));
        assert_eq!(of("shop"), (1, 2));
        assert_eq!(of("servlet"), (0, 2));
        assert_eq!(of(JDK), (1, 1));
    }
}
