package import FoundationNetworking
package import RondoCore

/// The contents of a session's resume data (rules US-63 and US-64): the file with the bytes so far, and how
/// to request the rest.
///
/// They are encoded as a property list. They include the request's fields that the program set, since the
/// server may need them again: those of the resumption, without any that the session has added.
package struct ResumeData: Codable, Sendable {
    let resumption: DownloadResumption
    /// The name of the file in the directory for temporary files.
    let file: String

    private enum CodingKeys: CodingKey {
        case resumption, file
    }

    /// The key of the request's fields in data of earlier versions, which kept them beside the resumption.
    private enum EarlierKeys: CodingKey {
        case fields
    }

    init(_ resumption: DownloadResumption, file: String) {
        self.resumption = resumption
        self.file = file
    }

    package init(from decoder: any Decoder) throws {
        let list = try decoder.container(keyedBy: CodingKeys.self)
        let earlier = try decoder.container(keyedBy: EarlierKeys.self)
        var resumption = try list.decode(DownloadResumption.self, forKey: .resumption)
        if let fields = try earlier.decodeIfPresent([String: String].self, forKey: .fields) {
            resumption.fields = fields
        }
        self.init(resumption, file: try list.decode(String.self, forKey: .file))
    }

    /// Nil if `data` is not such a list.
    package init?(_ data: Data) {
        guard let decoded = try? PropertyListDecoder().decode(Self.self, from: data),
            decoded.resumption.bytes > 0,
            decoded.resumption.validator.utf8.allSatisfy(DownloadResumption.isPlain),
            ["http", "https"].contains(decoded.resumption.url.scheme?.lowercased())
        else { return nil }
        self = decoded
    }

    /// The request for the whole file.
    package var request: URLRequest { resumption.requestForWhole }

    /// Whether redirects have led to another origin than the first request's, for which the configuration was
    /// made.
    package var leftOrigin: Bool { resumption.leftOrigin ?? false }

    /// Whether a field of a session's configuration may be added to the request.
    package func mayAdd(_ field: String) -> Bool { !leftOrigin || !RedirectedRequest.isForOneOrigin(field) }

    /// Opens the file to continue; nil if it is gone, or in use by another download: then the whole is
    /// requested.
    package func open() -> PartialDownload? {
        do throws(SystemError) {
            return PartialDownload(try DownloadFile(reopening: file, at: resumption.bytes), resumption)
        } catch {
            return nil
        }
    }
}

/// A partial download with its file, which is removed with this object unless it is kept.
package final class PartialDownload: Sendable {
    let file: DownloadFile
    let resumption: DownloadResumption

    init(_ file: DownloadFile, _ resumption: DownloadResumption) {
        self.file = file
        self.resumption = resumption
    }

    /// Keeps the file beyond this object.
    ///
    /// - Parameters:
    ///   - added: Fields that the session has added to the request. They are left out, since the session that
    ///     resumes adds its own.
    ///   - isAsked: Whether the program has asked for the resume data; otherwise the file may be removed
    ///     later (`KeptDownloads`).
    /// - Returns: The resume data; nil if the file could not be kept.
    package func keep(without added: [(name: String, value: String)], isAsked: Bool) -> Data? {
        guard let name = file.keep(isAsked: isAsked) else { return nil }
        var own = resumption
        own.fields = own.fields?.filter { name, value in
            !added.contains { $0.name.caseInsensitiveCompare(name) == .orderedSame && $0.value == value }
        }
        return ResumeData(own, file: name).binaryPropertyList
    }

    /// `request` for the rest only, or for the whole if the file has changed on the server.
    package func askingForRest(_ request: URLRequest) -> URLRequest {
        resumption.askingForRest(request)
    }
}
