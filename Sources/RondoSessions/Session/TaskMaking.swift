internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

/// Makes the tasks of a session. Extensions beside their classes add WebSocket and stream tasks.
struct TaskMaking {
    let session: URLSession

    func data(_ request: URLRequest, _ receiver: TaskReceiver) -> URLSessionDataTask {
        made(URLSessionDataTask(parts(TaskPlan(.data, request), receiver)))
    }

    func upload(_ request: URLRequest?, _ content: TaskContent, _ receiver: TaskReceiver = .delegate)
        -> URLSessionUploadTask
    {
        made(URLSessionUploadTask(parts(TaskPlan(.upload, request, content), receiver)))
    }

    func download(
        _ request: URLRequest?, _ content: TaskContent = .ofRequest, _ receiver: TaskReceiver = .delegate
    ) -> URLSessionDownloadTask {
        made(URLSessionDownloadTask(parts(TaskPlan(.download, request, content), receiver)))
    }

    func download(resuming data: Data, _ receiver: TaskReceiver) -> URLSessionDownloadTask {
        let resumeData = ResumeData(data)
        return download(resumeData?.request, .rest(resumeData), receiver)
    }

    /// The parts of a new task.
    func parts(_ plan: TaskPlan, _ receiver: TaskReceiver) -> URLSessionTask.Parts {
        session.client.parts(of: session, plan, receiver)
    }

    /// Adds a new task to the session and calls `urlSession(_:didCreateTask:)`. In an invalidated session the
    /// task ends at once.
    func made<Made: URLSessionTask>(_ task: Made) -> Made {
        if session.table.add(task) {
            task.calls?.tellCreated(task)
        } else {
            task.work.endBeforeStart()
        }
        return task
    }
}
