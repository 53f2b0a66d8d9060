//! A playbook: sysctls by their module, everything else as the files of the forms systemd and cmdline.

use std::fmt::Write as _;

use super::item::{Item, Setting};
use super::sysctl_d::key;
use super::{Export, File, HEADER, cmdline, systemd};

const PATH: &str = "rungwise.yml";

pub(super) fn write(settings: &[Setting], export: &mut Export) {
    let (sysctls, others): (Vec<_>, Vec<_>) = settings
        .iter()
        .cloned()
        .partition(|setting| matches!(setting.item, Item::Sysctl { .. }));
    let (boot, others): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|setting| matches!(setting.item, Item::Boot { .. }));
    let mut tasks = String::new();
    for setting in &sysctls {
        if let Item::Sysctl { path, value } = &setting.item {
            let _ = write!(
                tasks,
                "    - name: {}\n      ansible.posix.sysctl:\n        name: {}\n        value: {}\n        \
                 sysctl_file: /etc/sysctl.d/90-rungwise.conf\n        sysctl_set: true\n",
                quoted(&format!("{} = {}", setting.knob, setting.wish)),
                quoted(&key(path)),
                quoted(value),
            );
        }
    }
    // What those forms leave out, this one does.
    systemd::write(&others, export);
    cmdline::write(&boot, export);
    let files = std::mem::take(&mut export.files);
    for File { path, text } in &files {
        let folder = path.rsplit_once('/').map_or("/", |(folder, _)| folder);
        let _ = write!(
            tasks,
            "    - name: {}\n      ansible.builtin.file:\n        path: {}\n        state: directory\n        \
             mode: \"0755\"\n    - name: {}\n      ansible.builtin.copy:\n        dest: {}\n        \
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
    if files.iter().any(|file| file.path.ends_with(systemd::NAME)) {
        let _ = write!(
            tasks,
            "    - name: \"settings at every boot, and now\"\n      ansible.builtin.systemd_service:\n        \
             name: {}\n        enabled: true\n        state: restarted\n        daemon_reload: true\n",
            systemd::NAME
        );
    }
    if files.iter().any(|file| file.path == cmdline::PATH) {
        tasks.push_str(
            "    - name: \"kernel command line; acts after the next boot\"\n      ansible.builtin.command: update-grub\n",
        );
    }
    if !tasks.is_empty() {
        export.file(
            PATH,
            format!("# {HEADER}\n- name: \"settings kept by rungwise\"\n  hosts: all\n  become: true\n  tasks:\n{tasks}"),
        );
    }
}

/// A string as YAML reads it whatever it holds: JSON's strings are YAML's.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
