/// A delegate protocol with optional methods.
package struct DelegateProtocol: Sendable {
    package let name: String
    package let methods: Set<MethodSignature>
    /// Whether objects of a class conform, through the class itself or a superclass.
    package let isConformedTo: @Sendable (AnyClass) -> Bool

    package init(
        _ name: String, methods: [String], isConformedTo: @escaping @Sendable (AnyClass) -> Bool
    ) {
        self.name = name
        self.methods = Set(methods.map { MethodSignature($0) })
        self.isConformedTo = isConformedTo
    }
}

/// Methods that a class intends for a delegate protocol, and that are never called.
///
/// Swift decides which methods implement a protocol where the conformance is declared: those of the
/// conforming class and its superclasses. A subclass may override these, but not add to them. A class that
/// does not conform has no method that could be called, whatever the names. On Apple's systems both work,
/// since methods are looked up by name in each object.
struct UncalledMethods {
    struct Finding: Hashable {
        let method: MethodSignature
        /// The class that has the method.
        let declaredBy: ObjectIdentifier
        let protocolName: String
        /// The class that conforms; nil if none does.
        let conforming: ObjectIdentifier?
    }

    /// - Parameters:
    ///   - line: A class, its superclass, and so on.
    ///   - declared: The methods that a class itself declares; nil if they are not known, and then nothing is
    ///     found.
    static func find(
        line: [AnyClass], protocols: [DelegateProtocol],
        declared: (AnyClass) -> Set<MethodSignature>?
    ) -> [Finding] {
        var methods: [Set<MethodSignature>] = []
        for type in line {
            guard let own = declared(type) else { return [] }
            methods.append(own)
        }
        let conforming = protocols.map { line.lastIndex(where: $0.isConformedTo) }
        let conformsToNone = conforming.allSatisfy { $0 == nil }
        var findings: [Finding] = []
        // When only names are compared, a method may match several protocols.
        var named = Set<MethodSignature>()
        for (kind, top) in zip(protocols, conforming) {
            let called = top.map { methods[$0...].reduce(Set()) { $0.union($1) } } ?? []
            let names = Set(kind.methods.map(\.name))
            // From the topmost class down, so that a method is reported where it is introduced, not where it
            // is overridden.
            var found = named
            for index in line.indices.prefix(top ?? line.count).reversed() {
                let own = methods[index].filter { method in
                    kind.methods.contains(method) || conformsToNone && names.contains(method.name)
                }.subtracting(called).subtracting(found)
                found.formUnion(own)
                findings += own.sorted { $0.text < $1.text }.map { method in
                    Finding(
                        method: method, declaredBy: ObjectIdentifier(line[index]), protocolName: kind.name,
                        conforming: top.map { ObjectIdentifier(line[$0]) })
                }
            }
            if conformsToNone { named = found }
        }
        return findings
    }
}
