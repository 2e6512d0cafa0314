public import FoundationNetworking
public import RondoCore
public import RondoStreams

/// The delegate of a connection that receives the body as data, piece by piece.
public protocol URLConnectionDataDelegate: URLConnectionDelegate {
    /// A request is about to be sent that the program did not make: that of a redirect, or (with a nil
    /// response) the canonical form of the original request (rules UC-28 and UC-29).
    ///
    /// - Returns: `request` to continue; another request to send that instead; nil to refuse the redirect,
    ///   whose own response is then delivered (rule UC-30). By default, `request`.
    func connection(
        _ connection: URLConnection, willSend request: URLRequest, redirectResponse response: URLResponse?
    ) -> URLRequest?

    /// The head of the response has come: status and header fields, no data yet. It never changes (rule
    /// UC-19).
    ///
    /// This is called again for each part of multipart/x-mixed-replace (rule UC-22).
    func connection(_ connection: URLConnection, didReceive response: URLResponse)

    /// The next piece of the body. All pieces together are the body exactly (rule UC-20).
    func connection(_ connection: URLConnection, didReceive data: Data)

    /// The request has to be sent again, and its body stream was already read, in whole or in part: after a
    /// redirect that keeps the method, an authentication challenge, or a lost connection (rule UC-39).
    ///
    /// - Returns: A new, unopened stream with the body from its start; nil fails the load with
    ///   `requestBodyStreamExhausted`. If this method is not implemented, the connection repeats the body
    ///   itself (rule UC-40).
    ///
    /// Until this method has been called once for a delegate of the class, the connection does not know that
    /// it is implemented, and keeps what it sends of a stream: 256 KiB in memory, more in a file without a
    /// name in `$TMPDIR`, or, if none can be made there, in `/var/tmp` or `/tmp`. A body of more than 64 GiB,
    /// or one for which there is no room, is sent all the same, but cannot be repeated. The body of a form is
    /// not kept (`URLRequest.setForm(_:)`).
    func connection(_ connection: URLConnection, needNewBodyStream request: URLRequest)
        -> RondoStreams.InputStream?

    /// A piece of the request's body has been handed to the network. Counts are in bytes and are estimates;
    /// the total decreases when the body is sent again (rule UC-41).
    ///
    /// - Parameter totalBytesExpectedToWrite: -1 if the length of the body is not known.
    func connection(
        _ connection: URLConnection, didSendBodyData bytesWritten: Int, totalBytesWritten: Int,
        totalBytesExpectedToWrite: Int)

    /// The response is about to be stored in the cache (rules UC-53 and UC-54).
    ///
    /// - Returns: The response to be stored instead; nil to store nothing. By default, `cachedResponse`.
    func connection(_ connection: URLConnection, willCacheResponse cachedResponse: CachedURLResponse)
        -> CachedURLResponse?

    /// The load is complete; the last call (rule UC-18).
    func connectionDidFinishLoading(_ connection: URLConnection)

    // MARK: The spellings of 2015

    @available(*, deprecated, renamed: "connection(_:willSend:redirectResponse:)")
    func connection(
        _ connection: URLConnection, willSendRequest request: URLRequest,
        redirectResponse response: URLResponse?
    ) -> URLRequest?

    @available(*, deprecated, renamed: "connection(_:didReceive:)")
    func connection(_ connection: URLConnection, didReceiveResponse response: URLResponse)

    @available(*, deprecated, renamed: "connection(_:didReceive:)")
    func connection(_ connection: URLConnection, didReceiveData data: Data)
}

extension URLConnectionDataDelegate {
    public func connection(
        _ connection: URLConnection, willSend request: URLRequest, redirectResponse response: URLResponse?
    ) -> URLRequest? {
        OldSpellings.dataCalls.willSend(self, connection, request, response)
    }

    public func connection(_ connection: URLConnection, didReceive response: URLResponse) {
        OldSpellings.dataCalls.didReceiveResponse(self, connection, response)
    }

    public func connection(_ connection: URLConnection, didReceive data: Data) {
        OldSpellings.dataCalls.didReceiveData(self, connection, data)
    }

    public func connection(
        _ connection: URLConnection, needNewBodyStream request: URLRequest
    ) -> RondoStreams.InputStream? {
        connection.noteDefault(of: .needNewBodyStream)
        return nil
    }

    public func connection(
        _ connection: URLConnection, didSendBodyData bytesWritten: Int, totalBytesWritten: Int,
        totalBytesExpectedToWrite: Int
    ) {}

    public func connection(
        _ connection: URLConnection, willCacheResponse cachedResponse: CachedURLResponse
    ) -> CachedURLResponse? {
        connection.noteDefault(of: .willCacheResponse, by: self)
        return cachedResponse
    }

    public func connectionDidFinishLoading(_ connection: URLConnection) {}

    // MARK: The spellings of 2015

    public func connection(
        _ connection: URLConnection, willSendRequest request: URLRequest,
        redirectResponse response: URLResponse?
    ) -> URLRequest? {
        request
    }

    public func connection(_ connection: URLConnection, didReceiveResponse response: URLResponse) {}

    public func connection(_ connection: URLConnection, didReceiveData data: Data) {}
}
