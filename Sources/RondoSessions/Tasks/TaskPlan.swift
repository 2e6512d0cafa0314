internal import FoundationNetworking
internal import RondoCore

/// What kind of task it is.
enum TaskKind: Sendable {
    case data, upload, download, stream, webSocket
}

/// What a task is to do, as it was made.
struct TaskPlan: Sendable {
    let kind: TaskKind
    /// As it was given; nil: the task fails when it begins.
    let request: URLRequest?
    let content: TaskContent
    /// Of a WebSocket task.
    let webSocket: WebSocketLink?
    /// Of a stream task.
    let stream: StreamLink?
    /// An async function waits for it: its own delegate hears of the content, and no other (rule US-83).
    let isAwaited: Bool

    /// What errors name.
    var url: URL? { request?.url ?? stream?.url }

    init(
        _ kind: TaskKind, _ request: URLRequest?, _ content: TaskContent = .ofRequest,
        webSocket: WebSocketLink? = nil, stream: StreamLink? = nil, isAwaited: Bool = false
    ) {
        self.kind = kind
        self.request = request
        self.content = content
        self.webSocket = webSocket
        self.stream = stream
        self.isAwaited = isAwaited
    }
}
