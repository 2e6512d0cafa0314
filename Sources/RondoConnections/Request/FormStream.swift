internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// A stream of the segments of a form, one after the other. It has bytes available until its end.
final class FormStream: Foundation.InputStream {
    private let form: [MultipartForm.Segment]
    /// What is still to be read of the form.
    private var segments: [MultipartForm.Segment]
    /// The number of bytes of the first segment that were read.
    private var position: Int64 = 0
    private var file: FileHandle?
    private var status = Status.notOpen
    private var failure: (any Error)?

    init(_ segments: [MultipartForm.Segment]) {
        form = segments
        self.segments = segments
        super.init(data: Data())
    }

    /// A new stream of the same form, from its start.
    func reopened() -> FormStream { FormStream(form) }

    override var streamStatus: Status { status }
    override var streamError: (any Error)? { failure }
    override var hasBytesAvailable: Bool { status == .open }

    override func open() {
        guard status == .notOpen else { return }
        status = .open
        skipEmptySegments()
    }

    override func close() {
        try? file?.close()  // it was only read
        file = nil
        segments = []
        status = .closed
    }

    override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>
    ) -> Bool { false }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        guard status == .open, let segment = segments.first else { return status == .error ? -1 : 0 }
        let wanted = Int(min(Int64(maxLength), segment.length - position))
        do {
            let piece: Data
            switch segment {
            case .bytes(let data):
                let start = data.startIndex + Int(position)
                piece = data[start..<start + wanted]
            case .file(let path, let offset, _):
                piece = try read(path, from: offset, wanted)
            }
            piece.copyBytes(to: buffer, count: piece.count)
            position += Int64(piece.count)
            if position == segment.length { nextSegment() }
            return piece.count
        } catch {
            failure = error
            status = .error
            return -1
        }
    }

    private func read(_ path: String, from offset: Int64, _ count: Int) throws -> Data {
        if file == nil {
            let opened = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
            try opened.seek(toOffset: UInt64(offset))
            file = opened
        }
        guard let piece = try file?.read(upToCount: count), !piece.isEmpty else {
            // The file has become shorter, after its length was announced.
            throw CocoaError(.fileReadCorruptFile, userInfo: [NSFilePathErrorKey: path])
        }
        return piece
    }

    private func nextSegment() {
        try? file?.close()  // it was only read
        file = nil
        position = 0
        segments.removeFirst()
        skipEmptySegments()
    }

    private func skipEmptySegments() {
        while let first = segments.first, first.length == 0 { segments.removeFirst() }
        if segments.isEmpty { status = .atEnd }
    }
}
