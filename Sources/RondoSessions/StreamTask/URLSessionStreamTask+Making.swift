internal import FoundationNetworking
internal import RondoCore

// Creation of stream tasks.

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
