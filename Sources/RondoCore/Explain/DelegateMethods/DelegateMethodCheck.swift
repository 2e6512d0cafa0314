internal import RondoMutex

internal import struct Synchronization.Atomic

/// Warns, once for each class, of delegate methods that look like the protocol's but are never called.
///
/// The check runs on a thread of its own, since it reads the program's file: tens of milliseconds, once for
/// each delegate class that is a subclass of a conforming class, or conforms to nothing.
package struct DelegateMethodCheck: Sendable {
    private let protocols: [DelegateProtocol]
    private let warn: @Sendable (String) -> Void

    /// - Parameter warn: Receives a sentence for the log; called on the check's thread.
    package init(protocols: [DelegateProtocol], warn: (@Sendable (String) -> Void)? = nil) {
        self.protocols = protocols
        self.warn = warn ?? { Log.core.warning("\($0)") }
    }

    /// Checks `type`, a class of delegates, later. To be called once for each class; any thread.
    package func look(at type: AnyClass) {
        Self.work.add(Job(type: type, check: self))
    }

    /// Checks `type` like `look(at:)`, but only once, and not if the class itself declares the conformance to
    /// the first protocol, as most do. May be called for a class any number of times.
    ///
    /// - Parameter conforms: Whether the class conforms to the first protocol, itself or through a
    ///   superclass.
    package func lookOnce(at type: AnyClass, conforms: Bool) {
        if conforms {
            guard let parent = _getSuperclass(type), parent != NSObject.self,
                protocols[0].isConformedTo(parent)
            else { return }
        }
        if Self.seen.insert(ObjectIdentifier(type)) { look(at: type) }
    }

    // MARK: The warning

    fileprivate func examine(_ type: AnyClass, _ declared: inout DeclaredMethods) {
        let line = Self.line(from: type)
        // Findings about a superclass are left out if it was a delegate class itself and has been reported.
        let findings = UncalledMethods.find(line: line, protocols: protocols) { declared.of($0) }
            .filter { Self.said.insert($0) }
        guard !findings.isEmpty else { return }
        let names = Dictionary(line.map { (ObjectIdentifier($0), Self.name(of: $0)) }) { first, _ in first }
        for text in Self.sentences(findings, names: names) { warn(text) }
    }

    /// The class and its superclasses, without `NSObject`.
    private static func line(from type: AnyClass) -> [AnyClass] {
        Array(sequence(first: type) { _getSuperclass($0) }.prefix { $0 != NSObject.self })
    }

    private static func sentences(
        _ findings: [UncalledMethods.Finding], names: [ObjectIdentifier: String]
    ) -> [String] {
        struct Cause: Hashable {
            let declaredBy: ObjectIdentifier
            let protocolName: String
            let conforming: ObjectIdentifier?
        }
        var order: [Cause] = []
        var methods: [Cause: [String]] = [:]
        for finding in findings {
            let cause = Cause(
                declaredBy: finding.declaredBy, protocolName: finding.protocolName,
                conforming: finding.conforming)
            if methods[cause] == nil { order.append(cause) }
            let types = finding.method.types.dropFirst().joined(separator: ", ")
            methods[cause, default: []].append(finding.method.name + (types.isEmpty ? "" : " with \(types)"))
        }
        return order.map { cause in
            let (owner, list) = (names[cause.declaredBy] ?? "?", methods[cause] ?? [])
            let said = "\(owner) is used as a delegate, and its \(list.joined(separator: ", "))"
            guard let conforming = cause.conforming.flatMap({ names[$0] }) else {
                return """
                    \(said) will not be called, since it does not conform to \(cause.protocolName). Declare that it \
                    does.
                    """
            }
            return """
                \(said) will not be called: \(conforming) declares the conformance to \(cause.protocolName), and Swift \
                calls what that class has, or a class above it. Declare it in \(conforming), and override it in \
                \(owner).
                """
        }
    }

    /// The name of a class with its module, but without the address that stands for a file or a function.
    private static func name(of type: AnyClass) -> String {
        String(reflecting: type).split(separator: ".").filter { !$0.hasPrefix("(unknown context") }
            .joined(separator: ".")
    }

    // MARK: The thread

    fileprivate struct Job: Sendable {
        let type: AnyClass
        let check: DelegateMethodCheck
    }

    private static let work = CheckQueue()
    private static let seen = Once<ObjectIdentifier>(maximum: 1024)
    private static let said = Once<UncalledMethods.Finding>(maximum: 4096)
}

/// Remembers values that were inserted before, up to a limit that no real program reaches.
private final class Once<Element: Hashable & Sendable>: Sendable {
    private let elements = Mutex(Set<Element>())
    private let maximum: Int

    init(maximum: Int) { self.maximum = maximum }

    /// - Returns: True if the value was inserted: it is new, and the limit has not been reached.
    func insert(_ element: Element) -> Bool {
        elements.withLock { $0.count < maximum && $0.insert(element).inserted }
    }
}

/// The checks to be made, by one thread that ends when none are left.
private final class CheckQueue: Sendable {
    private struct State {
        var jobs: [DelegateMethodCheck.Job] = []
        var isWorking = false
        var waitsAtExit = false
    }

    private let state = Mutex(State())
    /// Whether the thread is working; read when the process ends.
    private static let isBusy = Atomic(false)

    func add(_ job: DelegateMethodCheck.Job) {
        let (starts, isFirst) = state.withLock { state in
            state.jobs.append(job)
            defer { (state.isWorking, state.waitsAtExit) = (true, true) }
            return (!state.isWorking, !state.waitsAtExit)
        }
        if starts { startThread() }
        // A program that ends before the warning is written may be the one that needs it.
        if isFirst { atexit { CheckQueue.waitAtExit() } }
    }

    private func startThread() {
        Self.isBusy.store(true, ordering: .releasing)
        do throws(SystemError) {
            try SystemThread.start(name: "rondo.check") { [self] in serve() }
        } catch {
            // Without a thread there is no warning; it is only a hint for the programmer.
            state.withLock { ($0.jobs, $0.isWorking) = ([], false) }
            Self.isBusy.store(false, ordering: .releasing)
        }
    }

    private func serve() {
        var declared = DeclaredMethods()
        while let job = next() { job.check.examine(job.type, &declared) }
    }

    private func next() -> DelegateMethodCheck.Job? {
        state.withLock { state in
            guard state.jobs.isEmpty else { return state.jobs.removeFirst() }
            state.isWorking = false
            Self.isBusy.store(false, ordering: .releasing)
            return nil
        }
    }

    /// Milliseconds for which the end of the process waits for a warning.
    private static let longestWaitAtExit = 500

    private static func waitAtExit() {
        for _ in 0..<longestWaitAtExit where isBusy.load(ordering: .acquiring) { _ = poll(nil, 0, 1) }
    }
}
