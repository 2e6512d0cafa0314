internal import FoundationNetworking
internal import RondoCore

// Creation of WebSocket tasks.

extension TaskMaking {
    func webSocket(_ request: URLRequest, protocols: [String]) -> URLSessionWebSocketTask {
        let shared = WebSocketTaskState(protocols: protocols, schedule: session.engine.schedule)
        return made(
            URLSessionWebSocketTask(
                parts(TaskPlan(.webSocket, request, webSocket: shared), .delegate), shared))
    }
}
