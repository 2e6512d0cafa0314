internal import FoundationNetworking
internal import RondoHTTP

extension LoadAnswers {
    /// Stores the cookies of a head, and notes its Strict-Transport-Security. Called for every head, also for
    /// those of redirects and of the rest of a download (rule UC-57).
    ///
    /// Cookies are also kept from a server that was accepted in spite of its certificate (rule UC-57 makes no
    /// exception, nor do browsers): without its cookies the server would ask the program to log in at each
    /// load.
    func noteFields(of head: ResponseHead, from source: ResponseSource, to request: LoadRequest) {
        if head.fields.has("Set-Cookie") {
            _ = settings.jar?.receive(head.fields, for: request) {
                // Counted before the store can call the returned closure, which counts it off again.
                owner.beginStoring()
                return { [owner] in owner.endStoring() }
            }
        }
        guard head.fields.has("Strict-Transport-Security"), request.isSecure, source.isVerified,
            let url = request.url
        else { return }
        KnownHSTSHosts.receive(head.fields, from: url, for: settings.values.hstsHosts)
    }
}
