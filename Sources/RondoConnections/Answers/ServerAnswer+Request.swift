internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The making of the request that an exchange sends.
extension ServerAnswer {
    /// The request as it is sent by `route`.
    func outgoingRequest(by route: Route) throws(LoadFailure) -> OutgoingRequest {
        let request = asked.request
        var draft = try settings.draft(of: request, isForProxy: route.isForProxy) { owner.isAtOrigin($0) }
        if let authenticator {
            setCredentials(of: authenticator, toProxy: route.isForProxy, in: &draft)
        }
        settings.jar?.setField(for: request, in: &draft.fields)
        for (name, value) in asked.cacheFields { draft.fields.set(name: name, value: value) }
        context.upgrade?.addFields(to: &draft.fields)
        return try .request(
            of: request, from: draft, stream: bodyStream, omittedFields: settings.values.omittedFields,
            usualFields: route.usualFields)
    }

    private func setCredentials(
        of authenticator: Authenticator, toProxy isToProxy: Bool, in draft: inout OutgoingRequest.Draft
    ) {
        authenticator.setFields(
            method: asked.request.method, target: draft.target,
            toProxy: isToProxy ? draft.sentTarget : nil, in: &draft.fields
        ) { hash in
            bodyStream.map { $0.digests[hash] }
                ?? hash.hexadecimal(of: asked.request.value.httpBody ?? Data())
        }
    }
}
