// `URLRequest`, `URLResponse`, `URLCache` and their kin are Foundation's own, and challenges those of connections.
@_exported public import RondoConnections
