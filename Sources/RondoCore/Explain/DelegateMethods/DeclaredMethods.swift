/// A method as its class declares it: its name, and its parameters with their types, without modules.
package struct MethodSignature: Hashable, Sendable {
    /// For example `connection(_: URLConnection, didReceive: Data)`.
    package let text: String

    package init(_ text: String) { self.text = text }

    /// The name with its labels, for example `connection(_:didReceive:)`.
    package var name: String {
        text.prefix { $0 != "(" } + "(" + parameters.map { $0.label + ":" }.joined() + ")"
    }

    /// The types of its parameters.
    package var types: [String] { parameters.map(\.type) }

    private var parameters: [(label: String, type: String)] {
        Self.parameters(text.drop { $0 != "(" }.dropFirst().dropLast()).map { parameter in
            let label = parameter.prefix { $0 != ":" }
            return (String(label), parameter.dropFirst(label.count + 1).trimming(" "))
        }
    }

    /// Splits a list of parameters at the commas outside brackets.
    private static func parameters(_ list: Substring) -> [Substring] {
        var depth = 0
        return list.split { character in
            if "([<{".contains(character) { depth += 1 }
            if ")]>}".contains(character) { depth -= 1 }
            return character == "," && depth == 0
        }.map { $0.drop { $0 == " " } }
    }

    /// - Parameters:
    ///   - demangled: A symbol in the form that `swift demangle` prints.
    ///   - context: The class or protocol that should declare the method, in the same form.
    /// - Returns: Nil if the symbol is not an instance method that the class itself declares.
    init?(demangled: String, of context: String) {
        var rest = Substring(demangled)
        if rest.hasPrefix("method descriptor for ") { rest = rest.dropFirst("method descriptor for ".count) }
        // The method is in an extension in another module.
        if rest.hasPrefix("(extension in "), let colon = rest.firstIndex(of: ":") {
            rest = rest[rest.index(after: colon)...]
        }
        if rest.hasPrefix(context + ".") {
            rest = rest.dropFirst(context.count + 1)
        } else if rest.hasSuffix(" in " + context) {
            // The class is declared in a function.
        } else {
            return nil
        }
        let name = rest.prefix { $0 != "(" }
        guard !name.isEmpty, !name.contains(where: { " .".contains($0) }) else { return nil }
        var depth = 0
        guard
            let end = rest.firstIndex(where: { character in
                if character == "(" { depth += 1 }
                if character == ")" { depth -= 1 }
                return character == ")" && depth == 0
            })
        else { return nil }
        // If no parameter has a label, the demangler omits the underscores.
        let list = Self.parameters(rest[...end].drop { $0 != "(" }.dropFirst().dropLast()).map { parameter in
            let label = parameter.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
            let isLabelled = parameter.dropFirst(label.count).hasPrefix(": ")
            return isLabelled ? parameter : "_: " + parameter
        }
        text = Self.simplified(name + "(" + list.joined(separator: ", ") + ")")
    }

    /// The type without its module: `Foundation.Data` becomes `Data`, `Optional<Data>` becomes `Data?`.
    /// Without "any" and "@Sendable" too, which make no other method of it.
    private static func simplified(_ text: String) -> String {
        var result = ""
        var word = ""
        for character in text {
            if character.isLetter || character.isNumber || character == "_" {
                word.append(character)
            } else if character == "." {
                word = ""
            } else {
                result += word
                word = ""
                result.append(character)
            }
        }
        result = (result + word).replacingOccurrences(of: "any ", with: "")
            .replacingOccurrences(of: "@Sendable ", with: "")
        while let optional = result.range(of: "Optional<") {
            var depth = 1
            let inside = result[optional.upperBound...].prefix { character in
                if character == "<" { depth += 1 }
                if character == ">" { depth -= 1 }
                return depth > 0
            }
            guard inside.endIndex < result.endIndex else { break }
            result.replaceSubrange(optional.lowerBound...inside.endIndex, with: inside + "?")
        }
        return result
    }
}

