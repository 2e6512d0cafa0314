internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

extension Loader {
    /// What most loads never have. A load is made and released for every request: what it does not have should take no
    /// time.
    final class Rare {
        /// Where there are several places.
        var otherSeats: [StreamCourier.Seat] = []
        var waitingForLease: WaitingForLease?
        /// What is sent once its cookies can be read.
        var waitingForCookies: LoadRequest?
        var idleTimer: PlaceTimer?
        var transfers: [URLConnection.Transfer] = []
        /// The head of the whole, where the body has parts.
        var pipeHead: ResponseHead?

        // In place of an exchange: a protocol of the program, or a file.
        var bridge: ProtocolBridge?
        var openProtocolChallenge: URLAuthenticationChallenge?
        var local: LocalContent?

        // The request's body, from a stream.
        var body: BodyStream?
        /// What is sent once the delegate has given a new body stream.
        var waitingToSend: (request: LoadRequest, mayReuse: Bool)?
        /// What is sent once the whole body was read and hashed.
        var hashing: (request: LoadRequest, mayReuse: Bool)?
        var bodyTimer: PlaceTimer?
        var goAheadTimer: PlaceTimer?

        // Who asks.
        var serverAuthentication = Authentication()
        var proxyAuthentication = Authentication()
        /// The challenge that waits for its answer, and the response that it came with.
        var openChallenge: OpenChallenge?
        var failureHead: ResponseHead?
        var challengeCount = 0
        /// The proxy that the request under way goes by, and whether it has refused what its URL says.
        var proxy: StreamProxy?
        var hasProxyCredentialFailed = false
        /// The response's body has to be what its head says.
        var bodyProof: BodyProof?

        // The response's body, where it goes to a file.
        var file: DownloadFile?
        var fileLength: Int64 = 0
        var expectedFileLength: Int64 = 0
        /// Of the response whose body it is.
        var fileResponse: URLResponse?
        /// The rest of it is being asked for.
        var resuming: Resuming?
        var resumptions = 0
        var resumedAt: Int64 = 0
    }

    var madeRare: Rare {
        if let rare { return rare }
        let rare = Rare()
        self.rare = rare
        return rare
    }

    var waitingForLease: WaitingForLease? { rare?.waitingForLease }
    var bridge: ProtocolBridge? { rare?.bridge }
    var openProtocolChallenge: URLAuthenticationChallenge? { rare?.openProtocolChallenge }
    var local: LocalContent? { rare?.local }
    var body: BodyStream? { rare?.body }
    var hashing: (request: LoadRequest, mayReuse: Bool)? { rare?.hashing }
    var openChallenge: OpenChallenge? { rare?.openChallenge }
    var proxy: StreamProxy? { rare?.proxy }
    var file: DownloadFile? { rare?.file }
}
