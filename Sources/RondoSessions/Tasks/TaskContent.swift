internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

/// The body that a task sends, or the part that a download has already, in place of the request's own body.
enum TaskContent: Sendable {
    case ofRequest
    /// These bytes are the body (rule US-59).
    case data(Data)
    /// This file is the body.
    case file(URL)
    /// The delegate is asked for a stream before each sending (rule US-60).
    case streamed
    /// A download that has arrived in part (rule US-64); nil if the resume data cannot be used.
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
        // The request's own body is dropped; the file is examined when the task begins.
        case .file:
            var upload = request
            upload.httpBodyStream = nil
            upload.httpBody = nil
            return upload
        case .streamed: return UploadBody.streamed(request)
        }
    }

    /// The request, earlier part and error that a task begins with.
    struct Order {
        var request: URLRequest
        /// The part that an earlier download has saved.
        var earlier: PartialDownload?
        /// An error that ends the task at once.
        var failure: LoadFailure?
    }

    /// Makes the order when the task begins.
    ///
    /// - Parameter request: The result of `prepare(_:)`.
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

    /// Whether a field of the session's configuration may be added to the request.
    func mayAdd(_ field: String) -> Bool {
        if case .rest(let data?) = self { data.mayAdd(field) } else { true }
    }

    /// The settings of the session, as they hold for the request.
    func settings(_ session: LoadSettings) -> LoadSettings {
        if case .rest(let data?) = self, data.leftOrigin { session.elsewhere } else { session }
    }

    var isRest: Bool { if case .rest = self { true } else { false } }

    /// A request without a URL, for a task that fails when it begins.
    static var noRequest: URLRequest {
        var request = URLRequest(url: URL(fileURLWithPath: "/"))
        request.url = nil
        return request
    }
}
