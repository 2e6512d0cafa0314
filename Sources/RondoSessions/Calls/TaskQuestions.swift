internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoStreams

// The questions that a task puts to its delegates.

/// A delegate's reply to a challenge.
///
/// `@unchecked Sendable`: a credential is immutable.
struct ChallengeVerdict: @unchecked Sendable {
    let disposition: URLSession.AuthChallengeDisposition
    let credential: URLCredential?

    init(_ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?) {
        self.disposition = disposition
        self.credential = credential
    }
}

/// A body stream from a delegate.
///
/// `@unchecked Sendable`: it is handed over once; the delegate must not use the stream afterwards.
struct GivenBodyStream: @unchecked Sendable {
    let stream: RondoStreams.InputStream?
}

extension Question where Value == ChallengeVerdict {
    /// Asks the session-level method, for challenges of TLS.
    static func session(_ session: URLSession, _ challenge: URLAuthenticationChallenge) -> Self {
        Question(
            name: "urlSession(_:didReceive:completionHandler:)", method: .sessionChallenge,
            asyncMethod: .sessionChallengeAsync
        ) { delegate, reply in
            delegate.base.urlSession(session, didReceive: challenge) { reply(ChallengeVerdict($0, $1)) }
            return true
        } callAsync: { delegate in
            let (disposition, credential) = await delegate.base.urlSession(session, didReceive: challenge)
            return ChallengeVerdict(disposition, credential)
        }
    }

    /// Asks the task-level method.
    static func task(
        _ session: URLSession, _ task: URLSessionTask, _ challenge: URLAuthenticationChallenge
    ) -> Self {
        Question(
            name: "urlSession(_:task:didReceive:completionHandler:)", method: .taskChallenge,
            asyncMethod: .taskChallengeAsync
        ) { delegate, reply in
            guard let delegate = delegate.task else { return false }
            delegate.urlSession(session, task: task, didReceive: challenge) {
                reply(ChallengeVerdict($0, $1))
            }
            return true
        } callAsync: { delegate in
            guard let delegate = delegate.task else { return nil }
            let (disposition, credential) = await delegate.urlSession(
                session, task: task, didReceive: challenge)
            return ChallengeVerdict(disposition, credential)
        }
    }
}

extension Question where Value == URLRequest? {
    static func redirect(
        _ session: URLSession, _ task: URLSessionTask, _ response: HTTPURLResponse, _ request: URLRequest
    ) -> Self {
        Question(
            name: "urlSession(_:task:willPerformHTTPRedirection:newRequest:completionHandler:)",
            method: .redirect, asyncMethod: .redirectAsync
        ) { delegate, reply in
            guard let delegate = delegate.task else { return false }
            delegate.urlSession(
                session, task: task, willPerformHTTPRedirection: response, newRequest: request,
                completionHandler: reply)
            return true
        } callAsync: { delegate in
            guard let delegate = delegate.task else { return nil }
            return .some(
                await delegate.urlSession(
                    session, task: task, willPerformHTTPRedirection: response, newRequest: request))
        }
    }
}

extension Question where Value == GivenBodyStream {
    static func bodyStream(_ session: URLSession, _ task: URLSessionTask) -> Self {
        Question(
            name: "urlSession(_:task:needNewBodyStream:)", method: .bodyStream, asyncMethod: .bodyStreamAsync
        ) { delegate, reply in
            guard let delegate = delegate.task else { return false }
            delegate.urlSession(
                session, task: task, needNewBodyStream: { reply(GivenBodyStream(stream: $0)) })
            return true
        } callAsync: { delegate in
            guard let delegate = delegate.task else { return nil }
            return GivenBodyStream(stream: await delegate.urlSession(session, needNewBodyStreamForTask: task))
        }
    }
}

extension Question where Value == URLSession.ResponseDisposition {
    static func response(_ session: URLSession, _ task: URLSessionDataTask, _ response: URLResponse) -> Self {
        Question(
            name: "urlSession(_:dataTask:didReceive:completionHandler:)", method: .response,
            asyncMethod: .responseAsync
        ) { delegate, reply in
            guard let delegate = delegate.data else { return false }
            delegate.urlSession(session, dataTask: task, didReceive: response, completionHandler: reply)
            return true
        } callAsync: { delegate in
            guard let delegate = delegate.data else { return nil }
            return await delegate.urlSession(session, dataTask: task, didReceive: response)
        }
    }
}

extension Question where Value == CachedURLResponse? {
    static func willCache(
        _ session: URLSession, _ task: URLSessionDataTask, _ response: CachedURLResponse
    ) -> Self {
        Question(
            name: "urlSession(_:dataTask:willCacheResponse:completionHandler:)", method: .willCache,
            asyncMethod: .willCacheAsync
        ) { delegate, reply in
            guard let delegate = delegate.data else { return false }
            delegate.urlSession(
                session, dataTask: task, willCacheResponse: response, completionHandler: reply)
            return true
        } callAsync: { delegate in
            guard let delegate = delegate.data else { return nil }
            return .some(await delegate.urlSession(session, dataTask: task, willCacheResponse: response))
        }
    }
}
