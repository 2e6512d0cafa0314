internal import RondoCore
internal import RondoMutex

// RONDO_TRACE=FILE records a program without changing it: the constructor of CRondoStart calls this before
// `main`. The file is written while the program runs, so that a program that is ended by a signal loses only
// a tenth of a second.

/// Records the process into the file at `path`, until the process ends.
@_cdecl("rondo_trace_start")
func startTracing(_ path: UnsafePointer<CChar>) {
    let path = String(cString: path)
    do throws(TraceWriter.Failure) {
        let writer = try TraceWriter(path: path, isOfProcess: true)
        TraceWriter.ofProcess.withLock { $0 = writer }
        writer.start()
        // The first use of a static makes it: not in the child, where another thread may have been about to
        // make it.
        Recorder.hasForked.store(false, ordering: .relaxed)
        pthread_atfork(
            {
                if Recorder.hasForked.load(ordering: .relaxed) { return }
                TraceWriter.forkLock.wait()
                Recorder.forkLock.wait()
            },
            {
                if Recorder.hasForked.load(ordering: .relaxed) { return }
                Recorder.forkLock.signal()
                TraceWriter.forkLock.signal()
            },
            {
                if !Recorder.hasForked.load(ordering: .relaxed) {
                    Recorder.forkLock.signal()
                    TraceWriter.forkLock.signal()
                }
                Recorder.hasForked.store(true, ordering: .relaxed)
                TraceWriter.closeInChild()
            })
        atexit {
            if Recorder.hasForked.load(ordering: .relaxed) { return }
            TraceWriter.ofProcess.withLock { $0 }?.finish()
        }
    } catch {
        error.report()
    }
}
