extension LoadSettings {
    /// The head of a request with the fields of the settings, before cookies, credentials and the conditions of the cache are
    /// added.
    ///
    /// - Parameters:
    ///   - isForProxy: The request goes to a proxy as it is.
    ///   - isAtOrigin: Whether an address belongs to the origin that the settings were made for.
    func draft(
        of request: LoadRequest, isForProxy: Bool = false, isAtOrigin: (WebAddress) -> Bool
    ) throws(LoadFailure) -> OutgoingRequest.Draft {
        try OutgoingRequest.Draft(
            of: request,
            additionalFields: additionalFields(atOrigin: request.address.map { isAtOrigin($0) } ?? true),
            target: values.requestTarget, isForProxy: isForProxy)
    }

    /// The fields that go with each request to a server.
    private func additionalFields(atOrigin: @autoclosure () -> Bool) -> [(name: String, value: String)] {
        if values.additionalFields.isEmpty || atOrigin() { return values.additionalFields }
        return values.additionalFields.filter { !RedirectedRequest.isForOneOrigin($0.name) }
    }
}
