extension Child {
    /// Starts a program, and returns when it runs (rule CH-1).
    ///
    /// - Throws: What has failed, with the program or directory in it; then there is no child.
    public static func spawn(_ configuration: Configuration) throws(ChildError) -> Child {
        let pipes = try ChildPipes(configuration)
        // The child has them by then, or there is none.
        defer { pipes.closeChildEnds() }
        let spawner = Spawner(
            program: configuration.program, arguments: configuration.arguments,
            variables: configuration.environment.variables,
            searchPath: configuration.environment.searchPath,
            workingDirectory: configuration.workingDirectory, descriptors: pipes.descriptors,
            group: configuration.group.forSpawner,
            diesWithParent: configuration.diesWithParent, ignoredSignals: configuration.ignoredSignals)
        return Child(try spawner.spawn(), configuration, pipes)
    }

    /// Starts a program, and returns when it runs; for everything else that may be chosen see `Configuration`.
    ///
    /// - Parameter program: A path; or a name without a slash, which is looked for in PATH.
    public static func spawn(
        _ program: String, _ arguments: [String] = [], environment: Environment = .inherited,
        workingDirectory: String? = nil, standardInput: Input = .inherited,
        standardOutput: Output = .inherited, standardError: Output = .inherited
    ) throws(ChildError) -> Child {
        var configuration = Configuration(program, arguments)
        configuration.environment = environment
        configuration.workingDirectory = workingDirectory
        configuration.standardInput = standardInput
        configuration.standardOutput = standardOutput
        configuration.standardError = standardError
        return try spawn(configuration)
    }
}
