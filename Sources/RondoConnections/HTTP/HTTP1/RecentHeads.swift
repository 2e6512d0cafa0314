internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The recent heads of the connections of one run loop, for each server: all connections to it share them. If
/// one receives the same bytes as an earlier one, the head need not be parsed again. Without this and
/// `RecentResponses` a GET on each of 9,000 connections takes a fifth longer (`make bench`, curves), and a
/// GET after which the server closes the connection a seventh (W15).
///
/// Used on its loop's thread only.
final class RecentHeads {
    /// The maximum of servers; the one that was added first is forgotten.
    static let maximumServers = 16

    private struct Server {
        /// Another origin may have got this address since. That does no harm, because a remembered head is
        /// compared with the received bytes before it is used.
        let origin: ObjectIdentifier
        var heads = HTTP1Codec.RecentHeadPair()
    }

    private var recent = RecentValues<Server>(maximum: maximumServers)

    /// The memory of the calling thread's loop; nil if the thread has no loop, or its loop is ending.
    static var current: RecentHeads? { RunLoop.stored(RecentHeads.self, orMake: RecentHeads.init) }

    /// The recent heads of `origin`, for a new connection.
    func heads(of origin: ObjectIdentifier) -> HTTP1Codec.RecentHeadPair { recent[index(of: origin)].heads }

    /// Makes connections that have received equal heads share one copy.
    ///
    /// - Parameters:
    ///   - codec: The codec of a connection to `origin`.
    ///   - head: The head that it has just read.
    /// - Returns: The shared head.
    func share(_ head: ResponseHead, of codec: inout HTTP1Codec, to origin: ObjectIdentifier)
        -> ResponseHead
    {
        codec.share(&recent[index(of: origin)].heads, head)
    }

    private func index(of origin: ObjectIdentifier) -> Int {
        if let index = recent.firstIndex(where: { $0.origin == origin }) { return index }
        return recent.add(Server(origin: origin))
    }
}
