package import RondoHTTP

extension URLConnection {
    /// A step of a load that the delegate is not told about.
    ///
    /// Which of its values are not nil depends on its kind: each kind names them.
    public struct Diagnostic: Sendable, Equatable {
        /// The kind of a step. Later versions may add kinds: a `switch` needs a `default`.
        public struct Kind: Sendable, Hashable, CustomStringConvertible {
            public let description: String

            private init(_ name: String) { description = name }

            /// A name is looked up; see `host`.
            public static let resolving = Kind("resolving")
            /// A connection attempt begins; see `address`.
            public static let connecting = Kind("connecting")
            /// The connection is established; see `address`.
            public static let connected = Kind("connected")
            /// The connection is secured by TLS; see `version`, `cipher` and `subject`.
            public static let secured = Kind("secured")
            /// The request goes over a connection that was kept open; see `address`.
            public static let reusing = Kind("reusing")
            /// A request is sent; see `head`.
            public static let requestHead = Kind("requestHead")
            /// A response has come, which may be an interim one; see `head`.
            public static let responseHead = Kind("responseHead")
            /// The connection is closed; see `reason`.
            public static let closed = Kind("closed")
            /// A credential for a challenge cannot be sent, and the load continues without one; see `reason`.
            public static let unusableCredential = Kind("unusableCredential")
        }

        private let step: ExchangeStep

        init(_ step: ExchangeStep) { self.step = step }

        /// Two heads are equal if their texts are, so that one that has come equals one that a test makes.
        public static func == (one: Self, other: Self) -> Bool {
            one.step.withoutFields == other.step.withoutFields
        }

        // Factories for the tests of programs.

        public static func resolving(host: String) -> Self { Self(.resolving(host: host)) }
        public static func connecting(address: String) -> Self { Self(.connecting(address: address)) }
        public static func connected(address: String) -> Self { Self(.connected(address: address)) }
        public static func secured(version: String, cipher: String, subject: String) -> Self {
            Self(.secured(version: version, cipher: cipher, subject: subject))
        }
        public static func reusing(address: String) -> Self { Self(.reusing(address: address)) }
        public static func requestHead(_ head: String) -> Self { Self(.requestHead(head)) }
        public static func responseHead(_ head: String) -> Self { Self(.responseHead(head, fields: nil)) }
        public static func closed(reason: String) -> Self { Self(.closed(reason: reason)) }
        public static func unusableCredential(reason: String) -> Self {
            Self(.unusableCredential(reason: reason))
        }

        public var kind: Kind {
            switch step {
            case .resolving: .resolving
            case .connecting: .connecting
            case .connected: .connected
            case .secured: .secured
            case .reusing: .reusing
            case .requestHead: .requestHead
            case .responseHead: .responseHead
            case .closed: .closed
            case .unusableCredential: .unusableCredential
            }
        }

        /// The name that is looked up.
        public var host: String? { if case .resolving(let host) = step { host } else { nil } }

        /// Address and port of the server, or of the proxy, at the other end of the connection.
        public var address: String? {
            switch step {
            case .connecting(let address), .connected(let address), .reusing(let address): address
            case .resolving, .secured, .requestHead, .responseHead, .closed, .unusableCredential: nil
            }
        }

        /// The version of TLS, for instance "TLSv1.3".
        public var version: String? { if case .secured(let version, _, _) = step { version } else { nil } }

        /// The name of the cipher.
        public var cipher: String? { if case .secured(_, let cipher, _) = step { cipher } else { nil } }

        /// The subject of the server's certificate.
        public var subject: String? { if case .secured(_, _, let subject) = step { subject } else { nil } }

        /// The request or status line and the header fields; each line ends with CR LF.
        public var head: String? {
            switch step {
            case .requestHead(let head), .responseHead(let head, _): head
            case .resolving, .connecting, .connected, .secured, .reusing, .closed, .unusableCredential: nil
            }
        }

        /// A response's fields, in which values have the bytes that came.
        package var fields: HeaderFields? {
            if case .responseHead(_, let fields) = step { fields } else { nil }
        }

        /// The reason in a sentence.
        public var reason: String? {
            switch step {
            case .closed(let reason), .unusableCredential(let reason): reason
            case .resolving, .connecting, .connected, .secured, .reusing, .requestHead, .responseHead: nil
            }
        }
    }
}
