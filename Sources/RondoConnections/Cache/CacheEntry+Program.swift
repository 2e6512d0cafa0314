internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

extension CacheEntry {
    /// The entry by which the cache rules judge a response that a program has stored by itself. Its time of
    /// arrival is taken from its `Date` field, and it answers any request. Nil for a response that is not
    /// HTTP.
    init?(storedByProgram cached: CachedURLResponse) {
        guard let response = cached.response as? HTTPURLResponse else { return nil }
        var fields = HeaderFields()
        for (name, value) in response.allHeaderFields {
            if let name = name as? String, let value = value as? String {
                fields.append(name: name, value: value)
            }
        }
        let date = fields["Date"].flatMap { HTTPDate.parse($0) } ?? .distantPast
        fields.remove("Vary")
        self.init(status: response.statusCode, fields: fields, requestedAt: date, receivedAt: date)
    }
}
