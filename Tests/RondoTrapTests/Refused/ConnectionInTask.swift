// refused: A task has no thread of its own: use data(for:), or schedule it before start().
import Rondo

func load(_ request: URLRequest) async {
    _ = URLConnection(request: request, delegate: nil)
}
