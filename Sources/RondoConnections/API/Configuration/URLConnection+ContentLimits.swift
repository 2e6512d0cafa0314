internal import RondoHTTP

extension URLConnection {
    /// How much a response with a Content-Encoding may expand before it is taken for an attack. The load then
    /// fails with `dataLengthExceedsMaximum`, or with `cannotDecodeContentData` beyond `maximumCodings`.
    ///
    /// The connection decodes content as it comes and keeps none of it; the limits protect delegates that
    /// keep it.
    public struct ContentLimits: Sendable, Equatable {
        /// The maximum of decoded bytes for each encoded byte; 200 unless set. Checked above
        /// `ratioThreshold`.
        public var maximumRatio: Int64
        /// The number of decoded bytes that are allowed whatever the ratio; 64 MiB unless set.
        public var ratioThreshold: Int64
        /// The maximum of decoded bytes in total; no limit unless set.
        public var maximumSize: Int64
        /// The maximum of codings applied on top of each other; 5 unless set.
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
