//! Manual changes: boot parameters, firmware, the hypervisor, the service's own settings.
//!
//! A knob that cannot be set on a running kernel is still planned, shown and exported, as the exact text and the place
//! where it goes. The engine never applies such a plan. Where the kernel shows whether it was done (its command line),
//! `verify` reports it after the next boot.

use rungwise_host::Host;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::knob::Knob;
use crate::mask;

const COMMAND_LINE: &str = "/proc/cmdline";

/// Where a text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Parameters of the kernel command line; they take effect at the next boot.
    CommandLine,
    /// Firmware setup (BIOS, UEFI). Names differ between vendors.
    Firmware,
    /// The machine itself: memory modules, network cards.
    Hardware,
    /// The domain of a virtual machine (`virsh edit`), on its host.
    Libvirt,
    /// A line of `/etc/modprobe.d`; takes effect when the module is reloaded.
    Module,
    /// A command, as root.
    Command,
    /// The configuration or the source of the service.
    Service,
    /// Options of the `java` command that starts the service, or another such command.
    Java,
}

impl Way {
    /// The place in words.
    pub fn place(self) -> &'static str {
        match self {
            Self::CommandLine => "kernel command line",
            Self::Firmware => "firmware setup",
            Self::Hardware => "hardware",
            Self::Libvirt => "libvirt domain on the host",
            Self::Module => "/etc/modprobe.d",
            Self::Command => "command",
            Self::Service => "service",
            Self::Java => "java command of the service",
        }
    }
}

/// What a wish changes about the `java` command of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JavaChange {
    /// Options separated by spaces, `without` and such options, or the path of another `java`.
    pub text: String,
    /// Options of the knob's other wishes, which the text replaces.
    pub others: Vec<&'static str>,
}

impl Knob {
    /// It changes the `java` command of a service, and a scenario may set it without declaring how.
    pub fn is_of_java(&self) -> bool {
        self.by_hand.iter().any(|manual| manual.way == Way::Java)
    }

    /// What this wish changes about the `java` command of a service; absent where it is none for this knob.
    pub fn java_change(&self, wish: &str) -> Option<JavaChange> {
        let of_java = || self.by_hand.iter().filter(|manual| manual.way == Way::Java);
        let text = of_java().find_map(|manual| manual.text_for(wish))?;
        let fixed = |manual: &&Manual| BLANKS.iter().all(|(blank, _)| *blank != manual.wish);
        Some(JavaChange {
            text,
            others: of_java().filter(fixed).map(|manual| manual.text).collect(),
        })
    }
}

/// A wish and the text that fulfils it.
#[derive(Clone, Copy, Debug)]
pub struct Manual {
    /// The wish: a word, or one of [`BLANKS`] for a value that the user fills in.
    pub wish: &'static str,
    /// Where the text goes.
    pub way: Way,
    /// The text. A blank in it is filled with the wish.
    pub text: &'static str,
}

/// What a blank may be filled with.
type Fits = fn(&str) -> bool;

/// What may be filled in: a CPU list, a whole number, a size in the words of a JVM (`512k`), options of a JVM to add or to remove, a `java` program, an absolute path. In a text
/// for CPUs, COUNT is the number of CPUs, and a line with EACH is repeated for each CPU, with its INDEX from 0.
const BLANKS: [(&str, Fits); 7] = [
    ("CPUS", is_cpus),
    ("NUMBER", is_number),
    ("SIZE", is_size),
    ("FLAGS", is_options),
    ("without FLAGS", |text| {
        text.strip_prefix("without ").is_some_and(is_options)
    }),
    ("JAVA", is_java),
    ("PATH", is_path),
];

impl Manual {
    /// The text for `wish`, if this is the entry for it.
    pub(crate) fn text_for(&self, wish: &str) -> Option<String> {
        let Some((blank, fits)) = BLANKS.iter().find(|(blank, _)| *blank == self.wish) else {
            return (self.wish == wish).then(|| self.text.to_owned());
        };
        if !fits(wish) {
            return None;
        }
        let cpus = mask::parse_list(wish).unwrap_or_default();
        let mut lines = Vec::new();
        for line in self.text.lines() {
            if line.contains("EACH") {
                lines.extend(cpus.iter().enumerate().map(|(index, cpu)| {
                    line.replace("INDEX", &index.to_string())
                        .replace("EACH", &cpu.to_string())
                }));
            } else {
                lines.push(
                    line.replace("COUNT", &cpus.len().to_string())
                        .replace(blank, wish),
                );
            }
        }
        Some(lines.join("\n"))
    }

