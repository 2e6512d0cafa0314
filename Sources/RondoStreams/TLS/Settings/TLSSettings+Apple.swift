// Apple's two older ways to set how a socket stream is secured: a level, and a dictionary (rules ST-41 to
// ST-43).

package import RondoCore

/// The keys of the dictionary under `kCFStreamPropertySSLSettings`, with Core Foundation's names, in the
/// order in which they take effect: a dictionary has none.
package enum TLSDictionaryKey: String, CaseIterable {
    /// The raw value of a `StreamSocketSecurityLevel`; negotiated by default.
    case level = "kCFStreamSSLLevel"
    /// Booleans, false by default.
    case allowsExpiredCertificates = "kCFStreamSSLAllowsExpiredCertificates"
    case allowsExpiredRoots = "kCFStreamSSLAllowsExpiredRoots"
    case allowsAnyRoot = "kCFStreamSSLAllowsAnyRoot"
    /// A boolean, true by default; false switches all checks off.
    case validatesCertificateChain = "kCFStreamSSLValidatesCertificateChain"
    /// A string, which is checked, or `NSNull` to check no name; the host by default.
    case peerName = "kCFStreamSSLPeerName"
    /// A `TLSIdentity`, or an array that begins with one. (Apple's holds a SecIdentity.)
    case certificates = "kCFStreamSSLCertificates"
    /// A boolean, false by default.
    case isServer = "kCFStreamSSLIsServer"
}

extension TLSSettings {
    /// Returns the settings that a level stands for; everything else is as in `base`.
    ///
    /// - Returns: `.some(nil)` for the level none; nil for levels that are refused, SSLv2 and SSLv3 among
    ///   them (rule ST-41).
    package static func level(_ value: Any?, basedOn base: TLSSettings?) -> TLSSettings?? {
        let text = (value as? StreamSocketSecurityLevel)?.rawValue ?? value as? String
        guard let text else { return nil }
        var settings = base ?? TLSSettings()
        switch StreamSocketSecurityLevel(rawValue: text) {
        case .none: return .some(nil)
        case .negotiatedSSL: settings.minimumVersion = TLSSettings().minimumVersion
        // Allows any version, as on Apple's platforms: a program sets this level for a server with old
        // versions only.
        case .tlSv1: settings.minimumVersion = .tls10
        default: return nil
        }
        return settings
    }

    /// The level that comes nearest to these settings.
    package var level: StreamSocketSecurityLevel { minimumVersion < .tls12 ? .tlSv1 : .negotiatedSSL }

    /// Returns the settings that Apple's dictionary describes; everything it does not mention is as in
    /// `base`.
    ///
    /// - Returns: As `level(_:basedOn:)`; nil too if a value has the wrong type for its key. Unknown keys are
    ///   ignored.
    package static func dictionary(_ values: [String: Any], basedOn base: TLSSettings?) -> TLSSettings?? {
        var settings = base ?? TLSSettings()
        if let level = values[TLSDictionaryKey.level.rawValue] {
            guard let levelled = Self.level(level, basedOn: base) else { return nil }
            guard let levelled else { return .some(nil) }
            settings = levelled
        }
        for key in TLSDictionaryKey.allCases {
            guard let value = values[key.rawValue] else { continue }
            guard settings.set(key, value) else { return nil }
        }
        return settings
    }

    private mutating func set(_ key: TLSDictionaryKey, _ value: Any) -> Bool {
        switch key {
        case .level: return true
        case .allowsExpiredCertificates: return set(.expiredCertificates, value)
        case .allowsExpiredRoots: return set(.expiredRoots, value)
        case .allowsAnyRoot: return set(.anyRoot, value)
        case .validatesCertificateChain:
            guard let validates = value as? Bool else { return false }
            // True leaves `.withoutHostName` as it is: the name stays unchecked.
            if !validates { verification = .none } else if verification == .none { verification = .full }
        case .peerName:
            if value is NSNull {
                if verification == .full { verification = .withoutHostName }
            } else {
                guard let name = value as? String else { return false }
                serverName = name
                if verification == .withoutHostName { verification = .full }
            }
        case .certificates:
            guard let identity = value as? TLSIdentity ?? (value as? [Any])?.first as? TLSIdentity else {
                return false
            }
            self.identity = identity
        case .isServer:
            guard let isServer = value as? Bool else { return false }
            role = isServer ? .server : .client
        }
        return true
    }

    private mutating func set(_ member: Tolerance, _ value: Any) -> Bool {
        guard let isAllowed = value as? Bool else { return false }
        if isAllowed { tolerance.insert(member) } else { tolerance.remove(member) }
        return true
    }
}
