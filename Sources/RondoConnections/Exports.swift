// `URLRequest`, `URLResponse`, `URLCache` and related types are Foundation's own.
@_exported public import FoundationNetworking
