//! An invented or recorded machine in memory.
