//! Files of a service: what is replaced in them, and what is refused.

use super::*;
use crate::scenario::files::Source;

/// A server whose settings are in a file.
const FILES: &str = r#"schema = 1
name = "mine"
title = "my server"
[service]
command = ["./server", "-c", "{scratch}/server.conf"]
[service.switches]
"my.cache" = { off = "none", on = "{scratch}/cache" }
"my.log" = { on = ["--log"] }
[service.files]
"server.conf" = """
listen {server}:80 { workers {cpus}; }
cache {my.cache};
if ($x ~ "\\d{3}") { set $y ${cpus}; }
{"json": {"a": {}}} {{cpus}} {upstream}
"""
[workload]
kind = "http"
url = "http://{server}/"
[[rungs]]
id = "my.cache"
set = { "my.cache" = "on" }
"#;

/// The same with its text elsewhere.
const TEMPLATES: &str = r#"schema = 1
name = "mine"
title = "my server"
[service]
command = ["./server", "-c", "{scratch}/server.conf"]
[service.switches]
"my.cache" = { off = "none", on = "{scratch}/cache" }
[service.templates]
"server.conf" = "server.tpl"
[workload]
kind = "http"
url = "http://{server}/"
[[rungs]]
id = "my.cache"
set = { "my.cache" = "on" }
"#;

fn service(scenario: Scenario) -> Started {
    match scenario.service {
        Service::Started(started) => started,
        Service::Running(_) => panic!("it is started"),
    }
}

fn started(text: &str) -> Started {
    service(parse(text).unwrap_or_else(|problems| panic!("{problems}")))
}

fn setting(knob: &str, value: &str) -> (Setting, String) {
    let (knob, side) = (knob.to_owned(), Side::Server);
    (Setting { knob, side }, value.to_owned())
}

/// The problems of the file with `from` replaced.
#[track_caller]
fn refused(from: &str, to: &str) -> String {
    assert!(FILES.contains(from), "{from}");
    let problems = parse(&FILES.replacen(from, to, 1)).unwrap_err();
    problems.to_string()
}

#[test]
fn only_known_names_are_replaced_in_a_file() {
    let started = started(FILES);
    let file = |set: &[(Setting, String)]| {
        let set = set.iter().cloned().collect();
        let mut files = started.files_for(&set, &places()).unwrap();
        files.remove("server.conf").unwrap()
    };
    let off = "listen 10.1.0.1:80 { workers 2; }\n\
               cache none;\n\
               if ($x ~ \"\\d{3}\") { set $y ${cpus}; }\n\
               {\"json\": {\"a\": {}}} {cpus} {upstream}\n";
    assert_eq!(file(&[]), off);
    assert_eq!(file(&[setting("my.cache", OFF)]), off);
    let on = off.replace("none", "/tmp/scratch/cache");
    let set = [setting("my.cache", "on"), setting("net.gro", "off")];
    assert_eq!(file(&set), on);
    // A text is no argument, and arguments are no text.
    let all = BTreeMap::from([setting("my.cache", "on"), setting("my.log", "on")]);
    let command = started.command_for(&all, &places()).unwrap();
    assert_eq!(
        command.join(" "),
        "./server -c /tmp/scratch/server.conf --log"
    );
}

#[test]
fn a_slip_in_a_file_is_named_at_its_place() {
    for (from, to, said) in [
        (
            "{server}:80 {",
            "{sever}:80 {",
            "test.toml:11:8: service.files.\"server.conf\": '{sever}' is no placeholder; did you mean 'server'?; \
             write '{{sever}}'",
        ),
        (
            "cache {my.cache}",
            "cache {my.chace}",
            "test.toml:12:7: service.files.\"server.conf\": '{my.chace}' is no placeholder; did you mean 'my.cache'?",
        ),
        // Of the family of a switch, and not declared.
        (
            "{upstream}",
            "{my.upstream}",
            "test.toml:14:30: service.files.\"server.conf\": '{my.upstream}' is no placeholder",
        ),
        (
            "on = \"{scratch}/cache\"",
            "on = \"{scrach}/cache\"",
            "test.toml:7:36: service.switches.\"my.cache\".on: '{scrach}' is no placeholder; did you mean 'scratch'?",
        ),
        (
            "on = \"{scratch}/cache\"",
            "on = \"{my.cache}\"",
            "test.toml:7:36: service.switches.\"my.cache\".on: '{my.cache}' is of a switch",
        ),
        (
            "cache {my.cache}",
            "cache on",
            "service.switches.\"my.cache\": no file contains '{my.cache}', so the text would have no effect",
        ),
        (
            "\"{scratch}/server.conf\"",
            "\"/etc/server.conf\"",
            "test.toml:5:11: service.command: the files are written into '{scratch}', which the command does not contain",
        ),
        (
            "{ on = [\"--log\"] }",
            "{ on = 1 }",
            "test.toml:8:19: service.switches.\"my.log\".on: expected an array or a string, found an integer",
        ),
        (
            "\"server.conf\" = \"",
            "\"../server.conf\" = \"",
            "test.toml:10:1: service.files.\"../server.conf\": '../server.conf' is not the name of a file below {scratch}",
        ),
        (
            "[workload]",
            "[service.templates]\n\"server.conf\" = \"x\"\n[workload]",
            "test.toml:17:1: service.templates.\"server.conf\": [service.files] contains this file already",
        ),
        (
            "[workload]",
            "\"server.conf/a\" = \"\"\n[workload]",
            "test.toml:16:1: service.files.\"server.conf/a\": 'server.conf' is a file, so 'server.conf/a' cannot be below it; rename",
        ),
        (
            "[workload]",
            "\"a/b\" = \"\"\n\"a//b\" = \"\"\n[workload]",
            "test.toml:16:1: service.files.\"a/b\": 'a/b' and 'a//b' name the same file",
        ),
    ] {
        let problems = refused(from, to);
        assert!(problems.contains(said), "{said}\n{problems}");
        assert_eq!(problems.lines().count(), 1, "{problems}");
    }
    for name in ["", "/etc/passwd", "a/../b", "a/", ".", "a\\u0007"] {
        let message = refused("\"server.conf\" = \"", &format!("\"{name}\" = \""));
        assert!(message.contains("is not the name of a file"), "{message}");
    }
    // Doubled braces mean it, and a file may lie in a folder.
    let fine = FILES.replace("{upstream}", "{{sever}}");
    let fine = fine.replace("\"server.conf\" =", "\"conf.d/a.conf\" =");
    let files = started(&fine)
        .files_for(&BTreeMap::new(), &places())
        .unwrap();
    assert!(files["conf.d/a.conf"].ends_with(" {cpus} {sever}\n"));
}

