internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

/// Makes the tasks of a session. A value. WebSocket and stream tasks are made by extensions beside them.
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

    /// What a new task consists of.
    func parts(_ plan: TaskPlan, _ receiver: TaskReceiver) -> URLSessionTask.Parts {
        session.audience.parts(of: session, plan, receiver)
    }

    /// Takes in a new task, and tells of it.
    func made<Made: URLSessionTask>(_ task: Made) -> Made {
        if session.table.add(task) {
            task.calls?.tellCreated(task)
        } else {
            task.work.endUnborn()
        }
        return task
    }
}
