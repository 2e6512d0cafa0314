internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

// A body that goes to a file and breaks off is asked for again from where it broke off, where the server can
// prove that it is still the same (RFC 9110 §13.1.5). Anything but the rest itself leaves the failure as it is.

extension Loader {
    /// Times that a body is asked for again; each has to have brought something.
    static var maximumResumptions: Int { 5 }

    /// What is being asked for again, and the failure that it is for.
    struct Resuming {
        let resumption: DownloadResumption
        let failure: LoadFailure
    }

    /// - Returns: Whether the failure is taken care of.
    func resumes(after failure: LoadFailure) -> Bool {
        guard let rare else { return false }
        if let resuming = rare.resuming {
            rare.resuming = nil
            perform(state.failed(resuming.failure))
            return true
        }
        guard rare.file != nil, pipe == nil, state.deliversBody, Self.isLoss(failure),
            rare.fileLength > rare.resumedAt, rare.resumptions < Self.maximumResumptions,
            state.request.value.value(forHTTPHeaderField: "Range") == nil,
            let response = rare.fileResponse as? HTTPURLResponse,
            let resumption = DownloadResumption(
                response, bytes: rare.fileLength, method: state.request.method)
        else { return false }
        rare.resuming = Resuming(resumption: resumption, failure: failure)
        rare.resumptions += 1
        rare.resumedAt = rare.fileLength
        var request = state.request.value
        request.setValue(resumption.range, forHTTPHeaderField: "Range")
        request.setValue(resumption.validator, forHTTPHeaderField: "If-Range")
        send(LoadRequest(request), mayReuse: false)
        return true
    }

    /// The head of the rest.
    ///
    /// - Returns: False if nothing was asked for again.
    func resumed(_ head: ResponseHead) -> Bool {
        guard let rare, let resuming = rare.resuming else { return false }
        rare.resuming = nil
        guard head.status == 206, let url = state.url,
            let response = LoadedResponse(url: url, head: head, bodyLength: nil),
            resuming.resumption.offset(of: response) == rare.fileLength
        else {
            perform(state.failed(resuming.failure))
            return true
        }
        deliver(.resumed(total: rare.fileLength, expected: rare.expectedFileLength))
        return true
    }

    /// The rest of the file has come, and the whole is not as long as was announced.
    var restFailure: LoadFailure? {
        guard let rare, rare.resumptions > 0, rare.file != nil, rare.expectedFileLength > 0,
            rare.fileLength != rare.expectedFileLength
        else { return nil }
        return .http(
            .peer(.truncatedBody(expected: rare.expectedFileLength, received: rare.fileLength)))
    }

    /// The connection broke; all else would break again.
    private static func isLoss(_ failure: LoadFailure) -> Bool {
        switch failure {
        case .channel(.broken), .http(.peer(.truncatedBody)): true
        default: false
        }
    }
}
