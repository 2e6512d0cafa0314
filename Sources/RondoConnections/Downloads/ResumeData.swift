package import FoundationNetworking
package import RondoCore

/// What a session's resume data hold (rules US-63 and US-64): the bytes of a download so far, and how to ask for the rest.
///
/// A property list. It has the fields of the request that the program set, since the server may want them again.
package struct ResumeData: Codable, Sendable {
    let resumption: DownloadResumption
    /// Of the file, which is in the folder of temporary files.
    let file: String
    /// Those of the request, but for what asks for a part.
    let fields: [String: String]

    init(_ resumption: DownloadResumption, file: String, fields: [String: String]) {
        self.resumption = resumption
        self.file = file
        self.fields = fields.filter { !["range", "if-range"].contains($0.key.lowercased()) }
    }

    /// Nil where these are no such data.
    package init?(_ data: Data) {
        guard let decoded = try? PropertyListDecoder().decode(Self.self, from: data),
            decoded.resumption.bytes > 0,
            decoded.resumption.validator.utf8.allSatisfy(DownloadResumption.isPlain),
            ["http", "https"].contains(decoded.resumption.url.scheme?.lowercased())
        else { return nil }
        self = decoded
    }

    var data: Data? {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .binary
        return try? encoder.encode(self)
    }

    /// The request for the whole.
    package var request: URLRequest {
        var request = URLRequest(url: resumption.url)
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        return request
    }

    /// The file to go on with; nil: it is gone, or in use by another download, so that the whole is asked for.
    package func open() -> PartialDownload? {
        do throws(SystemError) {
            return PartialDownload(
                try DownloadFile(kept: file, at: resumption.bytes), resumption, fields: fields)
        } catch {
            return nil
        }
    }
}

/// A download that has come in part, with its file, which is removed with this object unless it is kept.
package final class PartialDownload: Sendable {
    let file: DownloadFile
    let resumption: DownloadResumption
    private let fields: [String: String]

    init(_ file: DownloadFile, _ resumption: DownloadResumption, fields: [String: String]) {
        self.file = file
        self.resumption = resumption
        self.fields = fields
    }

    /// Has the file stay.
    ///
    /// - Returns: What leads back to it; nil: it could not be kept.
    package func keep() -> Data? {
        file.keep().flatMap { ResumeData(resumption, file: $0, fields: fields).data }
    }

    /// `request` for the rest alone, or for the whole if the file has changed on the server.
    package func askingForRest(_ request: URLRequest) -> URLRequest {
        var rest = request
        rest.setValue(resumption.range, forHTTPHeaderField: "Range")
        rest.setValue(resumption.validator, forHTTPHeaderField: "If-Range")
        return rest
    }
}
