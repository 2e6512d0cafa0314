extension Child {
    /// Starts a program, and returns when it runs (rule CH-1).
    ///
    /// - Parameter configuration: Is read once.
    /// - Throws: The reason of the failure, with the program or directory. There is no child then.
    public static func spawn(_ configuration: Configuration) throws(ChildError) -> Child {
        let pipes = try ChildPipes(configuration)
        // By now the child has inherited its ends, or there is no child.
        defer { pipes.closeChildEnds() }
        let spawner = Spawner(configuration, descriptors: pipes.descriptors)
        return Child(try spawner.spawn(), configuration, pipes)
    }

    /// Starts a program, and returns when it runs; see `Configuration` for further options.
    ///
    /// - Parameters:
    ///   - program: A path, or a name without a slash, which is searched in PATH (rule CH-20).
    ///   - arguments: The arguments after the program's name.
    /// - Throws: The reason of the failure, with the program or directory. There is no child then.
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
