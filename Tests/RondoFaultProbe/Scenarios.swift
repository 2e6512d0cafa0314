import Rondo
import RondoMutex

let scenarios: [String: @Sendable ([String]) -> Void] = [
    "watches": withoutRoomInEpollSets,
    "threads": withoutThreads,
    "descriptors": withoutDescriptors,
    "kept": withoutDescriptorsButForKeptConnections,
    "all": withEverythingFailing,
    "memory": withoutMemory,
    "exec": startingAnotherProgram,
    "children": { _ in childrenWhileCallsFail(refuses: true) },
    "children-in-sets": { _ in childrenWhileCallsFail(refuses: false) },
    "libraries": withoutLibraries,
]

/// `epoll_ctl` fails with ENOSPC.
private func withoutRoomInEpollSets(_ arguments: [String]) {
    let address = arguments[0]
    guard let url = URL(string: address), let host = url.host, let port = url.port else {
        fatalError("no URL: \(address)")
    }
    let began = Date()
    let spent = processorSeconds
    Faults.arm()
    var ends: [Int32] = [-1, -1]
    expect(pipe(&ends) == 0, "there is a pipe")
    let cancelled = Count()
    let source = RunLoop.Source(
        fileDescriptor: ends[0], interest: .read, cancel: { _, _ in cancelled.rise() },
        perform: { _, _ in })
    RunLoop.current.add(source, forMode: .default)
    // Owners that close what they have.
    let socket: CFSocket = CFSocketCreate(
        nil, PF_INET, SOCK_DGRAM, IPPROTO_UDP, CFSocketCallBackType.readCallBack.rawValue,
        { _, _, _, _, _ in }, nil)
    let copy = fcntl(ends[0], F_DUPFD_CLOEXEC, 0)
    let descriptor: CFFileDescriptor = CFFileDescriptorCreate(nil, copy, true, { _, _, _ in }, nil)
    let owned = [CFSocketGetNative(socket), copy]
    let files = owned.map(fileNumber)
    expect(!files.contains(nil), "both are open: \(owned)")
    CFRunLoopAddSource(
        CFRunLoopGetCurrent(), CFSocketCreateRunLoopSource(nil, socket, 0), .defaultMode)
    CFRunLoopAddSource(
        CFRunLoopGetCurrent(), CFFileDescriptorCreateRunLoopSource(nil, descriptor, 0), .defaultMode)
    CFFileDescriptorEnableCallBacks(descriptor, kCFFileDescriptorReadCallBack)
    let fired = Count()
    let timer = Timer.scheduledTimer(withTimeInterval: 0.1, repeats: true) { _ in fired.rise() }
    let load = Load.start(address)
    var input: InputStream?
    var output: OutputStream?
    Stream.getStreamsToHost(withName: host, port: port, inputStream: &input, outputStream: &output)
    let talk = Talk()
    input?.delegate = talk
    input?.schedule(in: .current, forMode: .default)
    input?.open()
    run(upTo: 20) {
        !source.isValid && load.hasEnded && talk.hasEnded && fired.value >= 5 && !CFSocketIsValid(socket)
            && !CFFileDescriptorIsValid(descriptor)
    }

    expect(!source.isValid && cancelled.value == 1, "the source's owner was told once: \(cancelled.value)")
    let error = source.error as NSError?
    expect(
        error?.domain == NSPOSIXErrorDomain && error?.code == Int(ENOSPC),
        "the source has the kernel's code: \(String(describing: error))")
    expect(!CFSocketIsValid(socket), "a CFSocket is invalid")
    expect(!CFFileDescriptorIsValid(descriptor), "a CFFileDescriptor is invalid")
    // Their numbers may be those of other files by now.
    for (number, file) in zip(owned, files) {
        expect(fileNumber(number) != file, "its descriptor is closed: \(number)")
    }
    expect(load.ends == 1 && load.code == ENOSPC, "the load has it: \(String(describing: load.error))")
    expect(talk.ends == 1, "the stream has ended once: \(talk.ends)")
    expect(
        talk.error?.domain == NSPOSIXErrorDomain && talk.error?.code == Int(ENOSPC),
        "the stream has it: \(String(describing: talk.error))")
    expect(fired.value >= 5, "timers fire: \(fired.value)")

    let other = RunLoopThread(name: "other")
    other.start()
    let answered = Count()
    other.perform { answered.rise() }
    expect(run(upTo: 10) { answered.value == 1 }, "another thread can be asked")
    other.stop()
    other.join()
    let seconds = -began.timeIntervalSinceNow
    expect(processorSeconds - spent < 0.3 + seconds / 2, "nothing spins")

    Faults.disarm()
    let later = Load.start(address)
    run(upTo: 20) { later.hasEnded }
    expect(later.ends == 1 && later.error == nil, "a later load works: \(String(describing: later.error))")
    timer.invalidate()
}

