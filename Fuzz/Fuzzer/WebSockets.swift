import Foundation
import RondoHTTP

/// Frames as they come to one end of a connection, with all that is owed to the other.
///
/// - Parameter kind: Its bits say which end, whether messages are compressed, and whether the bytes are a message to be
///   sent instead.
func readWebSocket(_ bytes: [UInt8], in lengths: [Int], kind: UInt8) -> Report {
    if kind & 4 != 0 { return sendWebSocket(bytes, in: lengths, kind: kind) }
    var connection = WebSocketConnection(
        kind & 1 == 0 ? .client : .server, compression: compression(kind), generator: FixedKeys())
    connection.limits.maximumMessageSize = 4096
    return hear(bytes, in: lengths, by: &connection)
}

/// What one end sends the other has to receive, however large its frames are.
private func sendWebSocket(_ bytes: [UInt8], in lengths: [Int], kind: UInt8) -> Report {
    let role: WebSocketRole = kind & 1 == 0 ? .client : .server
    var sender = WebSocketConnection(role, compression: compression(kind), generator: FixedKeys())
    var receiver = WebSocketConnection(
        role == .client ? .server : .client, compression: compression(kind), generator: FixedKeys())
    sender.limits.maximumSentFrameSize = Int(kind >> 4) * 5 + 1
    sender.limits.minimumCompressedSize = 1
    let messages: [WebSocketMessage] = [
        .binary(Data(bytes)), .text(String(decoding: bytes, as: UTF8.self)), .binary(Data(bytes)),
    ]
    var output: [UInt8] = []
    do {
        for message in messages {
            try sender.send(message, into: &output)
            try sender.send(ping: Array(bytes.prefix(125)), into: &output)
        }
        try sender.send(close: WebSocketClose(sending: 1000, reason: Data(bytes)), into: &output)
    } catch {
        fatalError("it cannot be sent: \(error)")
    }
    let report = hear(output, in: lengths, by: &receiver)
    if report.events.filter({ $0.hasPrefix("message") }) != messages.map({ "message(\($0))" }) {
        fatalError("sent \(messages), received \(report.events)")
    }
    return report
}

private func hear(_ bytes: [UInt8], in lengths: [Int], by connection: inout WebSocketConnection) -> Report {
    var (report, pieces) = (Report(), Pieces(bytes, in: lengths))
    do {
        while true {
            let event = try connection.nextEvent()
            switch event {
            case .needMoreData:
                if let piece = pieces.next() { connection.receive(piece) } else { connection.receiveEnd() }
            case .message(let message):
                if message.size > connection.limits.maximumMessageSize { fatalError("more than the limit") }
                report.events.append("message(\(message))")
            case .ping, .pong, .close:
                report.events.append("\(event)")
            case .closed:
                if connection.hasAnswers { connection.sendAnswers(into: &report.body) }
                report.events.append("closed")
                return report
            }
            if connection.hasAnswers { connection.sendAnswers(into: &report.body) }
        }
    } catch {
        connection.sendAnswers(into: &report.body)
        if connection.hasAnswers || connection.isOpen { fatalError("still open after \(error)") }
        report.events.append("\(error)")
        return report
    }
}

private func compression(_ kind: UInt8) -> WebSocketCompression? {
    guard kind & 8 != 0 else { return nil }
    var agreed = WebSocketCompression()
    agreed.client.keepsContext = kind & 16 == 0
    agreed.server.keepsContext = kind & 32 == 0
    agreed.client.windowBits = kind & 64 == 0 ? 15 : 9
    agreed.server.windowBits = kind & 128 == 0 ? 15 : 8
    return agreed
}

/// Two runs have to say the same.
private struct FixedKeys: RandomNumberGenerator, Sendable {
    func next() -> UInt64 { 0x3D21_FA37_5A5A_A5A5 }
}

/// A response to a handshake, whose fields the bytes are.
func readWebSocketHandshake(_ lines: [String]) {
    let handshake = WebSocketHandshake(protocols: ["a", "b"])
    let accept = WebSocketHandshake.accept(for: handshake.key) ?? ""
    let names = ["Sec-WebSocket-Extensions", "Sec-WebSocket-Protocol", "Upgrade", "Connection"]
    var fields = HeaderFields([
        ("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", accept),
    ])
    for (index, line) in lines.enumerated() { fields.append(name: names[index % names.count], value: line) }
    guard let agreement = try? handshake.agreement(in: ResponseHead(status: 101, fields: fields)) else {
        return
    }
    if let chosen = agreement.subprotocol, chosen != "a", chosen != "b" {
        fatalError("it agrees to \(chosen)")
    }
    for sender in [agreement.compression?.client, agreement.compression?.server] {
        if let sender, !(8...15).contains(sender.windowBits) { fatalError("\(sender.windowBits) bits") }
    }
}
