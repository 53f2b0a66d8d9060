//! What the tests of several labs need.

use rungwise_experiment::scenario;
use rungwise_host::process::locate;
use rungwise_testkit::skipped;

/// Whether Maven and a JDK are there to build a lab; says what is skipped otherwise.
pub(crate) fn can_build() -> bool {
    let missing = ["mvn", "javac"].into_iter().find(|it| locate(it).is_none());
    if let Some(program) = missing {
        skipped(format_args!(
            "no {program} in PATH; cargo xtask test installs one"
        ));
    }
    missing.is_none()
}

/// A lab of one Maven project is in the binary with every file that its build reads.
pub(crate) fn assert_builtin_sources_are_those_of(lab: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs");
    let sources = std::fs::read_dir(format!("{folder}/{lab}/src/main/java/demo")).unwrap();
    let mut files = vec!["pom.xml".to_owned()];
    files.extend(sources.map(|file| {
        let name = file.unwrap().file_name();
        format!("src/main/java/demo/{}", name.to_str().unwrap())
    }));
    files.sort();
    let inside = scenario::builtin_sources(lab);
    let names: Vec<&str> = inside.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, files);
}