/// The number of the file that a descriptor stands for; nil if it is closed.
private func fileNumber(_ descriptor: Int32) -> ino_t? {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? status.st_ino : nil
}

/// `pthread_create` fails with EAGAIN, for every library of the process.
private func withoutThreads(_ arguments: [String]) {
    let address = arguments[0]
    Faults.arm()
    let fired = Count()
    let timer = Timer.scheduledTimer(withTimeInterval: 0.05, repeats: true) { _ in fired.rise() }
    // A name that no file and no rule of the resolver contains.
    let load = Load.start("http://rondo.invalid/")
    run(upTo: 20) { load.hasEnded && fired.value >= 3 }
    expect(load.ends == 1 && load.code == EAGAIN, "a look-up has the code: \(String(describing: load.error))")
    expect(fired.value >= 3, "timers fire: \(fired.value)")

    // Threads usually write the cookies and responses that are kept.
    let kept = Load.start(address + "kept", policy: .useProtocolCachePolicy)
    run(upTo: 20) { kept.hasEnded }
    expect(kept.ends == 1 && kept.error == nil, "a response is stored: \(String(describing: kept.error))")

    let thread = RunLoopThread(name: "none")
    thread.start()
    expect((thread.startError as NSError?)?.code == Int(EAGAIN), "the thread says why it was not started")
    thread.stop()
    thread.join()
    let patient = RunLoopThread(name: "patient")
    do {
        _ = try patient.startIfPossible()
        expect(false, "a thread was started")
    } catch {
        expect((error as NSError).code == Int(EAGAIN), "the throwing start says why: \(error)")
    }

    let queued = Load()
    let connection = URLConnection(
        request: Load.request(address), delegate: queued, startImmediately: false)
    connection?.setDelegateQueue(.main)
    connection?.start()
    let handled = Mutex<NSError?>(nil)
    URLConnection.sendAsynchronousRequest(Load.request(address), queue: .main) { _, _, error in
        let error = error as NSError?
        handled.withLock { $0 = error }
    }
    run(upTo: 20) { queued.hasEnded && handled.withLock { $0 != nil } }
    expect(queued.ends == 1 && queued.code == EAGAIN, "a queued load: \(String(describing: queued.error))")
    let cause = handled.withLock { $0?.userInfo[NSUnderlyingErrorKey] as? NSError }
    expect(cause?.code == Int(EAGAIN), "an asynchronous request: \(String(describing: cause))")

    // Dispatch has no thread for its own queues, and lets callers wait.
    let stuck = Load()
    let stuckConnection = URLConnection(
        request: Load.request(address), delegate: stuck, startImmediately: false)
    stuckConnection?.setDelegateQueue(OperationQueue())
    stuckConnection?.start()
    let talk = Talk()
    var input: InputStream?
    var output: OutputStream?
    if let url = URL(string: address), let host = url.host, let port = url.port {
        Stream.getStreamsToHost(withName: host, port: port, inputStream: &input, outputStream: &output)
    }
    output?.delegate = talk
    output?.dispatchQueue = DispatchQueue(label: "stuck")
    output?.open()
    let before = fired.value
    expect(run(upTo: 20) { fired.value >= before + 10 }, "timers fire while queues have no thread")

    Faults.disarm()
    expect(run(upTo: 20) { stuck.hasEnded }, "a load with a queue goes on when there are threads")
    expect(run(upTo: 20) { talk.events > 0 }, "a stream with a queue is told when there are threads")
    expect(output?.streamError.map { ($0 as NSError).code } == Int(EAGAIN), "the stream has the code")
    let loop = try? patient.startIfPossible()
    expect(loop != nil, "the patient thread starts later")
    patient.stop()
    patient.join()
    let later = Load.start(address)
    let laterQueued = Load()
    let second = URLConnection(
        request: Load.request(address), delegate: laterQueued, startImmediately: false)
    second?.setDelegateQueue(.main)
    second?.start()
    run(upTo: 20) { later.hasEnded && laterQueued.hasEnded }
    expect(later.ends == 1 && later.error == nil, "a later load: \(String(describing: later.error))")
    expect(
        laterQueued.ends == 1 && laterQueued.error == nil,
        "a later queued load: \(String(describing: laterQueued.error))")
    timer.invalidate()
}

