public import RondoStreams

extension URLConnection {
    /// By which proxy a connection goes.
    public enum ProxyChoice: Sendable, Hashable {
        /// As the environment says: `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, by the rules that
        /// curl documents. It is read once, at the first load of the process.
        case environment
        /// None.
        case direct
        /// This one, whatever the host. `httpConnect` makes a tunnel for https, and is handed http requests
        /// whole; with `StreamProxy.tls` both are said to it by TLS.
        case by(StreamProxy)
    }
}
