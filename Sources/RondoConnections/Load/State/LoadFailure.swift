internal import FoundationNetworking
package import RondoCore
package import RondoHTTP
package import RondoStreams

/// The reason why a load has failed, in the terms of its own layers; `URLErrors` translates it into a
/// `URLError`.
///
/// Indirect, because each load has room for one, and few loads fail.
package indirect enum LoadFailure: Error, Equatable {
    case channel(ChannelError)
    case http(HTTPFailure)
    case timedOut(seconds: Double)
    /// The load took longer than its maximum time.
    case exceededTotalTime(seconds: Double)
    case tooManyRedirects(Int)
    /// A redirect without a location, with one that cannot be followed, or with several different ones.
    case redirectWithoutLocation(status: Int)
    case unsupportedRedirect(URL)
    case canonicalRequestRefused
    case unsupportedURL
    /// The URL names a port that does not exist.
    case impossiblePort
    /// Foundation cannot make a response with this status.
    case unusableResponse(status: Int)
    case invalidDataURL
    /// The environment, or a session, names a proxy that cannot be used. The text may contain a password.
    case unsupportedProxy(String)
    /// A protocol of the program ended without a response.
    case noResponse
    /// An error of a protocol of the program, passed on unchanged.
    case program(ProgramError)
    /// The Swift task that waited for the load was cancelled.
    case cancelled
    /// The challenge was answered by cancelling it.
    case authenticationCancelled
    /// The server, or the proxy, claims to know the password, and the claim is false.
    case failedMutualAuthentication(isProxy: Bool)
    /// The body has to be sent, perhaps again, and there is no stream to read it from.
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
    /// A status of 400 or more that counts as an error, or a status that a resumed download cannot use.
    case errorStatus(Int)
    case content(ContentDecodingError)
    /// The cache has no response, and the request must not be loaded.
    case notInCache
    case multipart(MultipartReader.Failure)
    case noRunLoop
    /// The server has refused the upgrade, or the protocol after the upgrade has failed.
    case upgrade(URLError.Code, sentence: String)
}

extension LoadFailure {
    init(_ failure: ProxyEnvironment.Failure) {
        switch failure {
        case .unsupported(let text): self = .unsupportedProxy(text)
        }
    }

    /// The server has failed, was not reached, or is silent: a kept response may stand in for its answer (RFC
    /// 5861 §4, where silence is a proxy's 504).
    var isOfServer: Bool {
        switch self {
        // A server that the program has rejected has not failed, and the program wants nothing of it.
        case .channel(let error): !error.isRejection
        case .http(let failure): failure.kind != .invalidRequest
        case .timedOut: true
        case .exceededTotalTime, .tooManyRedirects, .redirectWithoutLocation,
            .unsupportedRedirect, .canonicalRequestRefused, .unsupportedURL, .impossiblePort,
            .unusableResponse, .invalidDataURL, .unsupportedProxy, .noResponse, .program, .cancelled,
            .authenticationCancelled, .failedMutualAuthentication, .bodyStreamMissing, .unusableResumeData,
            .bodyStreamFailed, .bodyTooShort, .bodyTooLong, .file, .collectedTooMuch, .tooLongLine,
            .errorStatus, .content, .notInCache, .multipart, .noRunLoop, .upgrade:
            false
        }
    }
}

/// An error of the program's own. It stays what it was: as an `NSError` it would have lost its Swift type.
package struct ProgramError: Equatable {
    let value: any Error

    package static func == (one: ProgramError, other: ProgramError) -> Bool {
        (one.value as NSError).isEqual(other.value as NSError)
    }
}
