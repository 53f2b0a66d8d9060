//! What is counted in each file of the corpus, against the counts of an independent script, and what the programs knew.

use rungwise_model::threads::Dump;
use rungwise_threaddump::{State, evidence, summary};

use crate::{corpus, read};

fn dumps(name: &str) -> Vec<Dump> {
    summary(read(name, &corpus::dump(name)).0).dumps
}

#[test]
fn every_count_of_the_truth_is_ours() {
    let mut offenders = Vec::new();
    for (name, count) in corpus::truth() {
        let (dumps, _) = read(&name, &corpus::dump(&name));
        let threads = || dumps.iter().flat_map(|dump| &dump.threads);
        let mut compare = |what: &str, expected: u64, found: usize| {
            if expected != found as u64 {
                offenders.push(format!(
                    "{name}: {what}: {found}, and {expected} by the truth"
                ));
            }
        };
        let count_of = |what: &str| count[what].as_u64();
        if let Some(headers) = count_of("thread_headers").filter(|headers| *headers > 0) {
            // Virtual threads that a carrier runs have no line of their own.
            let named = threads().filter(|thread| !thread.name.starts_with("virtual thread #"));
            compare("threads", headers, named.count());
        }
        for state in [
            State::Runnable,
            State::Blocked,
            State::Waiting,
            State::TimedWaiting,
        ] {
            if let Some(expected) = count_of(state.name()) {
                let found = threads().filter(|thread| thread.state == Some(state));
                compare(state.name(), expected, found.count());
            }
        }
        if let Some(expected) = count_of("json_threads") {
            compare("threads", expected, threads().count());
        }
        if let Some(expected) = count_of("deadlock_sections") {
            let found = dumps.iter().map(|dump| dump.reported.len());
            compare("deadlocks", expected, found.sum());
        }
        if let Some(expected) = count["most_waited_monitor"]["waiters"].as_u64() {
            // The JVM prints the stacks of a deadlock again behind its report, and the script counts them again.
            let reported = dumps.iter().flat_map(|dump| &dump.reported);
            let members: Vec<_> = reported.flat_map(|report| &report.members).collect();
            let again = |id: &str| {
                let locks = members.iter().filter_map(|member| member.lock.as_ref());
                locks.filter(|lock| &*lock.id == id).count()
            };
            let summarized = summary(dumps.clone()).dumps;
            let locks = summarized.iter().flat_map(|dump| &dump.locks);
            let monitors = locks.filter(|lock| lock.kind == "monitor");
            let lines = monitors.map(|lock| lock.waiters.len() + again(&lock.id));
            compare("waiters", expected, lines.max().unwrap_or(0));
        }
    }
    assert!(offenders.is_empty(), "{}", offenders.join("\n"));
}

/// The program of the own dumps: 60 workers at one appender, eight clients at a `ReentrantLock`, two deadlocks.
#[test]
fn what_the_program_was_built_to_do_is_found() {
    let [dump] = &dumps("own_jdk17-jcmd-print-l-e.txt")[..] else {
        panic!("one dump")
    };
    let root = &dump.locks[0];
    assert_eq!(
        (&*root.class, root.waiters.len()),
        ("org.apache.log4j.spi.RootLogger", 59)
    );
    assert_eq!(root.owner_doing.as_deref(), Some("writes a log"));
    let clients = &dump.locks[1];
    assert_eq!(
        (clients.waiters.len(), clients.owner.as_deref()),
        (8, Some("db-holder"))
    );
    let deadlocks: Vec<_> = dump
        .deadlocks
        .iter()
        .map(|one| (one.threads.join(" "), one.reported))
        .collect();
    assert_eq!(
        deadlocks,
        [
            ("dl-A dl-B".to_owned(), true),
            ("dl-P dl-Q".to_owned(), true)
        ]
    );
}

#[test]
fn a_dump_without_synchronizers_says_so() {
    let [dump] = &dumps("own_jdk25-jstack.txt")[..] else {
        panic!("one dump")
    };
    assert!(!dump.has_synchronizers);
    assert_eq!(dump.deadlocks.len(), 1, "the one through monitors");
    let clients = dump
        .locks
        .iter()
        .find(|lock| lock.waiters.len() == 8)
        .unwrap();
    assert!(clients.owner.is_none());
    assert!(clients.owner_unknown.as_ref().unwrap().contains("-l"));
}

