internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import Synchronization

// The way of a body's bytes from the exchange to the delegate. Where nothing is encoded and there are no
// parts, there is no pipe and they go straight on.

extension Loader {
    /// Gets the pipe ready for the body behind `head`.
    ///
    /// - Returns: False if there can be none, and the load has failed.
    func openPipe(for head: ResponseHead) -> Bool {
        rare?.pipeHead = nil
        do throws(ContentDecodingError) {
            pipe = try ContentPipe.of(
                head, method: state.lastSent.method,
                limits: settings.values.contentLimits)
            if pipe?.hasParts ?? false { madeRare.pipeHead = head }
            return true
        } catch {
            perform(state.failed(.content(error)))
            return false
        }
    }

    /// The delegate wants the content in some of its codings.
    func undoCodings(_ count: Int) {
        do throws(ContentDecodingError) {
            try pipe?.undo(count)
        } catch {
            perform(state.failed(.content(error)))
        }
    }

    /// Bytes of a body, as they are transferred.
    func receivedTransferred(_ data: Data) {
        guard let pipe else { return receivedContent(data) }
        pipe.receive(data)
        drainPipe()
    }

    /// There are no more.
    func transferEnded() {
        if let failure = restFailure { return perform(state.failed(failure)) }
        guard let pipe else { return perform(state.bodyEnded()) }
        pipe.receiveEnd()
        drainPipe()
    }

    /// Hands on what the pipe holds, as far as it is taken.
    func drainPipe() {
        while let pipe, state.deliversBody, mayRead, !holdsBack {
            do throws(LoadFailure) {
                switch try pipe.next() {
                case .data(let data):
                    receivedContent(data)
                    progressedAt = now
                case .part(let fields):
                    receivedPart(fields)
                case .needMoreData:
                    return
                case .end:
                    self.pipe = nil
                    return perform(state.bodyEnded())
                }
            } catch {
                self.pipe = nil
                return perform(state.failed(error))
            }
        }
        // What comes now would only be stored.
        if pipe != nil { exchange?.pause() }
    }

    /// A part of a multipart has its own response (rule UC-22): the whole's fields, with those of the part in
    /// the place of what speaks of content.
    private func receivedPart(_ fields: HeaderFields) {
        guard let url = state.url, let whole = rare?.pipeHead else { return }
        var all = HeaderFields()
        for (name, value) in whole.fields
        where !name.lowercased().hasPrefix("content-") && !fields.contains(name) {
            all.append(name: name, value: value)
        }
        all.append(fields)
        let head = ResponseHead(
            version: whole.version, status: whole.status, reason: whole.reason, fields: all)
        guard let response = LoadedResponse(url: url, head: head, bodyLength: nil) else {
            return perform(state.failed(.unusableResponse(status: head.status)))
        }
        perform(state.received(response))
    }

    /// A piece of the content.
    private func receivedContent(_ data: Data) {
        noteContent(data)
        receivedBody(data)
    }
}
