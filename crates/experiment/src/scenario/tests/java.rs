//! Options of a JVM that a scenario sets without declaring them.

use rungwise_host::files;

use super::*;

/// A folder with the `java` of a JDK of this version, which is never started.
fn jdk(version: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    files::create_folder(&bin).unwrap();
    let java = bin.join("java");
    files::write(&java, b"").unwrap();
    let release = format!("IMPLEMENTOR=\"Nobody\"\nJAVA_VERSION=\"{version}\"\n");
    files::write(&folder.path().join("release"), release.as_bytes()).unwrap();
    let java = java.to_str().unwrap().to_owned();
    (folder, java)
}

fn scenario(command: &str, set: &str) -> Scenario {
    let text = with("command = [\"./server\"]", &format!("command = {command}"));
    let text = text.replace("\"net.gro\" = \"off\"", set);
    let scenario = parse(&text).unwrap_or_else(|problems| panic!("{problems}"));
    scenario
        .validate(&machine())
        .unwrap_or_else(|problems| panic!("{problems}"));
    scenario
}

/// The command of the only rung, and what it changes.
fn command(scenario: &Scenario) -> JavaCommand {
    let Service::Started(started) = &scenario.service else {
        panic!("it is started");
    };
    let settings = scenario.rungs[0].set.iter().cloned().collect();
    started.java_command(&settings, &places()).unwrap()
}

#[test]
fn options_go_behind_java_and_take_the_place_of_what_sets_the_same() {
    let base =
        r#"["taskset", "-c", "0", "java", "-XX:+UseG1GC", "-Xmx1g", "-jar", "{server}.jar"]"#;
    let scenario = scenario(
        base,
        "\"jvm.gc_choice\" = \"parallel\", \"jvm.xms_xmx\" = \"2g\"",
    );
    assert!(scenario.design(String::new(), None).restarts);
    let command = command(&scenario);
    assert_eq!(
        command.words.join(" "),
        "taskset -c 0 java -Xms2g -Xmx2g -XX:+UseParallelGC -jar 10.1.0.1.jar"
    );
    assert_eq!(
        command.changes().unwrap(),
        "java options -XX:+UseParallelGC -Xms2g -Xmx2g in place of -XX:+UseG1GC -Xmx1g"
    );
}

#[test]
fn options_can_be_taken_out_and_another_jdk_put_in() {
    let base = r#"["/opt/jdk/bin/java", "-Xmn1g", "-jar", "a.jar"]"#;
    let set = "\"jvm.flags\" = \"without -Xmn1g\", \"jvm.jdk_upgrade\" = \"/opt/new/bin/java\"";
    let command = command(&scenario(base, set));
    assert_eq!(command.words, ["/opt/new/bin/java", "-jar", "a.jar"]);
    assert_eq!(
        command.changes().unwrap(),
        "java options without -Xmn1g, started by /opt/new/bin/java"
    );
}

#[test]
fn a_declared_switch_is_the_authors_own() {
    let base =
        r#"["java", "-jar", "a.jar"], switches = { "jvm.gc_choice" = { fast = ["--fast"] } }"#;
    let command = command(&scenario(base, "\"jvm.gc_choice\" = \"fast\""));
    assert_eq!(command.words.join(" "), "java -jar a.jar --fast");
    assert!(!command.is_changed());
}

#[test]
fn what_the_jdk_refuses_is_found_before_anything_starts() {
    let (_kept, java) = jdk("17.0.15");
    let base = format!("[\"{java}\", \"-jar\", \"a.jar\"]");
    for (set, words) in [
        ("\"jvm.gc_choice\" = \"cms\"", "JDK 17 "),
        (
            "\"jvm.scavenge_before_remark\" = \"on\"",
            "CMSScavengeBeforeRemark",
        ),
        ("\"jvm.g1uncommit\" = \"on\"", "G1Uncommit"),
        ("\"jvm.xss\" = \"1k\"", "JDK 17 "),
    ] {
        let error = scenario(&base, set).judge_java(&places()).unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("test.toml:8:") && error.contains(words),
            "{error}"
        );
    }
    // Of two values the second is wrong in another JDK only.
    let (_kept, old) = jdk("1.8.0_504");
    let base = format!("[\"{old}\", \"-jar\", \"a.jar\"]");
    let cms = scenario(&base, "\"jvm.gc_choice\" = \"cms\"");
    assert_eq!(cms.judge_java(&places()), Ok(Vec::new()));
}

#[test]
fn points_of_a_grid_are_judged_like_rungs() {
    let (_kept, java) = jdk("17.0.15");
    let command = format!("command = [\"{java}\", \"-jar\", \"a.jar\"]");
    let points = ["g1", "cms"].map(|value| {
        format!("{{ label = \"{value}\", set = {{ \"jvm.gc_choice\" = \"{value}\" }} }}")
    });
    let axes = format!(
        "axes = [{{ title = \"collector\", points = [{}] }}]",
        points.join(", ")
    );
    let text = with("command = [\"./server\"]", &command);
    let text = text.replace("set = { \"net.gro\" = \"off\" }", &axes);
    let scenario = parse(&text).unwrap_or_else(|problems| panic!("{problems}"));
    assert!(scenario.design(String::new(), None).restarts);
    let error = scenario.judge_java(&places()).unwrap_err().to_string();
    let place = "rungs[0].axes[0].points[1].set.\"jvm.gc_choice\": ";
    assert!(
        error.contains(place) && error.contains("JDK 17 ") && !error.contains("points[0]"),
        "{error}"
    );
}