#[test]
fn virtual_threads_are_seen_in_files() {
    for name in ["own_jdk25-vt-dump.json", "own_jdk25-vt-plain.txt"] {
        let [dump] = &dumps(name)[..] else {
            panic!("one dump")
        };
        let waiters: Vec<usize> = dump.locks.iter().map(|lock| lock.waiters.len()).collect();
        assert_eq!(waiters, [30, 20], "{name}");
        // The owner of the monitor is a thread without a name.
        assert_eq!(dump.locks[1].owner.as_deref(), Some("thread #22"), "{name}");
    }
}

#[test]
fn dumps_of_one_jvm_are_put_together() {
    let mut all = Vec::new();
    for number in (0..6).rev() {
        let name = format!("jthreaddump_scenario_lock-contention/dump-{number}.txt");
        all.extend(read(&name, &corpus::dump(&name)).0);
    }
    let report = summary(all);
    assert!(report.dumps.iter().all(|dump| dump.jvm == 1));
    assert!(
        report.dumps[0].file.ends_with("dump-0.txt"),
        "in the order of time"
    );
    assert!(!report.stuck.is_empty());
}

#[test]
fn an_owner_that_stands_still_is_called_so() {
    // The last of the six was taken when the load had gone.
    let mut all = Vec::new();
    for number in 0..5 {
        let name = format!("jthreaddump_scenario_lock-contention/dump-{number}.txt");
        all.extend(read(&name, &corpus::dump(&name)).0);
    }
    let evidence = evidence(&summary(all));
    let owner = evidence
        .readings()
        .find(|reading| reading.key.id == "threads.top_owner")
        .map(rungwise_model::evidence_text::value);
    assert!(
        owner
            .as_ref()
            .is_some_and(|text| text.contains("which sleeps in")),
        "{owner:?}"
    );
}

#[test]
fn a_dump_given_thrice_shows_who_stands_still() {
    let text = corpus::dump("own_jdk17-jcmd-print-l-e.txt").repeat(3);
    let report = summary(read("x", &text).0);
    assert_eq!(report.dumps.len(), 3);
    let evidence = evidence(&report);
    let mut readings = evidence.readings();
    let owner = readings
        .find(|reading| reading.key.id == "threads.top_owner")
        .unwrap();
    let value = rungwise_model::evidence_text::value(owner);
    assert!(value.ends_with("at the same place in 3 dumps"), "{value}");
    let holder = report
        .stuck
        .iter()
        .find(|one| one.thread == "db-holder")
        .unwrap();
    assert_eq!(
        (holder.dumps, &*holder.why),
        (
            3,
            "8 threads wait for java.util.concurrent.locks.ReentrantLock$NonfairSync, which it holds"
        )
    );
}

#[test]
fn threads_that_wait_for_a_connection_are_seen_in_every_pool() {
    for (name, library, waiting) in [
        ("hikari", "HikariCP", 55),
        ("dbcp", "DBCP", 55),
        ("c3p0", "c3p0", 55),
        ("druid", "Druid", 55),
        ("tomcat", "Tomcat JDBC", 55),
        ("jedis", "Jedis", 55),
        ("lettuce", "Lettuce", 55),
        ("httpclient4", "HttpClient 4", 58),
        ("httpclient5", "HttpClient 5", 58),
    ] {
        let name = format!("own_jdk17-pool-{name}.txt");
        let report = summary(read(&name, &corpus::dump(&name)).0);
        let wait = &report.waits[0];
        assert_eq!(
            (&*wait.kind, wait.waiters.len()),
            ("connection", waiting),
            "{name}"
        );
        assert!(wait.what.ends_with(library), "{name}: {}", wait.what);
        // Those that have one.
        assert_eq!(wait.past as usize, 60 - waiting, "{name}");
    }
}

#[test]
fn threads_that_wait_for_a_reply_are_seen_in_every_client() {
    for (name, reply, waiting) in [
        ("reply-okhttp", "an HTTP reply (OkHttp)", 60),
        ("reply-java-http", "an HTTP reply (java.net.http)", 60),
        ("pool-lettuce", "a Redis reply (Lettuce)", 5),
    ] {
        let name = format!("own_jdk17-{name}.txt");
        let report = summary(read(&name, &corpus::dump(&name)).0);
        let of_reply = |wait: &&rungwise_model::threads::SharedWait| wait.kind == "reply";
        let wait = report.waits.iter().find(of_reply).unwrap();
        assert_eq!(
            (&*wait.what, wait.waiters.len()),
            (reply, waiting),
            "{name}"
        );
        let at = wait.at.as_deref().unwrap_or_default();
        assert!(at.starts_with("Clients.lambda"), "{name}: {at}");
        // Their threads wait for another process, whatever reads for them.
        let pool = &report.full_pools[0];
        assert_eq!(pool.cause, "waits for another service", "{name}");
        assert_eq!(pool.behind, 60, "{name}");
    }
}

