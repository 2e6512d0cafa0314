internal import Foundation
internal import RondoCore
internal import RondoMutex

/// A value that can be kept in a file, as JSON.
protocol Persistable: Sendable {
    /// The form of the value in the file.
    associatedtype Form: Codable, Sendable

    init(_ form: Form)

    static var emptyForm: Form { get }

    /// Adds a piece of the value to `form`, beginning at a position; the first position is 0. A piece is
    /// short: a run loop may have to wait for it.
    ///
    /// - Returns: The next position; nil if the form is complete.
    func add(to form: inout Form, from position: Int) -> Int?
}

/// A value that servers change, and that outlives the process if the program has named a file.
///
/// Run loops change it in memory and request a write. A thread of its own writes, once for all changes within
/// `writeDelay`. The file is written as a whole, in a form that has never changed, so that existing files of
/// programs stay readable. Calls that the program makes itself (`keep`, `replace`, `flush`) have written when
/// they return.
///
/// Each write makes a new file, which replaces the old one when it is complete: if a process is killed, the
/// old or the new file remains.
final class PersistedValue<Value: Persistable>: Sendable {
    private struct State {
        var value: Value
        var file: PersistedFile?
        /// Whether the value has changed since it was last taken for the file.
        var hasChanges = false
        /// Made when a file is named for the first time.
        var writer: BackgroundWriter?

        /// Whether the value in memory is newer than the file.
        var isUnwritten: Bool { hasChanges || file?.isBehind == true }
    }

    private let label: String
    private let writeDelay: Double
    private let state: Mutex<State>
    /// Held while a file is read or written. A run loop never takes it, except for a call of the program.
    /// Taken before `state`.
    private let accessing = Mutex(())

    /// - Parameter writeDelay: The seconds for which changes are gathered. A process that is killed loses
    ///   these changes.
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
    /// - Parameter body: Returns whether the change is worth writing. It must be quick: other loops wait for
    ///   it.
    func change(_ body: (inout Value) -> Bool) {
        state.withLock { state in
            let isWorthWriting = body(&state.value)
            guard let file = state.file, isWorthWriting || file.isBehind else { return }
            state.hasChanges = true
            state.writer?.ask(keeping: self)
        }
    }

    // MARK: For the program

    /// Keeps the value in the file at `url` from now on, and loads the value from it. With nil it is kept in
    /// memory only.
    ///
    /// - Parameter otherwise: The value to use if there is no such file yet; nil to leave the value
    ///   unchanged.
    /// - Throws: Foundation's error if the file exists and cannot be read. Then nothing has changed.
    func keep(in url: URL?, otherwise: Value?, onFailure: (@Sendable (any Error) -> Void)?) throws {
        // The file to be read may be the one for which changes wait.
        flush()
        let failure = try accessing.withLock { _ -> PersistedFile.Failure? in
            let stored = try url.flatMap(Self.read)
            let (old, rest) = state.withLock { state -> (PersistedFile?, Value.Form?) in
                // Changes that were made since belong to the old file.
                let rest = state.isUnwritten ? Self.form(of: state.value) : nil
                let old = state.file
                state.file = url.map { PersistedFile($0, onFailure: onFailure) }
                state.hasChanges = false
                if let value = stored ?? otherwise { state.value = value }
                if url != nil, state.writer == nil { state.writer = makeWriter() }
                return (old, rest)
            }
            guard var old, let rest else { return nil }
            return old.write(rest)
        }
        failure?.tell()
        if let url { PersistedFile.removeRemains(of: url) }
    }

    /// Replaces the value, in the file too.
    ///
    /// - Returns: The old value, and the failure if the file could not be written; its handler has not been
    ///   called.
    func replace(with value: Value) -> (old: Value, failure: PersistedFile.Failure?) {
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

    /// Writes what has changed, or could not be written before, and returns when that is in the file.
    func flush() {
        let failure = accessing.withLock { _ in write() }
        failure?.tell()
    }

    // MARK: Writing

    private func makeWriter() -> BackgroundWriter {
        BackgroundWriter(label, delay: { [writeDelay] in writeDelay }) { [weak self] in self?.flush() }
    }

    /// Writes what is not in the file. The caller holds `accessing`, so that the file stays the same.
    private func write() -> PersistedFile.Failure? {
        let changed = state.withLock { state in
            defer { state.hasChanges = false }
            return state.isUnwritten ? state.file : nil
        }
        guard var file = changed else { return nil }
        // Loops need the lock between two pieces. Changes that they make meanwhile are written the next time.
        var form = Value.emptyForm
        var position: Int? = 0
        while let next = position {
            position = state.withLock { $0.value.add(to: &form, from: next) }
        }
        let failure = file.write(form)
        let writer = state.withLock { state -> BackgroundWriter? in
            state.file?.isBehind = file.isBehind
            return state.writer
        }
        if failure != nil { writer?.noteFailure() }
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