#[test]
fn what_has_no_effect_is_said() {
    let (_kept, java) = jdk("17.0.15");
    let notes = |options: &str, set: &str| {
        let base = format!("[\"{java}\", {options}\"-jar\", \"a.jar\"]");
        scenario(&base, set).judge_java(&places()).unwrap()
    };
    assert_eq!(notes("", "\"jvm.xms_xmx\" = \"2g\""), [""; 0]);
    let same = notes("", "\"jvm.flags\" = \"-XX:+UseTLAB\"");
    assert!(same.len() == 1 && same[0].contains("UseTLAB"), "{same:?}");
    let other = notes(
        "\"-XX:+UseSerialGC\", ",
        "\"jvm.flags\" = \"-XX:G1ReservePercent=20\"",
    );
    assert!(
        other.iter().any(|note| note.contains("G1ReservePercent")),
        "{other:?}"
    );
    let base = "[\"/no/such/java\", \"-jar\", \"a.jar\"]";
    let unknown = scenario(base, "\"jvm.numa\" = \"on\"").judge_java(&places());
    assert!(unknown.unwrap()[0].contains("not judged"));
}

#[test]
fn what_cannot_be_set_is_refused_at_its_place() {
    let java = "command = [\"java\", \"-jar\", \"a.jar\"]";
    let text = |service: &str, set: &str| {
        with("command = [\"./server\"]", service).replace("\"net.gro\" = \"off\"", set)
    };
    let scenario = parse(&text(java, "\"jvm.gc_choice\" = \"fast\"")).unwrap();
    let error = scenario.validate(&machine()).unwrap_err().to_string();
    assert!(
        error.starts_with("test.toml:8:") && error.contains("serial, parallel, g1"),
        "{error}"
    );
    let none = parse(&text("command = [\"./server\"]", "\"jvm.xss\" = \"1m\"")).unwrap();
    none.validate(&machine()).unwrap();
    let error = none.judge_java(&places()).unwrap_err().to_string();
    assert!(
        error.starts_with("test.toml:8:") && error.contains("no word 'java'"),
        "{error}"
    );
    let running =
        problem(&text("pid = 812", "\"jvm.xss\" = \"1m\"").replace("{server}", "127.0.0.1"));
    assert!(running.contains("cannot be restarted"), "{running}");
}

#[test]
fn requests_are_counted_only_where_rungwise_sends_and_counts_them() {
    let asked = |metric: &str, keys: &str| {
        let objective = format!("objective = {{ minimise = \"{metric}\" }}\n");
        let experiment = format!("experiment = {{ {keys} }}\n[[rungs]]");
        parse(&with("[[rungs]]", &(objective + &experiment)))
    };
    let both = "warmup_requests = 5000, counted_requests = 2000";
    let scenario = asked("bytes_per_request", both).unwrap();
    assert_eq!(scenario.warmup, Duration::ZERO);
    assert_eq!(scenario.warmup_requests, 5000);
    assert_eq!(scenario.counted_requests, Some(2000));
    for (metric, keys, words) in [
        (
            "p99",
            "warmup = \"1s\", warmup_requests = 5000",
            "set either",
        ),
        ("p99", "warmup_requests = 0", "1 to 1000000000"),
        ("p99", both, "nothing is counted"),
        ("bytes_per_request", "counted_requests = 99", "must be 100"),
    ] {
        let error = asked(metric, keys).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn collections_are_read_where_the_file_names_a_metric_of_them() {
    let asked = |objective: &str| {
        let text = with("[[rungs]]", &format!("objective = {objective}\n[[rungs]]"));
        parse(&text)
    };
    for guard in [
        "gc_longest_pause <= 200ms",
        "gc_pause_share <= 5%",
        "gc_promoted_per_s <= 50MB",
    ] {
        let objective = format!("{{ minimise = \"p99\", guards = [\"{guard}\"] }}");
        let scenario = asked(&objective).unwrap();
        assert!(scenario.jvm_readings.collections, "{guard}");
        // An objective is refused with a guard that can be written instead.
        let (metric, _) = guard.split_once(' ').unwrap();
        let refused = asked(&format!("{{ minimise = \"{metric}\" }}"));
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(guard), "{refused}");
    }
    let control = with(
        "[[rungs]]",
        "[experiment.controls]\ngc_longest_pause = \"1us..50ms\"\n[[rungs]]",
    );
    assert!(parse(&control).unwrap().jvm_readings.collections);
    assert!(
        !asked("{ minimise = \"p99\" }")
            .unwrap()
            .jvm_readings
            .collections
    );
}

#[test]
fn allocation_is_measured_where_the_file_names_it() {
    let asked = |objective: &str| {
        let text = with("[[rungs]]", &format!("objective = {objective}\n[[rungs]]"));
        parse(&text).map(|scenario| scenario.jvm_readings.allocation)
    };
    for objective in [
        "{ minimise = \"bytes_per_request\" }",
        "{ guards = [\"bytes_per_request <= 30KiB\"] }",
        "{ readings = [\"bytes_per_request\"] }",
    ] {
        assert_eq!(asked(objective), Ok(true), "{objective}");
    }
    assert_eq!(asked("{ minimise = \"p99\" }"), Ok(false));
    for (objective, words) in [
        ("{ maximise = \"bytes_per_request\" }", "use minimise"),
        ("{ guards = [\"bytes_per_request <= 30\"] }", "unit"),
        ("{ readings = [\"p99\"] }", "always recorded"),
        ("{ readings = [\"bytes_per_reqest\"] }", "did you mean"),
    ] {
        let error = asked(objective).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}
