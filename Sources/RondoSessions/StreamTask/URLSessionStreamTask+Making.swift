internal import FoundationNetworking
internal import RondoCore

// Creation of stream tasks.

extension URLSession {
    /// Makes a task for a TCP connection to a host. The host is looked up when the task is resumed
    /// (rule US-89).
    ///
    /// - Parameters:
    ///   - hostname: A name or an address.
    ///   - port: 1 to 65,535; with any other number the task fails with `URLError.badURL` when it is
    ///     resumed.
    public func streamTask(withHostName hostname: String, port: Int) -> URLSessionStreamTask {
        making.stream(host: hostname, port: port)
    }
}

extension TaskMaking {
    /// Makes a task that opens its own connection to the host.
    func stream(host: String, port: Int) -> URLSessionStreamTask {
        let shared = StreamTaskState(host: host, port: port, schedule: session.engine.schedule)
        return made(stream(over: shared))
    }

    /// Makes a task that has not been added to the session yet.
    func stream(over shared: StreamTaskState) -> URLSessionStreamTask {
        URLSessionStreamTask(parts(TaskPlan(.stream, nil, stream: shared), .delegate), shared)
    }
}