/// - Returns: The descriptors that were left below a low limit.
private func takeAllDescriptors() -> [Int32] {
    var limit = rlimit(rlim_cur: 64, rlim_max: 64)
    expect(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, "there are few descriptors")
    var taken: [Int32] = []
    while case let descriptor = dup(0), descriptor != -1 { taken.append(descriptor) }
    return taken
}

/// No descriptor is left but those of idle connections to another server.
private func withoutDescriptorsButForKeptConnections(_ arguments: [String]) {
    let address = arguments[0]
    let first = (1...6).map { _ in Load.start(address) }
    run(upTo: 20) { first.allSatisfy { $0.hasEnded } }
    expect(first.allSatisfy { $0.ends == 1 && $0.error == nil }, "loads work while there are descriptors")
    let taken = takeAllDescriptors()
    expect(!taken.isEmpty, "all descriptors are taken")
    let other = Load.start(address.replacing("127.0.0.1", with: "localhost"))
    run(upTo: 20) { other.hasEnded }
    expect(
        other.ends == 1 && other.error == nil, "idle connections go first: \(String(describing: other.error))"
    )
}

/// No descriptor is left when the first object is scheduled.
private func withoutDescriptors(_ arguments: [String]) {
    let address = arguments[0]
    var ends: [Int32] = [-1, -1]
    expect(pipe(&ends) == 0, "there is a pipe")
    let taken = takeAllDescriptors()

    RunLoop.unservedWarningDelay = 0.1
    let fired = Count()
    let timer = Timer.scheduledTimer(withTimeInterval: 0.05, repeats: true) { _ in fired.rise() }
    // Time for the warning about the loop that is not run.
    usleep(400_000)

    let began = Date()
    let spent = processorSeconds
    let read = Count()
    let end = ends[0]
    let source = RunLoop.Source(fileDescriptor: ends[0], interest: .read) { _, _ in
        var byte: UInt8 = 0
        if Glibc.read(end, &byte, 1) == 1 { read.rise() }
    }
    RunLoop.current.add(source, forMode: .default)
    expect(write(ends[1], "a", 1) == 1, "the pipe takes a byte")
    let load = Load.start(address)
    run(upTo: 20) { load.hasEnded && read.value == 1 && fired.value >= 10 }
    expect(fired.value >= 10, "timers fire: \(fired.value)")
    expect(read.value == 1, "sources are served")
    expect(load.ends == 1 && load.code == EMFILE, "a load has the code: \(String(describing: load.error))")

    let thread = RunLoopThread(name: "bare")
    thread.start()
    let answered = Count()
    for _ in 1...10 { thread.perform { answered.rise() } }
    expect(run(upTo: 20) { answered.value == 10 }, "another thread's loop can be asked")
    run(upTo: 0.5) { false }
    let seconds = -began.timeIntervalSinceNow
    expect(processorSeconds - spent < 0.3 + seconds / 2, "nothing spins")
    do {
        _ = try RunLoop.current.embed(mode: .default)
        expect(false, "there is nothing to be embedded by")
    } catch {
        expect((error as NSError).code == Int(EMFILE), "embedding says why: \(error)")
    }

    for descriptor in taken { close(descriptor) }
    let later = Load.start(address)
    run(upTo: 20) { later.hasEnded }
    expect(later.ends == 1 && later.error == nil, "a later load works: \(String(describing: later.error))")
    let embedding = try? RunLoop.current.embed(mode: .default)
    expect(embedding != nil, "the loop is whole again")
    embedding?.invalidate()
    thread.stop()
    thread.join()
    source.invalidate()
    timer.invalidate()
}

