extension URLConnection {
    /// Which redirects a load follows.
    public struct RedirectPolicy: Sendable, Hashable {
        /// If false, a redirect is delivered like any other response, and the delegate is not asked.
        public var follows = true
        /// The maximum of redirects that are followed; the next one fails the load with
        /// `httpTooManyRedirects` (rule UC-32; the number is from Apple's documentation of that error).
        public var maximum = 16

        public init() {}
    }

    /// A header field of a request.
    public struct HeaderField: Sendable, Hashable {
        public var name: String
        public var value: String

        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }
}
