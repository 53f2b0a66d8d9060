//! `jvm flags` from outside: text, a log and a running JVM, in every form.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::run::Bench;
use crate::tune::assert_valid;

const OF_JDK_8: &str =
    "-Xmx4g -Xmn1g -XX:+UseConcMarkSweepGC -XX:MaxPermSize=128m -XX:+PrintGCDetails -Xloggc:gc.log";

#[test]
fn a_command_line_of_jdk_8_is_refused_by_17_and_moved_to_it() {
    let bench = Bench::new();
    let ended = bench.run(&["jvm", "flags", "--for", OF_JDK_8, "--jdk", "17"]);
    ended
        .expect(1)
        .says(&["refuses to start", "-XX:+UseConcMarkSweepGC"]);
    let moved = bench.run(&[
        "jvm", "flags", "--for", OF_JDK_8, "--jdk", "8", "--to", "17",
    ]);
    moved.expect(1).says(&[
        "- -XX:+UseConcMarkSweepGC",
        "+ -XX:+UseG1GC",
        "- -Xmn1g",
        "- -XX:MaxPermSize=128m",
        "+ -Xlog:gc*:file=gc.log:uptime,level,tags:filecount=0",
        "  -Xmx4g",
    ]);
}

#[test]
fn an_old_update_of_jdk_8_is_asked_for_no_option_that_came_later() {
    let bench = Bench::new();
    let run = |jdk: &str, format: &str| {
        let options = ["--for", "-XX:+UseG1GC", "--memory", "8g"];
        let form = ["--jdk", jdk, "--format", format];
        let ended = bench.run(&[&["jvm", "flags"][..], &options, &form].concat());
        ended.stdout
    };
    for (jdk, option) in [
        ("8u181", "-Xmx6g"),
        ("1.8.0_504-b01", "-XX:MaxRAMPercentage=75.0"),
    ] {
        let document: Value = serde_json::from_str(&run(jdk, "json")).unwrap();
        let mut findings = document["findings"].as_array().unwrap().iter();
        let heap = findings.find(|finding| finding["rule"] == "jvm-heap-not-set");
        assert_eq!(heap.unwrap()["knobs"][0]["to"], option, "{jdk}");
    }
    let note = "judged with the options of 8u504; this JVM is 8u181";
    assert_eq!(run("8u181", "text").matches(note).count(), 1);
    assert!(!run("8u504", "text").contains("judged with"));
}

#[test]
fn every_form_tells_the_same_and_json_keeps_to_its_schema() {
    let bench = Bench::new();
    let run = |format| {
        let ended = bench.run(&[
            "jvm", "flags", "--for", OF_JDK_8, "--jdk", "8", "--to", "25", "--memory", "2g",
            "--format", format,
        ]);
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        ended.stdout
    };
    let document: Value = serde_json::from_str(&run("json")).unwrap();
    assert_valid(&document, "jvm-flags");
    assert_eq!(document["jdk"]["release"], 8);
    assert_eq!(document["surroundings"]["memory_bytes"], 2u64 << 30);
    let first = &document["findings"][0];
    assert_eq!(first["rule"], "jvm-heap-exceeds-memory");
    let sentence = first["sentence"].as_str().unwrap();
    let fold = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for format in ["text", "markdown", "html"] {
        // The page keeps options in one piece by marks around them.
        let folded = run(format).replace("<span class=\"option\">", "");
        let folded = fold(folded.replace("</span>", ""));
        assert!(
            folded.contains(sentence),
            "{format}: no '{sentence}' in\n{folded}"
        );
    }
}

#[test]
fn good_options_end_well_and_unknown_jdks_and_words_do_not() {
    let bench = Bench::new();
    let good =
        "-Xmx1g -XX:MaxGCPauseMillis=100 -Xlog:gc*:file=gc.log -XX:+HeapDumpOnOutOfMemoryError";
    bench
        .run(&["jvm", "flags", "--for", good, "--jdk", "17"])
        .expect(0)
        .says(&["nothing to act on"]);
    bench
        .run(&[
            "jvm",
            "flags",
            "--for",
            good,
            "--jdk",
            "17",
            "--fail-on",
            "watch",
        ])
        .expect(0);
    bench
        .run(&["jvm", "flags", "--for", good])
        .expect(2)
        .says(&["--jdk"]);
    bench
        .run(&["jvm", "flags", "--for", good, "--jdk", "x"])
        .expect(2)
        .says(&["17"]);
    bench
        .run(&["jvm", "flags", "--for", "nonsense", "--jdk", "17"])
        .expect(2)
        .says(&["nonsense"]);
    bench
        .run(&["jvm", "flags", "--for", "1", "--jdk", "17"])
        .expect(4)
        .says(&["process 1"]);
    let log = bench.write("plain.log", "[0.01s][info][gc] Using G1\n");
    bench
        .run(&[
            "jvm",
            "flags",
            "--for",
            log.to_str().unwrap(),
            "--jdk",
            "17",
        ])
        .expect(4)
        .says(&["contains no flags"]);
}

