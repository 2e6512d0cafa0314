internal import FoundationNetworking
internal import RondoCore

// How a session makes stream tasks.

extension URLSession {
    /// A TCP connection to a host, which is looked up when the task is resumed.
    ///
    /// - Parameters:
    ///   - hostname: A name or an address.
    ///   - port: 1…65,535; with another one the task fails with `URLError.badURL` when it is resumed.
    public func streamTask(withHostName hostname: String, port: Int) -> URLSessionStreamTask {
        making.stream(host: hostname, port: port)
    }
}

extension TaskMaking {
    /// The connection to a host, which the task makes itself.
    func stream(host: String, port: Int) -> URLSessionStreamTask {
        let link = StreamLink(host: host, port: port, driver: session.engine.driver)
        return made(stream(over: link))
    }

    /// One that the session does not know yet.
    func stream(over link: StreamLink) -> URLSessionStreamTask {
        URLSessionStreamTask(parts(TaskPlan(.stream, nil, stream: link), .delegate), link)
    }
}
