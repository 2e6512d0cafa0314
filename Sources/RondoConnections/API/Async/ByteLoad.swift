internal import FoundationNetworking
internal import RondoCore
internal import RondoMutex

/// A load that delivers its bytes to a byte source.
final class ByteLoad: NSObject, URLConnectionDataDelegate, ByteFlow {
    private static let defaults = DelegateDefaults.leavingTLSToSettings()

    private let source: ByteSource
    /// The connection retains its delegate, this object, until the load ends or is cancelled; `release()`
    /// and `cancel()` break the cycle.
    private let connection = Mutex<URLConnection?>(nil)

    init(_ request: URLRequest, _ configuration: URLConnection.Configuration?, for source: ByteSource) {
        self.source = source
        super.init()
        let connection = URLConnection(request: request, delegate: self, startImmediately: false)
        connection?.setDefaults(Self.defaults)
        if let configuration { connection?.configuration = configuration }
        self.connection.withLock { $0 = connection }
    }

    // MARK: ByteFlow

    func start() {
        guard let connection = connection.withLock({ $0 }) else {
            return source.failed(URLErrors.error(.unsupportedURL, url: source.url))
        }
        connection.driveOnLoader()
        connection.start()
    }

    func holdBack(_ holds: Bool) { connection.withLock { $0 }?.holdBack(holds) }

    func cancel() { connection.withLock { $0.take() }?.cancel() }

    // MARK: Called on the loader's thread

    func connection(_ connection: URLConnection, didReceive response: URLResponse) {
        source.received(response)
    }

    func connection(_ connection: URLConnection, didReceive data: Data) { source.received(data) }

    func connectionDidFinishLoading(_ connection: URLConnection) {
        release()
        source.finished()
    }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) {
        release()
        source.failed(error)
    }

    private func release() {
        let connection = connection.withLock { $0.take() }
        withExtendedLifetime(connection) {}
    }
}
