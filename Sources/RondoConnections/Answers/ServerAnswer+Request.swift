internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The making of the request that an exchange sends.
extension ServerAnswer {
    /// The request of `attempt` as it is sent by `route`.
    func outgoingRequest(_ attempt: Attempt, by route: Route) throws(LoadFailure) -> OutgoingRequest {
        let request = attempt.request
        var draft = try settings.draft(of: request, isForProxy: route.isForProxy) { owner.isAtOrigin($0) }
        if let authenticator {
            setCredentials(of: authenticator, for: attempt, toProxy: route.isForProxy, in: &draft)
        }
        settings.jar?.setField(for: request, in: &draft.fields)
        for (name, value) in attempt.asked.cacheFields { draft.fields.set(name: name, value: value) }
        context.upgrade?.addFields(to: &draft.fields)
        return try .request(
            of: request, from: draft, stream: attempt.body, omittedFields: settings.values.omittedFields,
            usualFields: route.usualFields)
    }

    private func setCredentials(
        of authenticator: Authenticator, for attempt: Attempt, toProxy isToProxy: Bool,
        in draft: inout OutgoingRequest.Draft
    ) {
        authenticator.setFields(
            method: attempt.request.method, target: draft.target,
            toProxy: isToProxy ? draft.sentTarget : nil, in: &draft.fields
        ) { hash in
            attempt.body.map { $0.digests[hash] }
                ?? hash.hexadecimal(of: attempt.request.value.httpBody ?? Data())
        }
    }
}
