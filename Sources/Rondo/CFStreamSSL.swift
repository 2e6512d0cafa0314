// Core Foundation's names for how a socket stream is secured: thin, no logic. They are strings here, as
// `kCFStreamPropertySSLSettings as String` is there:
//
//     input.setProperty(
//         [kCFStreamSSLPeerName: "example.com"] as AnyObject,
//         forKey: Stream.PropertyKey(rawValue: kCFStreamPropertySSLSettings as String))

/// The dictionary of the keys below, a property of socket streams (rule ST-43).
public let kCFStreamPropertySSLSettings = Stream.PropertyKey.sslSettingsKey.rawValue
/// `.socketSecurityLevelKey`, whose values are the levels below (rule ST-41).
public let kCFStreamPropertySocketSecurityLevel = Stream.PropertyKey.socketSecurityLevelKey.rawValue

/// One of the levels below; negotiated by default.
public let kCFStreamSSLLevel = TLSDictionaryKey.level.rawValue
/// A Bool; see `TLSSettings.Tolerance`.
public let kCFStreamSSLAllowsExpiredCertificates = TLSDictionaryKey.allowsExpiredCertificates.rawValue
/// A Bool; see `TLSSettings.Tolerance`.
public let kCFStreamSSLAllowsExpiredRoots = TLSDictionaryKey.allowsExpiredRoots.rawValue
/// A Bool; see `TLSSettings.Tolerance`.
public let kCFStreamSSLAllowsAnyRoot = TLSDictionaryKey.allowsAnyRoot.rawValue
/// A Bool, true by default; false checks nothing.
public let kCFStreamSSLValidatesCertificateChain = TLSDictionaryKey.validatesCertificateChain.rawValue
/// A String, or `NSNull()` to check no name; the host by default.
public let kCFStreamSSLPeerName = TLSDictionaryKey.peerName.rawValue
/// An array that begins with a `TLSIdentity`; Apple's has a SecIdentity there.
public let kCFStreamSSLCertificates = TLSDictionaryKey.certificates.rawValue
/// A Bool, false by default.
public let kCFStreamSSLIsServer = TLSDictionaryKey.isServer.rawValue

/// Not secured.
public let kCFStreamSocketSecurityLevelNone = StreamSocketSecurityLevel.none.rawValue
/// Refused (rule ST-41).
public let kCFStreamSocketSecurityLevelSSLv2 = StreamSocketSecurityLevel.ssLv2.rawValue
/// Refused (rule ST-41).
public let kCFStreamSocketSecurityLevelSSLv3 = StreamSocketSecurityLevel.ssLv3.rawValue
/// TLS of any version, the old ones too.
public let kCFStreamSocketSecurityLevelTLSv1 = StreamSocketSecurityLevel.tlSv1.rawValue
/// The best that both sides support, from TLS 1.2 on.
public let kCFStreamSocketSecurityLevelNegotiatedSSL = StreamSocketSecurityLevel.negotiatedSSL.rawValue
