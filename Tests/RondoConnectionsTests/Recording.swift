import Rondo

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
