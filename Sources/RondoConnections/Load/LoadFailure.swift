internal import FoundationNetworking
package import RondoCore
package import RondoHTTP
package import RondoStreams

/// Why a load ended without a response, as its own layers know it; `URLErrors` makes a `URLError` of it.
///
/// Indirect, since each load has room for one, and hardly any fails.
package indirect enum LoadFailure: Error, Equatable {
    case channel(ChannelError)
    case http(HTTP1Error)
    case timedOut(seconds: Double)
    /// The load was not over in the time that it had in all.
    case exceededTotalTime(seconds: Double)
    case tooManyRedirects(Int)
    /// Or with one that cannot be followed, or with several that differ.
    case redirectWithoutLocation(status: Int)
    case unsupportedRedirect(URL)
    case canonicalRequestRefused
    case unsupportedURL
    /// The URL names a port that does not exist.
    case impossiblePort
    /// Foundation makes no response of this status.
    case unusableResponse(status: Int)
    case invalidDataURL
    /// The environment names a proxy of a kind that is not known. Its text may hold a password.
    case unsupportedProxy(String)
    /// A protocol of the program ended without a response.
    case noResponse
    /// What a protocol of the program says; handed on as it is.
    case program(NSError)
    /// The task that waited was cancelled.
    case cancelled
    /// The challenge was answered by cancelling it.
    case authenticationCancelled
    /// The server, or the proxy, says that it knows the password, and does not.
    case impostor(isProxy: Bool)
    /// The body has to be sent, perhaps again, and there is nothing to send it from.
    case bodyStreamMissing
    /// They are none of ours, or of an upload, which cannot be resumed.
    case unusableResumeData
    case bodyStreamFailed(NSError)
    case bodyTooShort(announced: Int64, given: Int64)
    case bodyTooLong(announced: Int64)
    /// The file that a download is written to.
    case file(URLError.Code, sentence: String, SystemError)
    case collectedTooMuch(Int)
    case tooLongLine(Int)
    /// A status of 400 or more, where that is to be an error.
    case errorStatus(Int)
    case content(ContentDecodingError)
    /// The cache has nothing, and nothing may be loaded.
    case notInCache
    case multipart(MultipartReader.Failure)
    case noRunLoop
    /// The server does not do what an upgrade asks for, or the protocol after it has failed.
    case upgrade(URLError.Code, sentence: String)
}