#[test]
fn the_header_of_a_log_tells_jdk_memory_and_flags() {
    let bench = Bench::new();
    let header = "OpenJDK 64-Bit Server VM (25.504-b01) for linux-amd64 JRE (1.8.0_504-b01), built on Aug 20 2026 02:12:31 by \"x\" with gcc 16.2.0\n\
        Memory: 4k page, physical 2097152k(1048576k free), swap 0k(0k free)\n\
        CommandLine flags: -XX:InitialHeapSize=33554432 -XX:MaxHeapSize=4294967296 -XX:+PrintGC -XX:+UseCompressedOops -XX:+UseParallelGC \n\
        0.100: [GC (Allocation Failure)  512K->256K(1024K), 0.0010000 secs]\n";
    let log = bench.write("gc.log", header);
    let ended = bench.run(&[
        "jvm",
        "flags",
        "--for",
        log.to_str().unwrap(),
        "--format",
        "json",
    ]);
    let document: Value = serde_json::from_str(&ended.expect(1).stdout).unwrap();
    assert_eq!(document["jdk"]["release"], 8);
    assert_eq!(document["findings"][0]["rule"], "jvm-heap-exceeds-memory");
    assert_eq!(document["options"][0]["origin"], "header of the GC log");
    // What the JVM decided by itself is not called redundant.
    let findings = document["findings"].as_array().unwrap();
    let redundant = findings
        .iter()
        .find(|finding| finding["rule"] == "jvm-flag-is-the-default");
    assert_eq!(redundant.unwrap()["outcome"], "clear");
}

#[test]
fn threads_of_a_logs_header_are_held_against_the_machine_that_it_moves_to() {
    let bench = Bench::new();
    let log = bench.write(
        "gc.log",
        "OpenJDK 64-Bit Server VM (25.504-b01) for linux-amd64 JRE (1.8.0_504-b01), built on Aug 20 2026 02:12:31 by \"x\" with gcc 16.2.0\n\
        CommandLine flags: -XX:ConcGCThreads=4 -XX:MaxHeapSize=1073741824 -XX:ParallelGCThreads=16 -XX:+UseG1GC \n\
        0.100: [GC pause (G1 Evacuation Pause) (young) 512K->256K(1024K), 0.0010000 secs]\n",
    );
    let of = |cpus: &str| {
        let log = log.to_str().unwrap();
        let asked = ["jvm", "flags", "--for", log, "--cpus", cpus];
        let ended = bench.run(&[&asked[..], &["--format", "json"]].concat());
        let document: Value = serde_json::from_str(&ended.stdout).unwrap();
        let findings = document["findings"].as_array().unwrap();
        let of_threads = findings
            .iter()
            .filter(|finding| finding["rule"] == "jvm-gc-threads-exceed-cpus");
        of_threads
            .map(|finding| (finding["outcome"].clone(), finding["subject"].clone()))
            .collect::<Vec<_>>()
    };
    let act = |flag: &str| (json!("act"), json!(format!("option/-XX:{flag}")));
    assert_eq!(of("2"), [act("ParallelGCThreads"), act("ConcGCThreads")]);
    assert_eq!(of("8"), [act("ParallelGCThreads")]);
    assert_eq!(of("16"), [(json!("clear"), json!("command-line"))]);
}

#[test]
fn argument_files_and_packed_logs_are_read() {
    let bench = Bench::new();
    bench.write("app.args", "-Xmx64g   # far too much\n-XX:+UseG1GC\n");
    let of = |options: &str| {
        let machine = ["--jdk", "17", "--memory", "8g"];
        bench.run(&[&["jvm", "flags", "--for", options], &machine[..]].concat())
    };
    of("-Xms1g @app.args -jar app.jar")
        .expect(1)
        .says(&["-Xmx64g", "-XX:+UseG1GC"]);
    of("@no.args -Xmx1g").says(&["no.args was not read"]);

    let header = "OpenJDK 64-Bit Server VM (25.504-b01) for linux-amd64 JRE (1.8.0_504-b01), built on Aug 20 2026 02:12:31 by \"x\" with gcc 16.2.0\n\
        CommandLine flags: -XX:MaxHeapSize=4294967296 -XX:+UseConcMarkSweepGC \n\
        0.100: [GC (Allocation Failure)  512K->256K(1024K), 0.0010000 secs]\n";
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut packed, header.as_bytes()).unwrap();
    std::fs::write(bench.path("gc.log.gz"), packed.finish().unwrap()).unwrap();
    let ended = bench.run(&["jvm", "flags", "--for", "gc.log.gz", "--format", "json"]);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_valid(&document, "jvm-flags");
    assert_eq!(document["jdk"]["release"], 8);
    let cms = &document["options"][1];
    assert_eq!(
        cms["lifetime"],
        "in JDK 7 to 11; deprecated since JDK 9; not in 17 to 25"
    );
    assert_eq!(cms["releases"][0]["release"], 7);
    assert_eq!(cms["releases"][3]["state"], "unknown");
}

