import RondoCore
import RondoMutex

/// Notes the messages of a port.
final class Inbox: PortDelegate, Sendable {
    private struct State {
        var texts: [String] = []
        var numbers: [String: [UInt32]] = [:]
        var count = 0
        var atOnce = 0
        var mostAtOnce = 0
        var keepsTexts = true
        var onMessage: (@Sendable (PortMessage, Int) -> Void)?
    }

    private let state = Mutex(State())

    init(_ port: Port) { port.setDelegate(self) }

    var texts: [String] { state.withLock { $0.texts } }
    var count: Int { state.withLock { $0.count } }
    /// The greatest number of calls that were under way at a time.
    var mostAtOnce: Int { state.withLock { $0.mostAtOnce } }
    var keepsTexts: Bool {
        get { state.withLock { $0.keepsTexts } }
        set { state.withLock { $0.keepsTexts = newValue } }
    }

    /// Called for each message, with the number of messages so far.
    var onMessage: (@Sendable (PortMessage, Int) -> Void)? {
        get { state.withLock { $0.onMessage } }
        set { state.withLock { $0.onMessage = newValue } }
    }

    func numbers(from text: String) -> [UInt32] { state.withLock { $0.numbers[text] ?? [] } }

    func handle(_ message: PortMessage) {
        let text = message.text
        let number = message.msgid
        let (action, count) = state.withLock { state in
            state.count += 1
            state.atOnce += 1
            state.mostAtOnce = max(state.mostAtOnce, state.atOnce)
            if state.keepsTexts {
                state.texts.append(text)
                state.numbers[text, default: []].append(number)
            }
            return (state.onMessage, state.count)
        }
        action?(message, count)
        state.withLock { $0.atOnce -= 1 }
    }
}

extension PortMessage {
    var text: String {
        (components?.first as? NSData).map { String(decoding: Data(referencing: $0), as: UTF8.self) } ?? ""
    }
}

extension Port {
    func send(
        _ text: String, before date: Date = .distantPast, msgid: Int = 0, from port: Port? = nil
    ) -> Bool {
        send(before: date, msgid: msgid, components: [Data(text.utf8)], from: port, reserved: 0)
    }
}
