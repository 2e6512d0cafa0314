/// A reference to a task that only the program keeps alive.
struct WeakTask {
    weak var task: URLSessionTask?
}
