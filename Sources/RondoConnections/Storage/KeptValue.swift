internal import Foundation
internal import RondoCore
internal import RondoMutex

/// A value that can be kept in a file, as JSON.
protocol Keepable: Sendable {
    /// How it stands in the file.
    associatedtype Form: Codable, Sendable

    init(_ form: Form)

    static var emptyForm: Form { get }

    /// Adds a piece of the value to `form`, from a position on, the first of which is 0. A piece is short: a run loop may
    /// have to wait for it.
    ///
    /// - Returns: The next position; nil where the form is whole.
    func add(to form: inout Form, from position: Int) -> Int?
}

/// A value that servers change and that outlives the process where the program has named a file.
///
/// Run loops change it in memory and ask for it to be written. A thread of its own does that, once for all changes within
/// `writeDelay`; the file is written whole, in the form that it has had from the start, so that files of programs stay
/// readable. What the program asks for itself (`keep`, `replace`, `flush`) is done when the call returns.
///
/// Each write makes a new file, which takes the old one's place when it is whole: a process that is killed leaves the one
/// or the other.
final class KeptValue<Value: Keepable>: Sendable {
    private struct State {
        var value: Value
        var file: KeptFile?
        /// The value has changed since it was last taken for the file.
        var hasChanges = false
        /// Made when there is a file for the first time.
        var writer: DeferredWriter?
    }

    private let label: String
    private let writeDelay: Double
    private let state: Mutex<State>
    /// Held while a file is read or written, by no run loop unless the program asks it to. Taken before `state`.
    private let accessing = Mutex(())

    /// - Parameter writeDelay: Seconds in which changes are gathered. A process that is killed loses these.
    init(_ value: Value, label: String, writeDelay: Double = 0.5) {
        self.label = label
        self.writeDelay = writeDelay
        state = Mutex(State(value: value))
    }

    // MARK: For run loops

    func read<Result>(_ body: (borrowing Value) -> Result) -> Result {
        state.withLock { body($0.value) }
    }

    var hasFile: Bool { state.withLock { $0.file != nil } }

    /// Changes the value.
    ///
    /// - Parameter body: Says whether that is worth writing. It is quick: other loops wait for it.
    func change(_ body: (inout Value) -> Bool) {
        state.withLock { state in
            let isWorthWriting = body(&state.value)
            guard let file = state.file, isWorthWriting || file.isBehind else { return }
            state.hasChanges = true
            state.writer?.ask(keeping: self)
        }
    }

    // MARK: For the program

    /// Keeps the value in the file at `url` from here on, and takes what that holds; nil: in memory only.
    ///
    /// - Parameter otherwise: The value where there is no such file yet; nil: it stays as it is.
    /// - Throws: What Foundation says if the file is there and cannot be read. Then nothing has changed.
    func keep(in url: URL?, otherwise: Value?, onFailure: (@Sendable (any Error) -> Void)?) throws {
        // The file that is read may be the one for which changes wait.
        flush()
        let failure = try accessing.withLock { _ -> KeptFile.Failure? in
            let stored = try url.flatMap(Self.read)
            let (old, rest) = state.withLock { state -> (KeptFile?, Value.Form?) in
                // What has changed since is for the old file.
                let rest = state.hasChanges ? Self.form(of: state.value) : nil
                let old = state.file
                state.file = url.map { KeptFile($0, onFailure: onFailure) }
                state.hasChanges = false
                if let value = stored ?? otherwise { state.value = value }
                if url != nil, state.writer == nil { state.writer = makeWriter() }
                return (old, rest)
            }
            guard var old, let rest else { return nil }
            return old.write(rest)
        }
        failure?.tell()
        if let url { KeptFile.removeRemains(of: url) }
    }

    /// Replaces the value, in the file too.
    ///
    /// - Returns: The value until now, and why the file could not be written, if so: its handler has not been called.
    func replace(with value: Value) -> (old: Value, failure: KeptFile.Failure?) {
        accessing.withLock { _ in
            let old = state.withLock { state in
                let old = state.value
                state.value = value
                state.hasChanges = true
                return old
            }
            return (old, write())
        }
    }

    /// Writes what has changed, and returns when that is in the file.
    func flush() {
        let failure = accessing.withLock { _ in write() }
        failure?.tell()
    }

    // MARK: Writing

    private func makeWriter() -> DeferredWriter {
        DeferredWriter(label, delay: { [writeDelay] in writeDelay }) { [weak self] in self?.flush() }
    }

    /// Writes what has changed. `accessing` is held, so that the file stays the same meanwhile.
    private func write() -> KeptFile.Failure? {
        let changed = state.withLock { state in
            defer { state.hasChanges = false }
            return state.hasChanges ? state.file : nil
        }
        guard var file = changed else { return nil }
        // Loops need the lock between two pieces. What they change meanwhile is written the next time.
        var form = Value.emptyForm
        var position: Int? = 0
        while let next = position {
            position = state.withLock { $0.value.add(to: &form, from: next) }
        }
        let failure = file.write(form)
        state.withLock { $0.file?.isBehind = file.isBehind }
        return failure
    }

    private static func form(of value: Value) -> Value.Form {
        var form = Value.emptyForm
        var position: Int? = 0
        while let next = position { position = value.add(to: &form, from: next) }
        return form
    }

    private static func read(_ url: URL) throws -> Value? {
        guard FileManager.default.fileExists(atPath: url.path) else { return nil }
        return Value(try JSONDecoder().decode(Value.Form.self, from: Data(contentsOf: url)))
    }
}
