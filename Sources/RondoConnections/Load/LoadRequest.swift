package import FoundationNetworking
package import RondoCore

/// A request as a load holds it, with copies of the values that the load reads often: reading them from the
/// request takes longer.
///
/// An immutable reference, so that it costs little to pass on.
package final class LoadRequest: Sendable, Equatable {
    package let value: URLRequest
    package let url: URL?
    /// GET where the request names none.
    package let method: String
    /// Nil unless it is an http or https request.
    let address: WebAddress?
    /// The request's own fields; empty if it has none.
    let fields: [String: String]
    let handlesCookies: Bool
    /// Whether a server has refused the field Expect: it is not sent then, even if the settings add it.
    let omitsExpect: Bool

    package init(_ request: URLRequest, omitsExpect: Bool = false) {
        value = request
        url = request.url
        method = request.httpMethod ?? "GET"
        address = url.flatMap(WebAddress.init)
        fields = request.allHTTPHeaderFields ?? [:]
        handlesCookies = request.httpShouldHandleCookies
        self.omitsExpect = omitsExpect
    }

    package static func == (left: LoadRequest, right: LoadRequest) -> Bool {
        left === right || left.value == right.value
    }

    /// Whether sending the request twice has the same effect as sending it once (RFC 9110 §9.2.2).
    var isIdempotent: Bool {
        switch method {
        case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE": true
        default: false
        }
    }

    /// Whether it is sent over TLS.
    var isSecure: Bool { address?.isSecure ?? false }

    /// The same request without the field Expect.
    var withoutExpectation: LoadRequest {
        var request = value
        request.setValue(nil, forHTTPHeaderField: "Expect")
        return LoadRequest(request, omitsExpect: true)
    }

    /// The request for the whole, in place of a part.
    var forWhole: LoadRequest {
        var request = value
        request.setValue(nil, forHTTPHeaderField: "Range")
        request.setValue(nil, forHTTPHeaderField: "If-Range")
        return LoadRequest(request)
    }
}
