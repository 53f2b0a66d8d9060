//! Keys: a JDK Flight Recorder file. The subject is `recording/1`. What is counted how: `docs/jfr.md`.

keys! { RECORDING;
    RECORDING_CODE = "recording.code", Fraction, Recording, "Share of the stack samples in the most frequent kind of library code other than logging: serialization, JSON, JDBC, TLS, XML, compression, regular expressions";
    RECORDING_CODE_AT = "recording.code_at", Text, Recording, "Method that enters that code most often, and its caller";
    RECORDING_CODE_KIND = "recording.code_kind", Text, Recording, "That kind of code";
    RECORDING_FILE_LONGEST = "recording.file_longest", Seconds, Recording, "Longest read or write of a file, and the longest force";
    RECORDING_FILE_PLACE = "recording.file_place", Text, Recording, "That file and operation, and where it was called";
    RECORDING_LOCK = "recording.lock", Text, Recording, "Class of the lock that threads waited for longest, and where they waited";
    RECORDING_LOCK_LONGEST = "recording.lock_longest", Seconds, Recording, "Longest single wait for that lock";
    RECORDING_LOCK_OWNER = "recording.lock_owner", Text, Recording, "Thread that held that lock before most of the waits";
    RECORDING_LOCK_WAITERS = "recording.lock_waiters", Count, Recording, "Threads that wait for that lock at a time, mean over the recording";
    RECORDING_LOGGING = "recording.logging", Fraction, Recording, "Share of the stack samples in a log framework";
    RECORDING_LOGGING_AT = "recording.logging_at", Text, Recording, "Method that logs most often, and its caller";
    RECORDING_SAMPLES = "recording.samples", Count, Recording, "Stack samples of running threads";
    RECORDING_SOCKET_LONGEST = "recording.socket_longest", Seconds, Recording, "Longest read or write of a socket";
    RECORDING_SOCKET_PLACE = "recording.socket_place", Text, Recording, "That peer and operation, and where it was called";
    RECORDING_THROWN = "recording.thrown", PerSecond, Recording, "Exceptions and errors created";
    RECORDING_THROWN_CLASS = "recording.thrown_class", Text, Recording, "The class that was created most often, and where";
}
