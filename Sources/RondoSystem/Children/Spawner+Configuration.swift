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
    private static func variables(_ environment: Child.Environment) -> [String]? {
        switch environment.kind {
        case .inherited: return nil
        case .exactly(let variables): return variables.map { "\($0)=\($1)" }
        case .changed(let changes):
            var variables = ProcessInfo.processInfo.environment
            for (name, value) in changes { variables[name] = value }
            return variables.map { "\($0)=\($1)" }
        }
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
