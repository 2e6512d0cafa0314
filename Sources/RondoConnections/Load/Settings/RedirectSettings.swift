/// Which redirects a load follows; see `URLConnection.RedirectPolicy`.
struct RedirectSettings: Sendable {
    var follows = true
    /// The default is the number in Apple's documentation of `NSURLErrorHTTPTooManyRedirects` (rule UC-32).
    var maximum = 16
}
