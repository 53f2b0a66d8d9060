//! Rungs that are grids: as they are read, and what is refused.

use super::*;

const RUNG: &str = "set = { \"net.gro\" = \"off\" }";

/// The minimal file whose rung has these lines in place of its setting.
fn rung(lines: &str) -> String {
    with(RUNG, lines)
}

const BUFFERS: &str = r#"[[rungs.axes]]
title = "buffers"
points = [
    { label = "4 KB", set = { "tcp.rmem" = "4096 4096 4096" } },
    { label = "1 MB", set = { "tcp.rmem" = "4096 1048576 1048576" } },
]
"#;

const GRO: &str = r#"[[rungs.axes]]
title = "GRO"
points = [{ label = "on", set = { "net.gro" = "on" } }, { label = "off", set = { "net.gro" = "off" } }, { label = "as it is" }]
"#;

#[test]
fn two_axes_are_a_grid_of_cells_in_the_order_of_their_cost() {
    let text = rung(&format!("on = [\"server\", \"client\"]\n{BUFFERS}{GRO}"));
    let scenario = parse(&text).unwrap_or_else(|problems| panic!("{problems}"));
    scenario.validate(&machine()).unwrap();
    let step = &scenario.rungs[0];
    assert!(step.set.is_empty() && step.part == Part::Step);
    let grid = step.grid.as_ref().unwrap();
    assert_eq!(
        grid.cells(),
        [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    );
    assert_eq!(grid.cell_name(&[1, 1]), "buffers 1 MB, GRO off");
    assert_eq!(
        grid.neighbours(&[1, 1]),
        [(0, vec![0, 1]), (1, vec![1, 0]), (1, vec![1, 2])]
    );
    // At both ends of the topology.
    let set: Vec<_> = grid.points(&[0, 2]).flat_map(|point| &point.set).collect();
    assert_eq!(set.len(), 2);
    assert_eq!(set[0].1, "4096 4096 4096");
    // The best cell, four neighbours, and the whole at the end.
    assert_eq!(scenario.judging.comparisons, 6);
    let stored = serde_json::to_string(&scenario.design(String::new(), None)).unwrap();
    let read: Design = serde_json::from_str(&stored).unwrap();
    assert!(read == scenario.design(String::new(), None));
}

#[test]
fn points_that_change_the_workload_make_a_branch() {
    let text = rung(
        "[[rungs.axes]]\ntitle = \"depth\"\n\
         points = [{ label = \"1\", workload = { depth = 1 } }, { label = \"8\", workload = { depth = 8 } }]\n",
    );
    let scenario = parse(&text).unwrap();
    let step = &scenario.rungs[0];
    assert_eq!(step.part, Part::Branch);
    assert!(step.grid.as_ref().unwrap().changes_workload());
    let message = problem(&text.replace("depth = 8", "deepth = 8"));
    assert!(
        message.contains(
            "rungs[0].axes[0].points[1].workload.deepth: unknown key; did you mean 'depth'?"
        ),
        "{message}"
    );
    let message = problem(&text.replace("depth = 8", "depth = 0"));
    assert!(
        message.contains("rungs[0].axes[0].points[1].workload"),
        "{message}"
    );
}

#[test]
fn what_is_no_grid_is_refused_at_its_place() {
    let many = |count: usize| -> String {
        let points: Vec<String> = (0..count)
            .map(|n| format!("{{ label = \"{n}\", set = {{ \"net.gro\" = \"{n}\" }} }}"))
            .collect();
        format!(
            "[[rungs.axes]]\ntitle = \"many\"\npoints = [{}]\n",
            points.join(", ")
        )
    };
    let other = GRO.replace("net.gro", "net.gso");
    let cases = [
        (
            format!("{RUNG}\n{BUFFERS}"),
            "8:9: rungs[0].set: a grid has its settings in its points",
        ),
        (
            format!("limit = true\n{BUFFERS}"),
            "8:9: rungs[0].limit: the best cell of a grid is judged",
        ),
        (
            format!("workload_after = {{ depth = 2 }}\nbranch = true\n{BUFFERS}"),
            "rungs[0].workload_after: the points of a grid change the workload",
        ),
        (
            format!("{BUFFERS}{GRO}{other}"),
            "rungs[0].axes[2]: a grid has one or two axes",
        ),
        (
            format!("{BUFFERS}{}", BUFFERS.replace("\"buffers\"", "\"more\"")),
            "17:31: rungs[0].axes[1].points[0].set: the axis 'buffers' sets 'tcp.rmem' too",
        ),
        (
            BUFFERS.replace("1 MB", "4 KB"),
            "12:15: rungs[0].axes[0].points[1].label: '4 KB' is the label of an earlier point",
        ),
        (
            BUFFERS.replace("1 MB", " "),
            "rungs[0].axes[0].points[1].label: a point needs a label",
        ),
        (
            BUFFERS.replace("1048576 1048576", "4096 4096"),
            "12:5: rungs[0].axes[0].points[1]: changes the same as the point '4 KB'",
        ),
        (
            many(1),
            "10:10: rungs[0].axes[0].points: an axis needs two points or more",
        ),
        (
            format!("{BUFFERS}{}", many(33)),
            "rungs[0].axes: the grid has 66 cells, and 64 are the most",
        ),
        (
            BUFFERS.replace("label = \"1 MB\"", "lable = \"1 MB\""),
            "unknown key; did you mean 'label'?",
        ),
        ("axes = []".to_owned(), "rungs[0]: the rung changes nothing"),
        (
            format!("observe = \"not here\"\n{BUFFERS}"),
            "an observed rung is never run, so 'axes' has no effect",
        ),
    ];
    for (lines, words) in cases {
        let problems = parse(&rung(&lines)).unwrap_err().to_string();
        assert!(problems.contains(words), "{words}\n{problems}");
    }
    assert!(parse(&rung(&format!("{BUFFERS}{}", many(32)))).is_ok());
}

#[test]
fn a_grid_is_in_no_bundle() {
    let second = "\n[[rungs]]\nid = \"second\"\nbundle_with = [\"net.gro\"]\n";
    let alone = format!("{BUFFERS}{second}set = {{ \"net.gro\" = \"off\" }}\n");
    let message = problem(&rung(&alone));
    assert!(
        message.contains("rungs[1].bundle_with: 'net.gro' is a grid, which is not tried again"),
        "{message}"
    );
    let message = problem(&with(RUNG, &format!("{RUNG}\n{second}{BUFFERS}")));
    assert!(
        message.contains("rungs[1].bundle_with: a grid is tried on its own"),
        "{message}"
    );
}

#[test]
fn every_check_of_a_setting_holds_for_points_too() {
    let text = rung(&BUFFERS.replace("tcp.rmem", "tcp.rmen"));
    let problems = parse(&text).unwrap().validate(&machine()).unwrap_err();
    assert_eq!(problems.list.len(), 2, "{problems}");
    let message = problems.to_string();
    for words in [
        "test.toml:11:31: rungs[0].axes[0].points[0].set.\"tcp.rmen\": there is no knob 'tcp.rmen'",
        "did you mean 'tcp.rmem'?",
    ] {
        assert!(message.contains(words), "{message}");
    }
    // A switch restarts the service, and has the values that it declares.
    let switch = with(
        "command = [\"./server\"]",
        "command = [\"./server\"], switches = { \"my.threads\" = { 2 = [\"-t\", \"2\"] } }",
    );
    let axis = "[[rungs.axes]]\ntitle = \"threads\"\n\
                points = [{ label = \"1\", set = { \"my.threads\" = \"off\" } }, { label = \"2\", set = { \"my.threads\" = \"2\" } }]\n";
    let text = switch.replacen(RUNG, axis, 1);
    let scenario = parse(&text).unwrap_or_else(|problems| panic!("{problems}"));
    assert!(scenario.design(String::new(), None).restarts);
    let message = problem(&text.replace("= \"2\" } }]", "= \"3\" } }]"));
    assert!(
        message.contains("points[1].set.\"my.threads\": '3' is not 2 or off"),
        "{message}"
    );
    // And it needs a service that rungwise starts.
    let running = rung(&BUFFERS.replace("tcp.rmem", "sock.reuseport"))
        .replace("command = [\"./server\"]", "pid = 812")
        .replace("{server}", "127.0.0.1");
    let message = parse(&running).unwrap_err().to_string();
    assert!(
        message.contains("a running service cannot be restarted"),
        "{message}"
    );
}