#[test]
fn files_need_a_service_that_is_started() {
    let message = refused(
        "command = [\"./server\", \"-c\", \"{scratch}/server.conf\"]",
        "pid = 812",
    );
    assert!(
        message.contains("test.toml:10:1: service.files: files are written before a start"),
        "{message}"
    );
    let (before, after) = FILES.split_once("[service.files]").unwrap();
    let after = after.split_once("[workload]").unwrap().1;
    let message = problem(&format!("{before}[workload]{after}"));
    assert!(
        message.contains("there is none; add [service.files]"),
        "{message}"
    );
}

#[test]
fn a_template_is_read_once_and_its_slips_are_named_where_they_are() {
    let read = |answer: fn(&str) -> Result<String, String>| {
        let mut scenario = parse(TEMPLATES).unwrap_or_else(|problems| panic!("{problems}"));
        let read = scenario.read_templates(&answer);
        read.map(|()| scenario)
            .map_err(|problems| problems.to_string())
    };
    let scenario = read(|path| Ok(format!("# {path} {{my.cache}}\n"))).unwrap();
    let templates: Vec<_> = scenario.templates().collect();
    assert_eq!(templates, [("server.tpl", "# server.tpl {my.cache}\n")]);
    let files = service(scenario).files_for(&BTreeMap::new(), &places());
    assert_eq!(files.unwrap()["server.conf"], "# server.tpl none\n");

    for (text, said) in [
        (
            "\n  {my.cahce}",
            "server.tpl:2:3: '{my.cahce}' is no placeholder; did you mean 'my.cache'?",
        ),
        (
            "nothing",
            "test.toml:7:22: service.switches.\"my.cache\": no file contains '{my.cache}'",
        ),
    ] {
        let mut scenario = parse(TEMPLATES).unwrap();
        let problems = scenario.read_templates(&|_| Ok(text.to_owned()));
        let problems = problems.unwrap_err().to_string();
        assert!(problems.starts_with(said), "{problems}");
    }
    let problems = read(|path| Err(format!("cannot read {path}: no such file"))).unwrap_err();
    assert!(
        problems.starts_with(
            "test.toml:9:17: service.templates.\"server.conf\": cannot read server.tpl"
        ),
        "{problems}"
    );
}

#[test]
fn a_missing_program_is_named_with_the_command_that_installs_it() {
    let text = FILES.replacen(
        "command = [",
        "install = \"apt-get install x\"\ncommand = [",
        1,
    );
    let error = parse(&text).unwrap().find_program(&places()).unwrap_err();
    let error = error.to_string();
    assert!(
        error.ends_with("; install it with: apt-get install x"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn a_file_without_names_that_are_nearly_known_is_kept(text in "[a-z{}$. \n]{0,80}") {
        let known = ["server", "client", "device", "cpus", "rungwise", "scratch", "my.cache"];
        let near = |name: &str| {
            let alike = |known: &&str| strsim::normalized_damerau_levenshtein(name, known) >= 0.75;
            known.iter().any(alike) || name.starts_with("my.")
        };
        let mut names = text.split('{').filter_map(|rest| Some(rest.split_once('}')?.0));
        prop_assume!(!names.any(near));
        let mut started = started(FILES);
        started.files.insert("server.conf".to_owned(), Source::Inline(text.clone()));
        let files = started.files_for(&BTreeMap::new(), &places()).unwrap();
        prop_assert_eq!(&files["server.conf"], &text);
    }
}
