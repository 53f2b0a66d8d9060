//! What protection costs at each packet and system call.

pub(crate) mod sec_audit_hot;
pub(crate) mod selinux_hot;
