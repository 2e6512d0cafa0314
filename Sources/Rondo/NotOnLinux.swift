// Names that code for Apple's streams and sessions uses and that have no counterpart on Linux. The compiler
// then names the replacement instead of reporting an unknown name. Only names that no other package is likely
// to declare.

/// See `TLSTrust`.
@available(
    *, unavailable,
    message:
        "Security.framework is not on Linux. URLProtectionSpace.serverTrust is a TLSTrust, TLSSettings.trustHandler is given one."
)
public typealias SecTrust = TLSTrust

/// See `TLSCertificate`.
@available(
    *, unavailable,
    message: "Security.framework is not on Linux. TLSTrust has its certificates as TLSCertificate."
)
public typealias SecCertificate = TLSCertificate

/// See `TLSIdentity`.
@available(
    *, unavailable,
    message:
        "Security.framework is not on Linux. TLSIdentity takes its place, in streams and in URLCredential."
)
public typealias SecIdentity = TLSIdentity

/// See `Stream.PropertyKey.tlsInformationKey`.
@available(
    *, unavailable,
    message: "There is no SSLContext on Linux. Ask the stream for .tlsInformationKey, a TLSInformation."
)
public var kCFStreamPropertySSLContext: CFString { "kCFStreamPropertySSLContext" }

/// See `TLSSettings.trustHandler`.
@available(
    *, unavailable,
    message:
        "There is no SecTrust on Linux. Set .tlsSettingsKey to TLSSettings with a trustHandler, which is given a TLSTrust."
)
public var kCFStreamPropertySSLPeerTrust: CFString { "kCFStreamPropertySSLPeerTrust" }

/// See `Port`.
@available(
    *, unavailable,
    message: "There are no Mach ports on Linux. Port() keeps a run loop's mode from being empty."
)
public typealias NSMachPort = Port
