internal import CRondoSystem
internal import Glibc
internal import RondoCore

extension Spawner {
    /// - Parameter descriptors: Those of the configuration, and those of its streams.
    init(_ configuration: Child.Configuration, descriptors: [Int32: Int32]) {
        self.init(
            program: configuration.program, arguments: configuration.arguments,
            variables: Self.variables(configuration.environment),
            searchPath: Self.searchPath(configuration.environment),
            workingDirectory: configuration.workingDirectory, descriptors: descriptors,
            group: Self.group(configuration.group), diesWithParent: configuration.diesWithParent,
            ignoredSignals: configuration.ignoredSignals)
    }

    /// The variables as "NAME=value"; nil means the parent's variables, unchanged.
    private static func variables(_ environment: Child.Environment) -> [[UInt8]]? {
        switch environment.kind {
        case .inherited: return nil
        case .exactly(let variables): return variables.map { Array("\($0)=\($1)".utf8) }
        case .changed(let changes):
            let names = Set(changes.keys.map { Array($0.utf8) })
            let unchanged = parentsVariables.filter { variable in
                !names.contains(Array(variable.prefix { $0 != UInt8(ascii: "=") }))
            }
            return unchanged
                + changes.compactMap { name, value in value.map { Array("\(name)=\($0)".utf8) } }
        }
    }

    /// The bytes of the parent's variables, which need not be UTF-8.
    private static var parentsVariables: [[UInt8]] {
        var variables: [[UInt8]] = []
        var next = rondo_environment()
        while let place = next, let variable = place.pointee {
            variables.append(Array(UnsafeRawBufferPointer(start: variable, count: strlen(variable))))
            next = place + 1
        }
        return variables
    }

    /// The PATH of the child's environment if one was given, otherwise the parent's (rule CH-20).
    private static func searchPath(_ environment: Child.Environment) -> String? {
        switch environment.kind {
        case .inherited: parentsPath
        case .exactly(let variables): variables["PATH"]
        case .changed(let changes): changes.keys.contains("PATH") ? changes["PATH"] ?? nil : parentsPath
        }
    }

    private static var parentsPath: String? { getenv("PATH").map { String(cString: $0) } }

    private static func group(_ group: Child.Group) -> rondo_spawn_group {
        switch group.kind {
        case .parents: rondo_spawn_group_parents
        case .own: rondo_spawn_group_own
        case .session: rondo_spawn_group_session
        }
    }
}
