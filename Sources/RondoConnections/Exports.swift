// `URLRequest`, `URLResponse`, `URLCache` and their kin are Foundation's own.
@_exported public import FoundationNetworking
