//! A playbook: the files of the forms sysctl.d, systemd and cmdline, and the commands that apply them.
//!
//! It uses only modules of ansible-core, so that no collection is needed. A tool of the distribution passes the boot
//! parameters to the boot loader; where none is known, the playbook fails at its end and prints what to do.

use std::fmt::Write as _;

use super::item::{Item, Setting};
use super::{Export, File, HEADER, cmdline, sysctl_d, systemd};

const PATH: &str = "rungwise.yml";

/// Distributions whose boot loader tool is known.
const DEBIAN: &str = "ansible_facts[\"os_family\"] == \"Debian\"";
const RED_HAT: &str = "ansible_facts[\"os_family\"] == \"RedHat\"";
const OTHERS: &str = "ansible_facts[\"os_family\"] not in [\"Debian\", \"RedHat\"]";

pub(super) fn write(settings: &[Setting], export: &mut Export) {
    let (sysctls, others): (Vec<_>, Vec<_>) = settings
        .iter()
        .cloned()
        .partition(|setting| matches!(setting.item, Item::Sysctl { .. }));
    let (boot, others): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|setting| matches!(setting.item, Item::Boot { .. }));
    // What those forms leave out, this one does.
    let mut tasks = String::new();
    sysctl_d::write(&sysctls, export);
    for file in std::mem::take(&mut export.files) {
        place(&mut tasks, &file, None);
        let command = ["sysctl", "-p", sysctl_d::PATH];
        run(&mut tasks, "apply sysctls now", &command, None);
    }
    systemd::write(&others, export);
    let units = std::mem::take(&mut export.files);
    for file in &units {
        place(&mut tasks, file, None);
    }
    if !units.is_empty() {
        tasks.push_str(
            "    - name: \"reload systemd units\"\n      ansible.builtin.systemd:\n        daemon_reload: true\n",
        );
    }
    if units.iter().any(|file| file.path.ends_with(systemd::NAME)) {
        let _ = write!(
            tasks,
            "    - name: \"apply settings now and at every boot\"\n      ansible.builtin.systemd:\n        name: {}\n        \
             enabled: true\n        state: restarted\n",
            systemd::NAME
        );
    }
    cmdline::write(&boot, export);
    for file in std::mem::take(&mut export.files) {
        let words = cmdline::parameters(&boot).join(" ");
        let name = "kernel command line; takes effect at the next boot";
        place(&mut tasks, &file, Some(DEBIAN));
        run(&mut tasks, name, &["update-grub"], Some(DEBIAN));
        let args = format!("--args={words}");
        let grubby = ["grubby", "--update-kernel=ALL", &args];
        run(&mut tasks, name, &grubby, Some(RED_HAT));
        let _ = write!(
            tasks,
            "    - name: {}\n      when: {OTHERS}\n      ansible.builtin.fail:\n        msg: {}\n",
            quoted(name),
            quoted(&format!(
                "cannot add to the kernel command line: the tool of this distribution is unknown; everything else is \
                 done. Add these words with that tool: {words}"
            )),
        );
    }
    if !tasks.is_empty() {
        export.file(
            PATH,
            format!(
                "# {HEADER}\n- name: \"settings kept by rungwise\"\n  hosts: all\n  become: true\n  gather_facts: true\n  tasks:\n{tasks}"
            ),
        );
    }
}

/// Puts a file where it belongs.
fn place(tasks: &mut String, File { path, text }: &File, when: Option<&str>) {
    let folder = path.rsplit_once('/').map_or("/", |(folder, _)| folder);
    let when = condition(when);
    let _ = write!(
        tasks,
        "    - name: {}\n{when}      ansible.builtin.file:\n        path: {}\n        state: directory\n        \
         mode: \"0755\"\n    - name: {}\n{when}      ansible.builtin.copy:\n        dest: {}\n        \
         mode: \"0644\"\n        content: |\n",
        quoted(&format!("folder of {path}")),
        quoted(folder),
        quoted(path),
        quoted(path),
    );
    for line in text.lines() {
        let _ = match line {
            "" => writeln!(tasks),
            line => writeln!(tasks, "          {line}"),
        };
    }
}

fn run(tasks: &mut String, name: &str, words: &[&str], when: Option<&str>) {
    let when = condition(when);
    let name = quoted(name);
    let _ = write!(
        tasks,
        "    - name: {name}\n{when}      ansible.builtin.command:\n        argv:\n"
    );
    for word in words {
        let _ = writeln!(tasks, "          - {}", quoted(word));
    }
}

fn condition(when: Option<&str>) -> String {
    when.map_or_else(String::new, |when| format!("      when: {when}\n"))
}

/// A string as YAML reads it whatever it holds: JSON's strings are YAML's.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