    /// Whether `text` is this entry's text with the blanks filled. A plan may come from someone else's file, and its
    /// text goes to a person who will follow it.
    pub(crate) fn could_say(&self, text: &str) -> bool {
        // A blank is filled with digits, commas and dashes; the wish is one of the runs of them. A path ends at what none
        // has. Options are the whole text, or nothing of it.
        let wishes = text
            .split(|c: char| !c.is_ascii_digit() && c != ',' && c != '-')
            .map(|run| run.trim_matches([',', '-']));
        // A size may follow the letters of its option: -Xmn2g.
        let sizes = text
            .split(|c: char| !c.is_ascii_alphanumeric())
            .map(|run| run.trim_start_matches(|c: char| c.is_ascii_alphabetic()));
        let paths = text.split([' ', '=', ':', '\n']);
        [self.wish, text]
            .into_iter()
            .chain(wishes)
            .chain(sizes)
            .chain(paths)
            .any(|wish| self.text_for(wish).as_deref() == Some(text))
    }
}

/// The words of the kernel command line for the parameters that `text` names; empty if there are none. Only those words
/// are kept: a command line may contain secrets.
pub(crate) fn booted_with(host: &dyn Host, text: &str) -> std::io::Result<String> {
    let line = host.text(std::path::Path::new(COMMAND_LINE))?;
    let key = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
    let keys: Vec<String> = text.split_whitespace().map(key).collect();
    let words: Vec<&str> = line
        .split_whitespace()
        .filter(|word| keys.contains(&key(word)))
        .collect();
    Ok(words.join(" "))
}

fn is_cpus(text: &str) -> bool {
    mask::parse_list(text).is_ok() && !text.contains(char::is_whitespace)
}

fn is_number(text: &str) -> bool {
    text.len() <= 12 && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number of bytes above 0 with the suffixes that a JVM reads.
fn is_size(text: &str) -> bool {
    let digits = text
        .strip_suffix(['k', 'K', 'm', 'M', 'g', 'G', 't', 'T'])
        .unwrap_or(text);
    is_number(digits) && digits.bytes().any(|digit| digit != b'0')
}

/// Options of `java` that findings recommend: each a single shell word, and none that runs a program (`-XX:OnError=`)
/// or loads one (`-agentpath:`).
fn is_options(text: &str) -> bool {
    let is_option = |option: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-+:=._,*".contains(&byte);
        let begins = ["-XX:", "-Xlog:", "-Xmn", "-Xms", "-Xmx"];
        let known = begins.iter().any(|begin| option.starts_with(begin));
        known && !option.starts_with("-XX:On") && option.bytes().all(plain)
    };
    text.len() <= 500 && !text.is_empty() && text.split(' ').all(is_option)
}

/// An absolute path that a shell reads as a single word.
/// A path, or a name in PATH that says which program it is: `java-25`.
fn is_java(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    is_path(text) || text.starts_with("java") && text.len() <= 50 && text.bytes().all(plain)
}