#[test]
fn a_deadlock_is_seen_in_every_form_of_the_management_beans() {
    for form in ["jmx.txt", "actuator.txt", "actuator.json"] {
        let [dump] = &dumps(&format!("own_jdk17-beans-{form}"))[..] else {
            panic!("one dump")
        };
        let [deadlock] = &dump.deadlocks[..] else {
            panic!("{form}: {:?}", dump.deadlocks)
        };
        assert_eq!(deadlock.threads, ["ring-0", "ring-1", "ring-2"], "{form}");
        assert!(dump.has_synchronizers, "{form}");
    }
}

/// A cycle of a monitor and a lock as `JmxSupport` of `VisualVM` prints it: an empty line before the locks of each thread and
/// before each further lock, and no title where only chosen threads were asked for.
const VISUAL_VM: &str = r#""ring-0" - Thread t@11
   java.lang.Thread.State: BLOCKED
	at Plant.second(Plant.java:20)
	- waiting to lock <5b2133b1> (a java.lang.Object) owned by "ring-1" t@12
	at Plant.first(Plant.java:16)
	- locked <77f03bb1> (a java.lang.Object)

   Locked ownable synchronizers:
	- locked <1f32e575> (a java.util.concurrent.locks.ReentrantLock$NonfairSync)

	- locked <279f327f> (a java.util.concurrent.locks.ReentrantLock$NonfairSync)

"ring-1" - Thread t@12
   java.lang.Thread.State: WAITING
	at java.base@17.0.15/jdk.internal.misc.Unsafe.park(Native Method)
	- parking to wait for <279f327f> (a java.util.concurrent.locks.ReentrantLock$NonfairSync)
	at java.base@17.0.15/java.util.concurrent.locks.LockSupport.park(LockSupport.java:211)
	at java.base@17.0.15/java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire(AbstractQueuedSynchronizer.java:715)
	at java.base@17.0.15/java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire(AbstractQueuedSynchronizer.java:938)
	at java.base@17.0.15/java.util.concurrent.locks.ReentrantLock$Sync.lock(ReentrantLock.java:153)
	at java.base@17.0.15/java.util.concurrent.locks.ReentrantLock.lock(ReentrantLock.java:322)
	at Plant.third(Plant.java:30)
	- locked <5b2133b1> (a java.lang.Object)

   Locked ownable synchronizers:
	- None
"#;

#[test]
fn a_dump_of_visual_vm_names_the_owners_of_monitors_and_locks() {
    let time = "2026-11-28 15:40:00\n";
    let title = "Full thread dump OpenJDK 64-Bit Server VM (17.0.15+6 mixed mode, sharing):\n";
    for begin in [format!("{time}{title}\n"), format!("{time}\n")] {
        let (dumps, account) = read("visualvm.txt", format!("{begin}{VISUAL_VM}").as_bytes());
        let report = summary(dumps);
        let [dump] = &report.dumps[..] else {
            panic!("one dump")
        };
        assert!(dump.has_synchronizers);
        let [deadlock] = &dump.deadlocks[..] else {
            panic!("{begin}: {:?}", dump.deadlocks)
        };
        let mut threads = deadlock.threads.clone();
        threads.sort();
        assert_eq!(threads, ["ring-0", "ring-1"]);
        assert_eq!(account.unknown, 0, "{account:?}");
    }
}

#[test]
fn classes_that_initialise_each_other_are_a_deadlock_where_no_class_is_named() {
    let [dump] = &dumps("own_jdk8-class-init.txt")[..] else {
        panic!("one dump")
    };
    let mut threads = dump.deadlocks[0].threads.clone();
    threads.sort();
    assert_eq!(threads, ["init-left", "init-right"]);
    assert!(!dump.deadlocks[0].reported);
}

#[test]
fn dumps_in_reverse_order_are_put_in_the_order_of_their_time() {
    let mut all = Vec::new();
    for number in (0..5).rev() {
        let name = format!("jthreaddump_scenario_lock-contention/dump-{number}.txt");
        // An export without times; the age of the threads is left.
        let text = String::from_utf8(corpus::dump(&name)).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with("20"));
        let text: Vec<&str> = lines.collect();
        all.extend(read(&name, text.join("\n").as_bytes()).0);
    }
    let files: Vec<String> = summary(all)
        .dumps
        .into_iter()
        .map(|dump| dump.file)
        .collect();
    assert!(files.is_sorted(), "{files:?}");
}
