// The errors of streams in Core Foundation's older form, by domain and number: thin, no logic.

/// The domain of an error of TLS, an `errSSL` number.
public let kCFStreamErrorDomainSSL: Int32 = 3

/// The error of `CFReadStreamCopyError` by domain and number; both are 0 if the stream has not failed.
///
/// The domain is `kCFStreamErrorDomainPOSIX` for an errno, `kCFStreamErrorDomainNetDB` for a name that was
/// not found, with an `EAI_` number, and `kCFStreamErrorDomainSSL` for TLS. For others, such as that of a
/// proxy, it is -1, and the number is the code of the copied error.
public func CFReadStreamGetError(_ stream: CFReadStream!) -> CFStreamError {
    CFStreamError(ofStream: stream.streamError)
}

/// The same for an output stream; see `CFReadStreamGetError`.
public func CFWriteStreamGetError(_ stream: CFWriteStream!) -> CFStreamError {
    CFStreamError(ofStream: stream.streamError)
}

extension CFStreamError {
    /// Core Foundation's domain for errors that have none of their own (`kCFStreamErrorDomainCustom`).
    private static let customDomain = -1

    init(ofStream error: (any Error)?) {
        guard let error = error as NSError? else {
            self.init()
            return
        }
        let code = Int32(truncatingIfNeeded: error.code)
        if error.domain == NSPOSIXErrorDomain {
            self.init(domain: Self.posixDomain, error: code)
        } else if error.domain == NSStreamSocketSSLErrorDomain {
            self.init(domain: Int(kCFStreamErrorDomainSSL), error: code)
        } else if let code = error.userInfo["kCFGetAddrInfoFailureKey"] as? NSNumber {
            self.init(domain: Self.netDatabaseDomain, error: code.int32Value)
        } else {
            self.init(domain: Self.customDomain, error: code)
        }
    }
}
