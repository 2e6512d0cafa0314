// Core Foundation's names for securing a socket stream: thin, no logic.
//
//     input.setProperty(
//         [kCFStreamSSLPeerName: "example.com"] as CFDictionary,
//         forKey: kCFStreamPropertySSLSettings as Stream.PropertyKey)

/// The dictionary of the keys below, a property of socket streams (rule ST-43).
public var kCFStreamPropertySSLSettings: CFString { Stream.PropertyKey.sslSettingsKey.rawValue as NSString }
/// `.socketSecurityLevelKey`, whose values are the levels below (rule ST-41).
public var kCFStreamPropertySocketSecurityLevel: CFString {
    Stream.PropertyKey.socketSecurityLevelKey.rawValue as NSString
}

/// One of the levels below; negotiated by default.
public var kCFStreamSSLLevel: CFString { TLSDictionaryKey.level.rawValue as NSString }
/// A Bool; see `TLSSettings.Tolerance`.
public var kCFStreamSSLAllowsExpiredCertificates: CFString {
    TLSDictionaryKey.allowsExpiredCertificates.rawValue as NSString
}
/// A Bool; see `TLSSettings.Tolerance`.
public var kCFStreamSSLAllowsExpiredRoots: CFString {
    TLSDictionaryKey.allowsExpiredRoots.rawValue as NSString
}
/// A Bool; see `TLSSettings.Tolerance`.
public var kCFStreamSSLAllowsAnyRoot: CFString { TLSDictionaryKey.allowsAnyRoot.rawValue as NSString }
/// A Bool, true by default; false checks nothing.
public var kCFStreamSSLValidatesCertificateChain: CFString {
    TLSDictionaryKey.validatesCertificateChain.rawValue as NSString
}
/// A String, or `NSNull()` to check no name; the host by default.
public var kCFStreamSSLPeerName: CFString { TLSDictionaryKey.peerName.rawValue as NSString }
/// An array that begins with a `TLSIdentity`; Apple's has a SecIdentity there.
public var kCFStreamSSLCertificates: CFString { TLSDictionaryKey.certificates.rawValue as NSString }
/// A Bool, false by default.
public var kCFStreamSSLIsServer: CFString { TLSDictionaryKey.isServer.rawValue as NSString }

/// Not secured.
public var kCFStreamSocketSecurityLevelNone: CFString { StreamSocketSecurityLevel.none.rawValue as NSString }
/// Refused (rule ST-41).
public var kCFStreamSocketSecurityLevelSSLv2: CFString {
    StreamSocketSecurityLevel.ssLv2.rawValue as NSString
}
/// Refused (rule ST-41).
public var kCFStreamSocketSecurityLevelSSLv3: CFString {
    StreamSocketSecurityLevel.ssLv3.rawValue as NSString
}
/// TLS of any version, including the old ones.
public var kCFStreamSocketSecurityLevelTLSv1: CFString {
    StreamSocketSecurityLevel.tlSv1.rawValue as NSString
}
/// The best that both sides support, from TLS 1.2 on.
public var kCFStreamSocketSecurityLevelNegotiatedSSL: CFString {
    StreamSocketSecurityLevel.negotiatedSSL.rawValue as NSString
}