/// `malloc` fails at random in C libraries: SQLite and those of content codings.
private func withoutMemory(_ arguments: [String]) {
    let address = arguments[0]
    Faults.arm()
    var failures = 0
    for round in 1...30 {
        let loads =
            (1...4).map { Load.start("\(address)kept?\(round).\($0)", policy: .useProtocolCachePolicy) }
            + (1...2).map { _ in Load.start(address + "coded") }
        expect(run(upTo: 20) { loads.allSatisfy { $0.hasEnded } }, "all loads end")
        for load in loads {
            expect(load.ends == 1, "each has ended once")
            if let error = load.error {
                failures += 1
                expect(load.code == ENOMEM, "what is no memory is said: \(error)")
            }
        }
    }
    expect(failures > 0, "something failed")
    Faults.disarm()
    let later = Load.start(address + "coded")
    run(upTo: 20) { later.hasEnded }
    expect(later.ends == 1 && later.error == nil, "a later load works: \(String(describing: later.error))")
}

/// Every call fails at random: each object ends with an error or works; nothing traps, hangs or spins; and
/// once calls succeed again, everything works.
private func withEverythingFailing(_ arguments: [String]) {
    let address = arguments[0]
    guard let url = URL(string: address), let host = url.host, let port = url.port else {
        fatalError("no URL: \(address)")
    }
    let began = Date()
    let spent = processorSeconds
    let folder = NSTemporaryDirectory() + "rondo-faults-\(getpid())"
    try? FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    Faults.arm()
    for round in 1...4 {
        let loads = (1...8).map { number in
            Load.start(address + (number % 2 == 0 ? "large" : ""), seconds: 2)
        }
        let queued = Load()
        let connection = URLConnection(
            request: Load.request(address, seconds: 2), delegate: queued, startImmediately: false)
        connection?.setDelegateQueue(.main)
        connection?.start()
        // A listener of this program, and streams that send it bytes and wait for the answer.
        let echo = Echo()
        var talks: [(talk: Talk, input: InputStream, output: OutputStream)] = []
        for number in 0..<6 {
            var input: InputStream?
            var output: OutputStream?
            let place = number % 2 == 0 ? echo.port ?? port : port
            Stream.getStreamsToHost(withName: host, port: place, inputStream: &input, outputStream: &output)
            guard let input, let output else { continue }
            let talk = Talk()
            input.delegate = talk
            input.schedule(in: .current, forMode: .default)
            output.schedule(in: .current, forMode: .default)
            input.open()
            output.open()
            talks.append((talk, input, output))
        }
        let fired = Count()
        let timer = Timer.scheduledTimer(withTimeInterval: 0.02, repeats: true) { _ in fired.rise() }
        let answered = Count()
        let thread = RunLoopThread(name: "round \(round)")
        let hasThread = (try? thread.startIfPossible()) != nil
        if hasThread { thread.perform { answered.rise() } }

        // Streams have no time limit of their own: they get the time that the loads need.
        let end = Date(timeIntervalSinceNow: 3)
        var asked = 0
        run(upTo: 30) {
            asked += 1
            for entry in talks where entry.output.hasSpaceAvailable && asked % 20 == 1 {
                _ = entry.output.write("GET / HTTP/1.0\r\n\r\n", maxLength: 18)
            }
            return loads.allSatisfy(\.hasEnded) && queued.hasEnded && fired.value >= 10
                && (talks.allSatisfy { $0.talk.hasEnded || $0.talk.bytes > 0 } || Date() > end)
        }
        expect(loads.allSatisfy { $0.ends == 1 }, "round \(round): loads end once: \(loads.map(\.ends))")
        expect(queued.ends == 1, "round \(round): a queued load ends once: \(queued.ends)")
        expect(fired.value >= 10, "round \(round): timers fire: \(fired.value)")
        if hasThread {
            expect(run(upTo: 20) { answered.value == 1 }, "round \(round): another thread answers")
            thread.stop()
            thread.join()
        }
        for entry in talks {
            expect(entry.talk.ends <= 1, "round \(round): a stream ends once: \(entry.talk.ends)")
            entry.input.close()
            entry.output.close()
        }
        echo.close()
        timer.invalidate()
    }
    Faults.disarm()
    let seconds = -began.timeIntervalSinceNow
    expect(
        processorSeconds - spent < 1.5 + seconds / 2,
        "nothing spins: \(processorSeconds - spent) of \(seconds) s")
    let later = Load.start(address, seconds: 20)
    run(upTo: 30) { later.hasEnded }
    expect(later.ends == 1 && later.error == nil, "a later load works: \(String(describing: later.error))")
}

/// A listener that sends back the bytes that it receives.
private final class Echo {
    private let listener: StreamListener?
    private var ends: [(InputStream, OutputStream, Answer)] = []

