internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import Synchronization

/// The fields of a response as `HTTPURLResponse` has them: one of a name, spelled in Foundation's way.
enum ResponseFields {
    private struct Spelling {
        let received: [UInt8]
        let name: String
        /// One of those that Foundation leaves as they came.
        let isExperimental: Bool

        init(_ received: UnsafeBufferPointer<UInt8>) {
            self.received = Array(received)
            let text = String(decoding: received, as: UTF8.self)
            isExperimental = text.hasPrefix("x-") || text.hasPrefix("X-")
            if isExperimental {
                name = text
            } else {
                name = text.lowercased() == "www-authenticate" ? "WWW-Authenticate" : text.capitalized
            }
        }

        func isOf(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
            received.elementsEqual(bytes)
        }
    }

    /// Names whose spelling is remembered.
    private static let maximumRemembered = 64

    /// Of the last head, in its order: the next one often has the same names in the same places.
    private static let spellings = Mutex<[Spelling]>([])

    static func dictionary(_ head: ResponseHead) -> [String: String] {
        var fields: [String: String] = [:]
        fields.reserveCapacity(head.fields.count)
        spellings.withLock { spellings in
            var index = 0
            head.fields.forEachField { received, value in
                defer { index += 1 }
                let spelling: Spelling
                if index < spellings.count, spellings[index].isOf(received) {
                    spelling = spellings[index]
                } else {
                    spelling = Spelling(received)
                    if index < spellings.count {
                        spellings[index] = spelling
                    } else if index < maximumRemembered {
                        spellings.append(spelling)
                    }
                }
                add(value, spelling, to: &fields)
            }
        }
        return fields
    }

    private static func add(_ value: String, _ spelling: Spelling, to fields: inout [String: String]) {
        var name = spelling.name
        // In whatever case, it is one field.
        if spelling.isExperimental, fields[name] == nil {
            name = fields.keys.first { Grammar.equalIgnoringCase($0.utf8, name.utf8) } ?? name
        }
        // Fields that come again are one list (RFC 9110 §5.3).
        if let known = fields.updateValue(value, forKey: name) { fields[name] = known + ", " + value }
    }
}

/// Where an `HTTPURLResponse` keeps its fields.
///
/// Its initialiser on Linux spells every name anew, by way of NSString: 20 µs for the response to a small GET,
/// more than all else about it. A response is therefore made without fields, and given those afterwards. Where
/// they belong is not promised anywhere: it is found out once, by looking for the fields of a sample. If a
/// sample that is filled in this way is not in all equal to one that Foundation has filled, or anything else is not
/// as it was, the initialiser does it as ever.
enum ResponseFieldsPlace {
    /// Bytes from the start of the object; nil: not known.
    private static let offset: Int? = find()

    static var isKnown: Bool { offset != nil }

    /// The place must be known, and `response` of a subclass, which has it where its superclass does.
    static func put(_ fields: [String: String], into response: HTTPURLResponse) {
        guard let offset else { preconditionFailure("bug in Rondo: nobody knows where the fields are") }
        // Safe: `find` has seen a dictionary of this type there, and nobody else has the object yet.
        withExtendedLifetime(response) { write(fields, at: offset, of: response) }
    }

    private static func write(_ fields: [String: String], at offset: Int, of response: HTTPURLResponse) {
        let place = Unmanaged.passUnretained(response).toOpaque() + offset
        // An assignment: the empty dictionary that was there is let go of as any other is.
        place.assumingMemoryBound(to: [String: String].self).pointee = fields
    }

    private static func find() -> Int? {
        let fields = ["X-Sample": "one", "Content-Type": "two"]
        guard let url = URL(string: "http://sample/"),
            let sample = HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: fields),
            let empty = HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: nil),
            let kept = Mirror(reflecting: sample).descendant("_allHeaderFields") as? [String: String],
            kept == fields, MemoryLayout.size(ofValue: kept) == MemoryLayout<UInt>.size
        else { return nil }
        // The dictionary is one word, the address of its storage: `sample` has it in one of its own words.
        let word = unsafeBitCast(kept, to: UInt.self)
        let size = allocationSize(of: sample)
        let offsets = withExtendedLifetime((sample, kept)) {
            let object = Unmanaged.passUnretained(sample).toOpaque()
            return stride(from: 0, through: size - MemoryLayout<UInt>.size, by: MemoryLayout<UInt>.size)
                .filter { object.load(fromByteOffset: $0, as: UInt.self) == word }
        }
        guard offsets.count == 1, let offset = offsets.first else { return nil }
        withExtendedLifetime(empty) { write(fields, at: offset, of: empty) }
        let filled = empty.allHeaderFields as? [String: String]
        return filled == fields && empty.value(forHTTPHeaderField: "x-sample") == "one" ? offset : nil
    }
}
