// Foundation's own `URLRequest`, `URLResponse`, `URLCache` and related types are used; challenges are those
// of RondoConnections.
@_exported public import RondoConnections
