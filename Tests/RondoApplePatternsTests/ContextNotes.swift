import Rondo
import RondoMutex
import RondoTestSupport

/// The object that a context's `info` points to: it notes what has happened, and counts how often the context has
/// retained and released it.
final class ContextNotes: Sendable {
    private struct State {
        var retains = 0
        var releases = 0
        var data = Data()
    }

    let name: String
    let log = EventLog()
    private let state = Mutex(State())

    init(_ name: String = "notes") { self.name = name }

    var retains: Int { state.withLock { $0.retains } }
    var releases: Int { state.withLock { $0.releases } }
    var data: Data { state.withLock { $0.data } }
    var text: String { String(decoding: data, as: UTF8.self) }

    func append(_ data: Data) { state.withLock { $0.data += data } }

    // `Unmanaged`, as the contexts of Core Foundation have it: `info` is a pointer to a `ContextNotes`, which the test keeps
    // until its object has released the context.

    static func of(_ info: UnsafeRawPointer?) -> ContextNotes? {
        info.map { Unmanaged<ContextNotes>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Not retained: the test has it.
    var info: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    @Sendable static func retain(_ info: UnsafeRawPointer?) -> UnsafeRawPointer? {
        guard let notes = of(info) else { return nil }
        notes.state.withLock { $0.retains += 1 }
        return UnsafeRawPointer(Unmanaged.passRetained(notes).toOpaque())
    }

    @Sendable static func release(_ info: UnsafeRawPointer?) {
        guard let info, let notes = of(info) else { return }
        notes.state.withLock { $0.releases += 1 }
        Unmanaged<ContextNotes>.fromOpaque(info).release()
    }

    @Sendable static func describe(_ info: UnsafeRawPointer?) -> Unmanaged<CFString>? {
        of(info).map { .passRetained($0.name as CFString) }
    }
}
