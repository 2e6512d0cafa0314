// Prints server-sent events as they come, and takes the stream up again where it broke off.
// usage: EventStream URL

import Rondo

/// Puts the events of a stream together, line by line (HTML Standard, "Server-sent events").
struct EventParser {
    struct Event {
        var name = "message"
        var data: [String] = []
    }

    private var event = Event()
    /// Of the last event that had one: it is sent with the next request.
    private(set) var lastIdentifier: String?
    /// What the server wants to be left alone for, after the stream has ended.
    private(set) var secondsToWait = 3.0

    /// - Returns: An event that is whole: an empty line ends it.
    mutating func take(_ line: String) -> Event? {
        if line.isEmpty {
            defer { event = Event() }
            return event.data.isEmpty ? nil : event
        }
        let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        var value = parts.count > 1 ? String(parts[1]) : ""
        if value.first == " " { value.removeFirst() }
        switch parts[0] {
        case "event": event.name = value
        case "data": event.data.append(value)
        case "id": if !value.contains("\0") { lastIdentifier = value }
        case "retry":
            if let milliseconds = UInt32(value) { secondsToWait = Double(milliseconds) / 1000 }
        default: break  // a comment, or a field that is not known
        }
        return nil
    }
}

@main
struct EventStream {
    static func main() async {
        guard CommandLine.arguments.count == 2, let url = URL(string: CommandLine.arguments[1]) else {
            print("usage: EventStream URL")
            exit(2)
        }
        let configuration = URLSessionConfiguration.ephemeral
        // An event may be a long time coming.
        configuration.timeoutIntervalForRequest = 3600
        let session = URLSession(configuration: configuration)
        var parser = EventParser()
        while true {
            do {
                guard try await follow(url, session, &parser) else { exit(1) }
            } catch {
                print("broken off: \(error.localizedDescription)")
            }
            try? await Task.sleep(for: .seconds(parser.secondsToWait))
        }
    }

    /// Prints the events of one response.
    ///
    /// - Returns: False: the server has no more, or none at all.
    private static func follow(
        _ url: URL, _ session: URLSession, _ parser: inout EventParser
    ) async throws -> Bool {
        var request = URLRequest(url: url, cachePolicy: .reloadIgnoringLocalCacheData)
        request.setValue("text/event-stream", forHTTPHeaderField: "Accept")
        request.setValue(parser.lastIdentifier, forHTTPHeaderField: "Last-Event-ID")
        let (bytes, response) = try await session.bytes(for: request)
        guard let status = (response as? HTTPURLResponse)?.statusCode, status == 200,
            response.mimeType == "text/event-stream"
        else {
            print("no events: the server answered with another response")
            return false
        }
        for try await line in bytes.lines(keepingEmpty: true) {
            if let event = parser.take(line) {
                print("\(event.name): \(event.data.joined(separator: "\n"))")
            }
        }
        return true
    }
}
