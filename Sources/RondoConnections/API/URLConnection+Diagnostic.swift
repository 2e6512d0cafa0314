extension URLConnection {
    /// A step of a load that the delegate is not told about.
    ///
    /// Which of its values are not nil depends on its kind; the kinds say so.
    public struct Diagnostic: Sendable, Equatable {
        /// What kind of step it is. Later versions may know more kinds: a `switch` needs a `default`.
        public struct Kind: Sendable, Hashable, CustomStringConvertible {
            public let description: String

            private init(_ name: String) { description = name }

            /// A name is looked up: `host`.
            public static let resolving = Kind("resolving")
            /// A connection is begun: `address`.
            public static let connecting = Kind("connecting")
            /// It stands: `address`.
            public static let connected = Kind("connected")
            /// It is secured by TLS: `version`, `cipher` and `subject`.
            public static let secured = Kind("secured")
            /// The request goes over a connection that was kept: `address`.
            public static let reusing = Kind("reusing")
            /// A request is sent: `head`.
            public static let requestHead = Kind("requestHead")
            /// A response has come, an interim one too: `head`.
            public static let responseHead = Kind("responseHead")
            /// The connection is closed: `reason`.
            public static let closed = Kind("closed")
            /// A credential that was to answer a challenge cannot be sent, and the load goes on without one: `reason`.
            public static let unusableCredential = Kind("unusableCredential")
        }

        private let step: ExchangeStep

        init(_ step: ExchangeStep) { self.step = step }

        // To make one, as tests of a program want to.

        public static func resolving(host: String) -> Self { Self(.resolving(host: host)) }
        public static func connecting(address: String) -> Self { Self(.connecting(address: address)) }
        public static func connected(address: String) -> Self { Self(.connected(address: address)) }
        public static func secured(version: String, cipher: String, subject: String) -> Self {
            Self(.secured(version: version, cipher: cipher, subject: subject))
        }
        public static func reusing(address: String) -> Self { Self(.reusing(address: address)) }
        public static func requestHead(_ head: String) -> Self { Self(.requestHead(head)) }
        public static func responseHead(_ head: String) -> Self { Self(.responseHead(head)) }
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

        /// Address and port of the connection's other end.
        public var address: String? {
            switch step {
            case .connecting(let address), .connected(let address), .reusing(let address): address
            default: nil
            }
        }

        /// The version of TLS, "TLSv1.3" for instance.
        public var version: String? { if case .secured(let version, _, _) = step { version } else { nil } }

        /// The name of the cipher.
        public var cipher: String? { if case .secured(_, let cipher, _) = step { cipher } else { nil } }

        /// Whom the certificate names.
        public var subject: String? { if case .secured(_, _, let subject) = step { subject } else { nil } }

        /// Request or status line and header fields, each line ended by CR LF.
        public var head: String? {
            switch step {
            case .requestHead(let head), .responseHead(let head): head
            default: nil
            }
        }

        /// In a sentence.
        public var reason: String? {
            switch step {
            case .closed(let reason), .unusableCredential(let reason): reason
            default: nil
            }
        }
    }
}