fn is_path(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-%+".contains(&byte);
    text.starts_with('/') && text.len() <= 500 && text.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISOLATION: Manual = Manual {
        wish: "CPUS",
        way: Way::CommandLine,
        text: "isolcpus=domain,CPUS nohz_full=CPUS",
    };

    #[test]
    fn a_blank_is_filled_with_the_wish_and_with_nothing_else() {
        assert_eq!(
            ISOLATION.text_for("2-3,8").as_deref(),
            Some("isolcpus=domain,2-3,8 nohz_full=2-3,8")
        );
        for wish in ["", "all", "2-3 init=/bin/sh", "2; reboot", "2-3\n", "3-2"] {
            assert_eq!(ISOLATION.text_for(wish), None, "{wish}");
        }
    }

    #[test]
    fn a_wish_for_a_jvm_is_its_options_and_what_they_replace() {
        let change = |id: &str, wish: &str| crate::find(id).unwrap().java_change(wish);
        let parallel = change("jvm.gc_choice", "parallel").unwrap();
        assert_eq!(parallel.text, "-XX:+UseParallelGC");
        assert!(parallel.others.contains(&"-XX:+UseConcMarkSweepGC"));
        assert_eq!(change("jvm.xms_xmx", "4g").unwrap().text, "-Xms4g -Xmx4g");
        // Of two options of an archive, the one that uses it.
        let archive = change("jvm.appcds", "/a/app.jsa").unwrap();
        assert_eq!(archive.text, "-XX:SharedArchiveFile=/a/app.jsa");
        let jdk = change("jvm.jdk_upgrade", "/opt/jdk/bin/java").unwrap();
        assert_eq!(jdk.text, "/opt/jdk/bin/java");
        assert_eq!(
            change("jvm.jdk_upgrade", "java-25").unwrap().text,
            "java-25"
        );
        for (id, wish) in [
            ("jvm.gc_choice", "fast"),
            ("jvm.xmn", "2 g"),
            ("jvm.jdk_upgrade", "newer"),
            ("jvm.jdk_upgrade", "sh"),
            ("jvm.jdk_upgrade", "java -version"),
            ("jvm.gc_log", "/tmp/gc.log"),
            ("net.gro", "on"),
        ] {
            assert_eq!(change(id, wish), None, "{id} = {wish}");
        }
        let of_java = |knob: &&&Knob| knob.is_of_java();
        // Those of the file of JVM options, and `jvm.flags`, `jvm.active_cpus`, `jvm.large_pages`.
        assert_eq!(crate::KNOBS.iter().filter(of_java).count(), 24);
    }

    #[test]
    fn options_of_a_jvm_are_options_and_nothing_that_runs_a_program() {
        const FLAGS: Manual = Manual {
            wish: "FLAGS",
            way: Way::Service,
            text: "FLAGS",
        };
        let wish =
            "-Xmn2g -XX:MetaspaceSize=384m -XX:-G1UseAdaptiveIHOP -Xlog:gc*,safepoint:file=gc.log";
        assert_eq!(FLAGS.text_for(wish).as_deref(), Some(wish));
        assert!(FLAGS.could_say(wish));
        for wish in [
            "",
            "FLAGS",
            "-XX:OnError=reboot",
            "-agentpath:evil.so",
            "-XX:+A; reboot",
            "-XX:+A\nreboot",
            "-XX:+A  -XX:+B",
            "$(reboot)",
        ] {
            assert_eq!(FLAGS.text_for(wish), None, "{wish}");
            assert!(!FLAGS.could_say(wish), "{wish}");
        }
    }

    #[test]
    fn a_size_is_a_number_with_a_suffix_and_nothing_else() {
        const HEAP: Manual = Manual {
            wish: "SIZE",
            way: Way::Service,
            text: "-XmsSIZE -XmxSIZE",
        };
        assert_eq!(HEAP.text_for("4g").as_deref(), Some("-Xms4g -Xmx4g"));
        assert!(HEAP.could_say("-Xms4g -Xmx4g"));
        for wish in [
            "",
            "0",
            "0g",
            "g",
            "4gb",
            "4 g",
            "-4g",
            "4g -XX:OnError=reboot",
        ] {
            assert_eq!(HEAP.text_for(wish), None, "{wish}");
        }
        assert!(!HEAP.could_say("-Xms4g -Xmx5g"));
    }

    #[test]
    fn a_line_for_each_cpu_is_repeated() {
        let pins = Manual {
            wish: "CPUS",
            way: Way::Libvirt,
            text: "<vcpu cpuset='CPUS'>COUNT</vcpu>\n<vcpupin vcpu='INDEX' cpuset='EACH'/>",
        };
        let text = pins.text_for("8-9").unwrap();
        assert_eq!(
            text,
            "<vcpu cpuset='8-9'>2</vcpu>\n<vcpupin vcpu='0' cpuset='8'/>\n<vcpupin vcpu='1' cpuset='9'/>"
        );
        assert!(pins.could_say(&text));
    }

    #[test]
    fn a_text_that_is_not_ours_is_not_taken_for_ours() {
        assert!(ISOLATION.could_say("isolcpus=domain,2-3,8 nohz_full=2-3,8"));
        for text in [
            "isolcpus=domain,2-3 nohz_full=4",
            "isolcpus=domain,2-3 nohz_full=2-3 init=/bin/sh",
            "isolcpus=domain, nohz_full=",
            "init=/bin/sh",
            "",
        ] {
            assert!(!ISOLATION.could_say(text), "{text}");
        }
        let audit = Manual {
            wish: "off",
            way: Way::CommandLine,
            text: "audit=0",
        };
        assert!(audit.could_say("audit=0") && !audit.could_say("audit=1"));
    }

    #[test]
    fn the_command_line_tells_only_what_is_asked_for() {
        let host = rungwise_host::recorded::Recorded::new("this host", 1)
            .file("/proc/cmdline", "quiet audit=1 secret=hunter2 audit=0");
        assert_eq!(booted_with(&host, "audit=0").unwrap(), "audit=1 audit=0");
        assert_eq!(booted_with(&host, "nohz=on").unwrap(), "");
    }
}
