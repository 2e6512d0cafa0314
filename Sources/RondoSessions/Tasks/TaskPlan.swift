internal import FoundationNetworking
internal import RondoCore

/// The kind of a task.
enum TaskKind: Sendable {
    case data, upload, download, stream, webSocket
}

/// The task as the program asked for it.
struct TaskPlan: Sendable {
    let kind: TaskKind
    /// The original request; nil makes the task fail when it begins.
    let request: URLRequest?
    let content: TaskContent
    /// Set for a WebSocket task.
    let webSocket: WebSocketTaskState?
    /// Set for a stream task.
    let stream: StreamTaskState?
    /// True if an async function awaits the task: only the task's own delegate gets the content (rule US-83).
    let isAwaited: Bool

    /// The URL that errors name.
    var url: URL? { request?.url ?? stream?.url }

    init(
        _ kind: TaskKind, _ request: URLRequest?, _ content: TaskContent = .ofRequest,
        webSocket: WebSocketTaskState? = nil, stream: StreamTaskState? = nil, isAwaited: Bool = false
    ) {
        self.kind = kind
        self.request = request
        self.content = content
        self.webSocket = webSocket
        self.stream = stream
        self.isAwaited = isAwaited
    }
}
