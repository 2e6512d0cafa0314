internal import RondoHTTP

extension URLConnection {
    /// How much may come out of a response with a Content-Encoding before it is taken for an attack; the load
    /// then fails with `dataLengthExceedsMaximum`.
    ///
    /// Content is decoded as it comes and nothing of it is kept by the connection; these protect delegates that
    /// keep it.
    public struct ContentLimits: Sendable, Equatable {
        /// Bytes that come out for each that goes in; 200 unless set. Looked at from `ratioThreshold` on.
        public var maximumRatio: Int64
        /// Bytes that may come out whatever the ratio; 64 MiB unless set.
        public var ratioThreshold: Int64
        /// Bytes that may come out in all; no limit unless set.
        public var maximumSize: Int64
        /// Codings on top of each other; 5 unless set.
        public var maximumCodings: Int

        public init() {
            let values = RondoHTTP.ContentLimits()
            maximumRatio = values.maximumRatio
            ratioThreshold = values.ratioThreshold
            maximumSize = values.maximumSize
            maximumCodings = values.maximumCodings
        }

        var values: RondoHTTP.ContentLimits {
            var values = RondoHTTP.ContentLimits()
            values.maximumRatio = maximumRatio
            values.ratioThreshold = ratioThreshold
            values.maximumSize = maximumSize
            values.maximumCodings = maximumCodings
            return values
        }
    }
}
