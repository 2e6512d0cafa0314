internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

// What a session does for its tasks.

extension URLSession {
    func makeDataTask(_ request: URLRequest, _ receiver: TaskReceiver) -> URLSessionDataTask {
        made(URLSessionDataTask(TaskWork(self, request, .data, receiver)))
    }

    func makeUploadTask(
        _ request: URLRequest?, _ content: TaskContent, _ receiver: TaskReceiver = .delegate
    ) -> URLSessionUploadTask {
        made(URLSessionUploadTask(TaskWork(self, request, .upload, receiver, content)))
    }

    func makeDownloadTask(
        _ request: URLRequest?, _ content: TaskContent = .ofRequest, _ receiver: TaskReceiver = .delegate
    ) -> URLSessionDownloadTask {
        made(URLSessionDownloadTask(TaskWork(self, request, .download, receiver, content)))
    }

    func makeDownloadTask(resuming data: Data, _ receiver: TaskReceiver) -> URLSessionDownloadTask {
        let resumeData = ResumeData(data)
        return makeDownloadTask(resumeData?.request, .rest(resumeData), receiver)
    }

    /// Takes in a new task, and tells of it.
    func made<Made: URLSessionTask>(_ task: Made) -> Made {
        if table.add(task) {
            task.work.tellCreated(task)
        } else {
            task.work.endUnborn(task)
        }
        return task
    }

    // MARK: - Invalidation

    func invalidate(cancelsAll: Bool) {
        guard !isShared else { return }
        let (unresumed, running) = table.invalidate()
        for task in unresumed { task.cancel() }
        if cancelsAll { for task in running { task.cancel() } }
        pool.renew()
        becomeInvalidIfDone()
    }

    /// The last call of `task` has returned.
    func taskDidEnd(_ task: URLSessionTask) {
        table.remove(task)
        becomeInvalidIfDone()
    }

    private func becomeInvalidIfDone() {
        guard table.takeEnd() else { return }
        pool.retire()
        driver.perform { [self] in
            delegateObject?.base.urlSession(self, didBecomeInvalidWithError: nil)
            letGoOfDelegate()
        }
    }
}
