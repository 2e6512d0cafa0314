internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// What servers have said last to the connections of one run loop: what one of them is told again, any other need not take
/// apart, hold or make anew. Without it a GET on each of 9,000 connections takes a fifth more (`make bench`, curves), and one
/// that a server closes each time a seventh (W15).
///
/// Used on the thread of its loop alone.
final class ServerMemory {
    /// With more servers, that is forgotten which was added first.
    static let maximumServers = 16
    /// The same of responses, of all servers.
    static let maximumResponses = 16

    private struct Server {
        /// Whether it is still the same origin does not matter: what is remembered is compared before it is used.
        let origin: ObjectIdentifier
        var heads = HTTP1Connection.LastHeads()
    }

    private var servers: [Server] = []
    private var responses: [RememberedResponse] = []

    /// That of the calling thread's loop; nil: it has none, or one that is ending.
    static var current: ServerMemory? { RunLoop.stored(ServerMemory.self, orMake: ServerMemory.init) }

    /// For a connection that begins.
    func heads(of origin: Origin) -> HTTP1Connection.LastHeads { servers[index(of: origin)].heads }

    /// Has connections that were told the same hold one copy of it.
    ///
    /// - Parameters:
    ///   - codec: That of a connection to `origin`.
    ///   - head: What it has read just now.
    /// - Returns: The same head, as it is held from here on.
    func share(_ head: ResponseHead, of codec: inout HTTP1Connection, to origin: Origin) -> ResponseHead {
        codec.share(&servers[index(of: origin)].heads, head)
    }

    private func index(of origin: Origin) -> Int {
        let id = ObjectIdentifier(origin)
        if let index = servers.firstIndex(where: { $0.origin == id }) { return index }
        if servers.count == Self.maximumServers { servers.removeFirst() }
        servers.append(Server(origin: id))
        return servers.count - 1
    }

    /// The response to a request for `url`; nil where Foundation makes none of `head`.
    ///
    /// - Parameter own: That of a connection, which serves as long as the program holds what others share.
    func response(
        to url: URL, _ head: ResponseHead, bodyLength: Int64?, otherwise own: inout RememberedResponse
    ) -> LoadedResponse? {
        for index in responses.indices
        where responses[index].isMade(of: head, for: url, bodyLength: bodyLength) {
            return responses[index].unused ?? own.response(to: url, head, bodyLength: bodyLength)
        }
        var new = RememberedResponse()
        let response = new.response(to: url, head, bodyLength: bodyLength)
        if !new.isEmpty {
            if responses.count == Self.maximumResponses { responses.removeFirst() }
            responses.append(new)
        }
        return response
    }
}