#[test]
fn a_running_jvm_tells_its_own_jdk_and_options() {
    let Some(java) = ["/usr/lib/jvm/default-java/bin/java", "/usr/bin/java"]
        .into_iter()
        .find(|java| Path::new(java).exists())
    else {
        eprintln!("not checked: there is no JVM here");
        return;
    };
    let bench = Bench::new();
    let source = "class Wait { public static void main(String[] a) throws Exception { System.out.println(\"up\"); System.in.read(); } }";
    let source = bench.write("Wait.java", source);
    let arguments = bench.write("app.args", "-XX:MaxTenuringThreshold=7\n");
    let arguments = arguments.to_str().unwrap();
    let mut child = Command::new(java)
        .args(["-Xmx64m", "-XX:+UseSerialGC", "-XX:+UseSerialGC"])
        .arg(format!("@{arguments}"))
        .arg(&source)
        .env("JAVA_TOOL_OPTIONS", "-Xms32m -XX:SurvivorRatio=6")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let out = child.stdout.as_mut().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
    if line.trim() != "up" {
        child.kill().ok();
        child.wait().unwrap();
        eprintln!("not checked: {java} cannot run a source file");
        return;
    }
    let pid = child.id().to_string();
    let ended = bench.run(&["jvm", "flags", "--for", &pid, "--format", "json"]);
    // Without the file, the JVM still tells what it read there.
    std::fs::remove_file(arguments).unwrap();
    let later = bench.run(&["jvm", "flags", "--for", &pid, "--format", "json"]);
    drop(child.stdin.take());
    child.wait().unwrap();
    let later: Value = serde_json::from_str(&later.stdout).unwrap();
    let matching = later["options"].as_array().unwrap().iter();
    let mut matching = matching.filter(|option| option["written"] == "-XX:MaxTenuringThreshold=7");
    assert_eq!(
        matching.next().unwrap()["origin"],
        "performance data of the JVM"
    );
    let document: Value = serde_json::from_str(&ended.expect(0).stdout).unwrap();
    assert_valid(&document, "jvm-flags");
    assert!(document["jdk"]["release"].as_u64().unwrap() >= 11);
    assert!(document["jdk"]["version"].is_string());
    let options: Vec<_> = document["options"].as_array().unwrap().iter().collect();
    assert_eq!(options[0]["written"], "-Xms32m");
    assert_eq!(options[0]["origin"], "JAVA_TOOL_OPTIONS");
    assert_eq!(options[2]["written"], "-Xmx64m");
    let read = options
        .iter()
        .any(|option| option["written"] == "-XX:MaxTenuringThreshold=7");
    assert!(read, "{options:?}");
    assert!(document["surroundings"]["memory_bytes"].as_u64().unwrap() > 1 << 28);
    assert!(document["surroundings"]["cpus"].as_f64().unwrap() > 0.0);
    let findings = document["findings"].as_array().unwrap();
    let twice = findings
        .iter()
        .find(|finding| finding["rule"] == "jvm-flag-given-twice");
    assert_eq!(twice.unwrap()["outcome"], "watch");
}

#[test]
fn every_rule_that_is_reported_can_be_explained() {
    let bench = Bench::new();
    for rule in [
        "jvm-flag-removed",
        "jvm-heap-past-32g-edge",
        "gc-log-missing",
    ] {
        bench
            .run(&["explain", rule])
            .expect(0)
            .says(&["What it looks for", "How it can be wrong"]);
    }
}

/// Two JVMs in one file: what is reported of the first is of the first.
#[test]
fn of_two_jvms_in_one_log_the_first_that_names_its_options_is_judged_by_its_own_jdk() {
    let bench = Bench::new();
    let log = |name: &str| std::fs::read(crate::gc::log(name)).unwrap();
    let both = [log("own_jdk8-cms-cmf.log"), log("own_jdk17-g1-tospace.log")].concat();
    std::fs::write(bench.path("two.log"), both).unwrap();
    let ended = bench.run(&["jvm", "flags", "--for", "two.log", "--format", "json"]);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(document["jdk"]["release"], 8, "{document:#}");
    assert_eq!(document["target"], "two.log (jvm/1 of several)");
}

