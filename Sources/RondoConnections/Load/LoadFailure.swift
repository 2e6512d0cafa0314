internal import FoundationNetworking
package import RondoCore
package import RondoHTTP
package import RondoStreams

/// The reason why a load ended without a response, in the terms of its own layers; `URLErrors` translates it
/// into a `URLError`.
///
/// Indirect, since each load has room for one, and hardly any fails.
package indirect enum LoadFailure: Error, Equatable {
    case channel(ChannelError)
    case http(HTTPFailure)
    case timedOut(seconds: Double)
    /// The load took longer than its maximum time.
    case exceededTotalTime(seconds: Double)
    case tooManyRedirects(Int)
    /// Or with a location that cannot be followed, or with several different ones.
    case redirectWithoutLocation(status: Int)
    case unsupportedRedirect(URL)
    case canonicalRequestRefused
    case unsupportedURL
    /// The URL names a port that does not exist.
    case impossiblePort
    /// Foundation cannot make a response with this status.
    case unusableResponse(status: Int)
    case invalidDataURL
    /// The environment names a proxy of an unknown kind. The text may contain a password.
    case unsupportedProxy(String)
    /// A protocol of the program ended without a response.
    case noResponse
    /// An error of a protocol of the program, passed on unchanged.
    case program(NSError)
    /// The task that waited was cancelled.
    case cancelled
    /// The challenge was answered by cancelling it.
    case authenticationCancelled
    /// The server, or the proxy, claims to know the password, and the claim is false.
    case failedMutualAuthentication(isProxy: Bool)
    /// The body has to be sent, perhaps again, and there is nothing to send it from.
    case bodyStreamMissing
    /// The data are not Rondo's resume data, or belong to an upload, which cannot be resumed.
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
    /// The cache has no response, and the request must not be loaded.
    case notInCache
    case multipart(MultipartReader.Failure)
    case noRunLoop
    /// The server does not do what an upgrade asks for, or the protocol after it has failed.
    case upgrade(URLError.Code, sentence: String)
}
