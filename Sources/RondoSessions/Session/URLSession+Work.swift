internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

// What a session does for its tasks.

extension URLSession {
    func makeDataTask(_ request: URLRequest, _ receiver: TaskReceiver) -> URLSessionDataTask {
        made(URLSessionDataTask(parts(TaskPlan(.data, request), receiver)))
    }

    func makeUploadTask(
        _ request: URLRequest?, _ content: TaskContent, _ receiver: TaskReceiver = .delegate
    ) -> URLSessionUploadTask {
        made(URLSessionUploadTask(parts(TaskPlan(.upload, request, content), receiver)))
    }

    func makeDownloadTask(
        _ request: URLRequest?, _ content: TaskContent = .ofRequest, _ receiver: TaskReceiver = .delegate
    ) -> URLSessionDownloadTask {
        made(URLSessionDownloadTask(parts(TaskPlan(.download, request, content), receiver)))
    }

    func makeDownloadTask(resuming data: Data, _ receiver: TaskReceiver) -> URLSessionDownloadTask {
        let resumeData = ResumeData(data)
        return makeDownloadTask(resumeData?.request, .rest(resumeData), receiver)
    }

    /// What a new task consists of.
    func parts(_ plan: TaskPlan, _ receiver: TaskReceiver) -> URLSessionTask.Parts {
        audience.parts(of: self, plan, receiver)
    }

    /// Takes in a new task, and tells of it.
    func made<Made: URLSessionTask>(_ task: Made) -> Made {
        if table.add(task) {
            task.calls?.tellCreated(task)
        } else {
            task.work.endUnborn()
        }
        return task
    }

    // MARK: - Invalidation

    func invalidate(cancelsAll: Bool) {
        guard !engine.isShared else { return }
        let (unresumed, running) = table.invalidate()
        for task in unresumed { task.cancel() }
        if cancelsAll { for task in running { task.cancel() } }
        engine.pool.renew()
        becomeInvalidIfDone()
    }

    /// The last call of the task has returned.
    func taskDidEnd(_ identifier: Int) {
        table.remove(identifier)
        becomeInvalidIfDone()
    }

    private func becomeInvalidIfDone() {
        guard table.takeEnd() else { return }
        engine.pool.retire()
        engine.driver.perform { [self] in audience.tellInvalid(self) }
    }
}
