internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// Turns a transferred body into the content that the delegate gets: it decodes content codings, and
/// separates the parts of a `multipart/x-mixed-replace`. Content that was not transferred may pass through it
/// too.
///
/// It returns one piece at a time, so that a delegate that takes no more content also stops the decoding.
/// Used inside the gate of the load only.
final class ContentPipe {
    enum Output {
        case part(HeaderFields)
        case data(Data)
        case needMoreData
        case end
    }

    /// The codings, in the order in which they were applied.
    let codings: [ContentCoding]
    private let limits: ContentLimits
    private var decoder: ContentDecoder?
    private var parts: MultipartReader?
    /// Bytes from the decoder, or that were never encoded.
    private var decoded: [Data] = []
    private var sawEnd = false

    /// Nil if the body is the content: nothing is encoded, and there are no parts.
    static func of(
        _ head: ResponseHead, method: String, separatesParts: Bool, limits: @autoclosure () -> ContentLimits
    ) throws(ContentDecodingError) -> ContentPipe? {
        // A range of an encoded body (206) cannot be decoded by itself.
        let hasContent = method != "HEAD" && head.status != 204 && head.status != 304 && head.status != 206
        let isEncoded = hasContent && head.fields.has("Content-Encoding")
        let codings = isEncoded ? ContentCoding.codings(in: head.fields) ?? [] : []
        let boundary = (separatesParts ? head.fields.contentTypeOfParts : nil).flatMap {
            MultipartReader.boundary(ofMixedReplace: $0)
        }
        if codings.isEmpty, boundary == nil { return nil }
        return try ContentPipe(codings, boundary: boundary, limits: limits())
    }

    private init(
        _ codings: [ContentCoding], boundary: String?, limits: ContentLimits
    ) throws(ContentDecodingError) {
        self.codings = codings
        self.limits = limits
        decoder = codings.isEmpty ? nil : try ContentDecoder(codings, limits: limits)
        parts = boundary.map { MultipartReader(boundary: $0) }
    }

    /// Makes a pipe for content that is already here as a whole.
    init(whole content: Data) {
        codings = []
        limits = ContentLimits()
        decoder = nil
        decoded = content.isEmpty ? [] : [content]
        sawEnd = true
    }

    /// Decodes only that many codings, the ones applied last. Call it before any bytes have come.
    func undo(_ count: Int) throws(ContentDecodingError) {
        guard count < codings.count else { return }
        decoder = count == 0 ? nil : try ContentDecoder(codings.suffix(count), limits: limits)
        // Parts can only be separated in decoded content.
        parts = nil
    }

    /// Whether the content may differ in length from the transferred body.
    var changesLength: Bool { decoder != nil }
    var hasParts: Bool { parts != nil }

    func receive(_ data: Data) {
        if let decoder { decoder.receive(data) } else { decoded.append(data) }
    }

    func receiveEnd() {
        sawEnd = true
        decoder?.receiveEnd()
    }

    func next() throws(LoadFailure) -> Output {
        guard parts != nil else { return try nextContent() }
        while true {
            switch try nextEvent() {
            case .part(let fields): return .part(fields)
            case .data(let data): return .data(data)
            case .partEnd: continue
            case .end: return .end
            case .needMoreData:
                switch try nextContent() {
                case .data(let data): parts?.receive(data)
                case .end: parts?.receiveEnd()
                case .needMoreData, .part: return .needMoreData
                }
            }
        }
    }

    private func nextEvent() throws(LoadFailure) -> MultipartReader.Event {
        do throws(MultipartReader.Failure) {
            return try parts?.next() ?? .end
        } catch {
            throw .multipart(error)
        }
    }

    private func nextContent() throws(LoadFailure) -> Output {
        if !decoded.isEmpty { return .data(decoded.removeFirst()) }
        guard let decoder else { return sawEnd ? .end : .needMoreData }
        do throws(ContentDecodingError) {
            switch try decoder.next() {
            case .data(let data): return .data(data)
            case .needMoreData: return .needMoreData
            case .end: return .end
            }
        } catch {
            throw .content(error)
        }
    }
}