    private final class Answer: NSObject, StreamDelegate {
        weak var output: OutputStream?

        func stream(_ aStream: Foundation.Stream, handle eventCode: Foundation.Stream.Event) {
            guard eventCode == .hasBytesAvailable, let input = aStream as? InputStream else { return }
            var buffer = [UInt8](repeating: 0, count: 1_024)
            let count = input.read(&buffer, maxLength: buffer.count)
            if count > 0, let output, output.hasSpaceAvailable { _ = output.write(buffer, maxLength: count) }
        }
    }

    var port: Int? { listener?.port }

    init() {
        listener = try? StreamListener(port: 0, host: "127.0.0.1")
        listener?.onConnection = { [unowned self] connection in
            let answer = Answer()
            answer.output = connection.output
            connection.input.delegate = answer
            connection.input.schedule(in: .current, forMode: .default)
            connection.output.schedule(in: .current, forMode: .default)
            connection.input.open()
            connection.output.open()
            ends.append((connection.input, connection.output, answer))
        }
        listener?.schedule(in: .current, forMode: .default)
    }

    func close() {
        listener?.close()
        for (input, output, _) in ends {
            input.close()
            output.close()
        }
    }
}

/// A program that a thread of this process starts without regard to descriptors and signals inherits none of
/// Rondo's.
private func startingAnotherProgram(_ arguments: [String]) {
    let inherited = openDescriptors()
    let address = arguments[0]
    let load = Load.start(address)
    let held = Load.start(address + "held", seconds: 60)
    let echo = Echo()
    let file = NSTemporaryDirectory() + "rondo-exec-\(getpid())"
    let timer = Timer.scheduledTimer(withTimeInterval: 0.01, repeats: true) { _ in }
    let embedded = RunLoop.Mode("embedded")
    RunLoop.current.add(Port(), forMode: embedded)
    let embedding = try? RunLoop.current.embed(mode: embedded)
    let thread = RunLoopThread(name: "starts others")
    thread.start()
    run(upTo: 20) { load.hasEnded }
    run(upTo: 0.2) { held.hasEnded }
    expect(openDescriptors().count > inherited.count + 5, "there is something to be inherited")
    let text = Mutex("")
    thread.perform {
        let output = program(
            "for f in /proc/self/fd/*; do echo \"${f##*/}\"; done; grep SigBlk /proc/self/status", file)
        text.withLock { $0 = output }
    }
    run(upTo: 20) { text.withLock { !$0.isEmpty } }
    let lines = text.withLock { $0.split(separator: "\n").map(String.init) }
    let numbers = Set(lines.compactMap { Int($0) })
    // The shell's own descriptor for the folder that it lists.
    let foreign = numbers.subtracting(inherited).subtracting([0, 1, 2])
    expect(foreign.count <= 1, "descriptors are inherited: \(foreign.sorted()); it had \(inherited.sorted())")
    let mask = lines.first { $0.hasPrefix("SigBlk") }?.split(separator: "\t").last
    expect(
        mask.map { $0.allSatisfy { $0 == "0" } } ?? false, "signals are blocked: \(String(describing: mask))")
    embedding?.invalidate()
    echo.close()
    timer.invalidate()
    thread.stop()
    thread.join()
}

private func openDescriptors() -> Set<Int> {
    Set((0..<512).filter { fcntl(Int32($0), F_GETFD) != -1 })
}

/// Runs a shell command by `fork` and `exec`, and returns its output through `file`.
private func program(_ command: String, _ file: String) -> String {
    let words = ["/bin/sh", "-c", "exec > \(file) 2>&1; \(command)"]
    var pointers = words.map { strdup($0) } + [nil]
    defer { for pointer in pointers { free(pointer) } }
    var process = pid_t()
    guard posix_spawn(&process, "/bin/sh", nil, nil, &pointers, environ) == 0 else { return "no program" }
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0, errno == EINTR {}
    defer { unlink(file) }
    return (try? String(contentsOfFile: file, encoding: .utf8)) ?? "no output"
}

/// `dlopen` finds neither the libraries of content codings nor libpsl.
private func withoutLibraries(_ arguments: [String]) {
    let load = Load.start(arguments[0])
    run(upTo: 20) { load.hasEnded }
    expect(load.ends == 1 && load.error == nil, "the load has ended well: \(String(describing: load.error))")
}