/// The JVMs of this machine that logs of JDK 8 are moved to.
#[expect(clippy::print_stderr, reason = "says what was not checked")]
fn newer() -> Vec<(&'static str, PathBuf)> {
    let homes = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten();
    let homes: Vec<_> = homes.filter_map(|entry| Some(entry.ok()?.path())).collect();
    let of = |release: &str| {
        let named = homes.iter().find(|home| {
            let text = std::fs::read_to_string(home.join("release")).unwrap_or_default();
            text.contains(&format!("JAVA_VERSION=\"{release}."))
        });
        named
            .map(|home| home.join("bin/java"))
            .filter(|java| java.exists())
    };
    let found = ["17", "25"].map(|release| (release, of(release)));
    for (release, _) in found.iter().filter(|(_, java)| java.is_none()) {
        eprintln!(
            "not checked: there is no JDK {release} here; moved options were not given to it"
        );
    }
    found
        .into_iter()
        .filter_map(|(release, java)| Some((release, java?)))
        .collect()
}

/// What the JVM says where it does not start.
fn complaint(java: &Path, options: &[&str], folder: &Path) -> Option<String> {
    // The logs are of machines with more memory and more CPUs than this one; the other sizes are taken as they are.
    let here = [
        "-Xms64m",
        "-Xmx512m",
        "-XX:ActiveProcessorCount=16",
        "-version",
    ];
    let output = Command::new(java)
        .args(options)
        .args(here)
        .env_remove("JAVA_TOOL_OPTIONS")
        .env_remove("_JAVA_OPTIONS")
        .env_remove("JDK_JAVA_OPTIONS")
        .current_dir(folder)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&[output.stderr, output.stdout].concat()).into_owned();
    (!output.status.success()).then_some(text)
}

#[test]
fn the_header_of_every_log_of_jdk_8_moves_to_options_that_newer_jvms_start_with() {
    let bench = Bench::new();
    let javas = newer();
    let mut names: Vec<String> = std::fs::read_dir(Path::new(&crate::gc::log("")))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let mut moved = 0;
    for name in names {
        for release in ["17", "25"] {
            let ended = bench.run(&[
                "jvm",
                "flags",
                "--for",
                &crate::gc::log(&name),
                "--to",
                release,
                "--format",
                "json",
            ]);
            let Ok(document) = serde_json::from_str::<Value>(&ended.stdout) else {
                break;
            };
            if document["jdk"]["release"].as_u64().unwrap() > 8 {
                break;
            }
            let migration = &document["migration"];
            let stops = migration["findings"].as_array().unwrap().iter();
            let stops =
                stops.filter(|found| found["outcome"] == "act" && found["severity"] == "high");
            assert_eq!(stops.collect::<Vec<_>>(), [&Value::Null; 0], "{name}");
            let options = migration["options"].as_array().unwrap().iter();
            let options: Vec<&str> = options.map(|option| option.as_str().unwrap()).collect();
            if let Some((_, java)) = javas.iter().find(|(known, _)| *known == release) {
                let complaint = complaint(java, &options, &bench.path(""));
                assert_eq!(complaint, None, "{name} to {release}: {options:?}");
            }
            moved += 1;
        }
    }
    assert!(moved >= 40, "{moved}");
}

#[test]
fn what_is_not_known_is_not_judged_and_never_passed() {
    let bench = Bench::new();
    let of = |jdk: &str, options: &str| {
        bench.run(&[
            "jvm", "flags", "--jdk", jdk, "--cpus", "2", "--memory", "8g", "--for", options,
        ])
    };
    for options in [
        "-Xfoo",
        "-xmx512m",
        "--enable-previews",
        "-Xss100k",
        "-XX:+MaxGCPauseMillis=100",
        "-XX:+UseG1GC -XX:-UseG1GC",
        "-Djava.security.manager=allow",
        "--add-modules=java.xml.bind",
        "JAVA_TOOL_OPTIONS=-Xfoo java -Xmx1g",
    ] {
        of("25", options)
            .expect(1)
            .says(&["JDK 25 refuses to start"]);
    }
    of("25", "-javaagent:agent.jar")
        .expect(0)
        .says(&["partly judged", "-javaagent:agent.jar"]);
    of("26", "-Xmx1g")
        .expect(0)
        .says(&["JDK 26 is not in the tables"]);
    of("25", "-Xmx1g")
        .expect(0)
        .says(&["JDK 25 accepts these options"]);
    // JDK 8 has no argument files.
    bench.write("app.args", "-Xint\n");
    of("8", "@app.args").expect(1).says(&["main class"]);
    of("11", "@app.args").expect(0);
}
