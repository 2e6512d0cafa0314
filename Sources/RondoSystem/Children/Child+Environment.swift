internal import CRondoSystem
internal import Glibc
internal import RondoCore

extension Child.Environment {
    /// The variables as "NAME=value"; nil means the parent's variables, unchanged.
    var variables: [String]? {
        switch kind {
        case .inherited: return nil
        case .exactly(let variables): return variables.map { "\($0)=\($1)" }
        case .changed(let changes):
            var variables = ProcessInfo.processInfo.environment
            for (name, value) in changes { variables[name] = value }
            return variables.map { "\($0)=\($1)" }
        }
    }

    /// The PATH of the child's environment if one was given, otherwise the parent's (rule CH-20).
    var searchPath: String? {
        switch kind {
        case .inherited: Self.parentsPath
        case .exactly(let variables): variables["PATH"]
        case .changed(let changes):
            changes.keys.contains("PATH") ? changes["PATH"] ?? nil : Self.parentsPath
        }
    }

    private static var parentsPath: String? { getenv("PATH").map { String(cString: $0) } }
}

extension Child.Group {
    var forSpawner: rondo_spawn_group {
        switch kind {
        case .parents: rondo_spawn_group_parents
        case .own: rondo_spawn_group_own
        case .session: rondo_spawn_group_session
        }
    }
}
