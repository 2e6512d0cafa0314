internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

/// What a task sends, or goes on with, in the place of what its request says.
enum TaskContent: Sendable {
    case ofRequest
    /// These bytes are the body (rule US-59).
    case data(Data)
    /// This file is the body.
    case file(URL)
    /// The delegate is asked for a stream before each sending (rule US-60).
    case streamed
    /// A download that has come in part (rule US-64); nil: the resume data are of no use.
    case rest(ResumeData?)

    /// `request` as far as it is known before the task begins.
    func prepare(_ request: URLRequest) -> URLRequest {
        switch self {
        case .ofRequest, .rest: return request
        case .data(let data):
            var upload = request
            upload.httpBodyStream = nil
            upload.httpBody = data
            return upload
        // Without the body that the request may have; the file is looked at when the task begins.
        case .file:
            var upload = request
            upload.httpBodyStream = nil
            upload.httpBody = nil
            return upload
        case .streamed: return UploadBody.streamed(request)
        }
    }

    /// What a task begins with.
    struct Order {
        var request: URLRequest
        /// What an earlier download has left.
        var earlier: PartialDownload?
        /// The task fails at once.
        var failure: LoadFailure?
    }

    /// Called when the task begins.
    ///
    /// - Parameter request: As `prepare(_:)` has made it.
    func order(_ request: URLRequest) -> Order {
        switch self {
        case .ofRequest, .data, .streamed: return Order(request: request)
        case .file(let url):
            do throws(LoadFailure) {
                return Order(request: try UploadBody.file(url, of: request))
            } catch {
                return Order(request: request, failure: error)
            }
        case .rest(nil): return Order(request: request, failure: .unusableResumeData)
        case .rest(let data?):
            guard let earlier = data.open() else { return Order(request: request) }
            return Order(request: earlier.askingForRest(request), earlier: earlier)
        }
    }

    var isRest: Bool { if case .rest = self { true } else { false } }

    /// A request to nowhere, of a task that fails when it begins.
    static var noRequest: URLRequest {
        var request = URLRequest(url: URL(fileURLWithPath: "/"))
        request.url = nil
        return request
    }
}