extension Substring {
    fileprivate func trimming(_ character: Character) -> String {
        String(drop { $0 == character })
    }
}

/// Looks up the methods that classes declare themselves. Keeps the symbols that it has read for the next
/// class.
struct DeclaredMethods {
    private var images = ProgramImages()
    /// The symbols of files, by the address of the file's first byte.
    private var files: [UInt: ProgramSymbols?] = [:]

    /// The methods that `type` declares, without those of its superclasses.
    ///
    /// - Returns: Nil if the program's symbols do not contain the class.
    mutating func of(_ type: AnyClass) -> Set<MethodSignature>? {
        // Safe: every Swift class on Linux has a pointer to its descriptor at this offset
        // (docs/ABI/TypeMetadata.rst, "Class Metadata", without the fields for Objective-C), and a class
        // lives as long as the process.
        let descriptor = unsafeBitCast(type, to: UnsafeRawPointer.self)
            .load(fromByteOffset: Self.descriptorOffset, as: UnsafeRawPointer?.self)
        guard let descriptor, let symbols = symbols(around: descriptor),
            let name = symbols.name(at: UInt(bitPattern: descriptor), ending: Self.descriptorEnding)
        else { return nil }
        return Self.methods(in: symbols, descriptor: name, ending: Self.descriptorEnding)
    }

    /// The requirements of a protocol of this program, by the mangled name of its descriptor.
    mutating func ofProtocol(mangled name: String, near address: UnsafeRawPointer) -> Set<MethodSignature>? {
        symbols(around: address).map { Self.methods(in: $0, descriptor: name, ending: "Mp") }
    }

    private static func methods(
        in symbols: ProgramSymbols, descriptor: String, ending: String
    ) -> Set<MethodSignature> {
        guard let context = demangled(descriptor)?.dropDescription else { return [] }
        // Methods (F), and their entries in the table of methods that a subclass can override (Tq): a release
        // build has only the second if nothing calls the method.
        let names = symbols.names(beginningWith: String(descriptor.dropLast(ending.count)))
            .filter { $0.hasSuffix("F") || $0.hasSuffix("FTq") }
        return Set(
            names.compactMap { demangled($0) }.compactMap { MethodSignature(demangled: $0, of: context) })
    }

    private mutating func symbols(around address: UnsafeRawPointer) -> ProgramSymbols? {
        var image = images.image(around: UInt(bitPattern: address))
        if image == nil {
            // The file was loaded after the map was read.
            images = ProgramImages()
            image = images.image(around: UInt(bitPattern: address))
        }
        guard let image else { return nil }
        if let known = files[image.base] { return known }
        let symbols = ProgramSymbols(path: image.path, base: image.base)
        files[image.base] = .some(symbols)
        return symbols
    }

    /// The offset, in bytes, from the beginning of a class's metadata.
    private static let descriptorOffset = 40
    private static let descriptorEnding = "Mn"

    private static func demangled(_ name: String) -> String? {
        var name = name
        return name.withUTF8 { bytes -> String? in
            let printed = bytes.withMemoryRebound(to: CChar.self) {
                swiftDemangle($0.baseAddress, UInt($0.count), nil, nil, 0)
            }
            guard let printed else { return nil }
            defer { free(printed) }
            return String(cString: printed)
        }
    }
}

extension String {
    /// Drops the description before the name: "nominal type descriptor for Main.A" becomes "Main.A".
    fileprivate var dropDescription: String? {
        range(of: " descriptor for ").map { String(self[$0.upperBound...]) }
    }
}

/// `swift_demangle` of Swift's runtime (swift/Demangling/Demangle.h), which no module declares. The caller
/// frees the result.
@_silgen_name("swift_demangle")
private func swiftDemangle(
    _ mangledName: UnsafePointer<CChar>?, _ length: UInt, _ output: UnsafeMutablePointer<CChar>?,
    _ outputSize: UnsafeMutablePointer<UInt>?, _ flags: UInt32
) -> UnsafeMutablePointer<CChar>?
