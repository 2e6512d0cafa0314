/// Objects of other modules that belong to one loop: one of a kind, used by the loop's thread only and released when that
/// ends.
struct LoopStorage {
    private var objects: [(kind: ObjectIdentifier, object: AnyObject)] = []

    /// - Parameter make: Called where there is none of that kind yet.
    mutating func object(_ kind: ObjectIdentifier, _ make: () -> AnyObject) -> AnyObject {
        // There are two or three kinds: to look at each is quicker than to hash.
        for entry in objects where entry.kind == kind { return entry.object }
        let object = make()
        objects.append((kind, object))
        return object
    }

    mutating func takeAll() -> [AnyObject] {
        defer { objects = [] }
        return objects.map(\.object)
    }
}

extension RunLoop {
    /// The object of `type` that belongs to the calling thread's loop.
    ///
    /// - Parameter make: Makes it on first use; it uses no storage itself.
    /// - Returns: Nil: the thread has no loop, or its loop is ending.
    package static func stored<Object: AnyObject>(_ type: Object.Type, _ make: () -> Object) -> Object? {
        guard let loop = existingLoop, !loop.owner.isEnding else { return nil }
        let object = loop.owner.storage.object(ObjectIdentifier(type), make)
        return unsafeDowncast(object, to: type)
    }
}
