import Rondo
import RondoTestSupport

/// A delegate that answers the load's questions itself, and has a `Recorder` note what is delivered.
protocol Recording: URLConnectionDataDelegate {
    var recorder: Recorder { get }
}

extension Recording {
    func connection(_ connection: URLConnection, didReceive response: URLResponse) {
        recorder.connection(connection, didReceive: response)
    }

    func connection(_ connection: URLConnection, didReceive data: Data) {
        recorder.connection(connection, didReceive: data)
    }

    func connectionDidFinishLoading(_ connection: URLConnection) {
        recorder.connectionDidFinishLoading(connection)
    }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) {
        recorder.connection(connection, didFailWithError: error)
    }
}

/// A delegate that has no new stream to give, and notes that it was asked for one, and how its load has ended.
///
/// The class of each `User` is met for the first time by that suite: what is remembered of one says nothing of another.
final class StreamRefuser<User>: NSObject, URLConnectionDataDelegate, Sendable {
    let log = EventLog()

    func connection(_ connection: URLConnection, needNewBodyStream request: URLRequest) -> InputStream? {
        log.note("asked")
        return nil
    }

    func connectionDidFinishLoading(_ connection: URLConnection) { log.note("finish") }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) {
        log.note("fail \((error as? URLError)?.errorCode ?? 0)")
    }
}
