// The single import for programs: Foundation, FoundationNetworking, and the layers of Rondo.
@_exported public import RondoConnections
@_exported public import RondoCore
@_exported public import RondoSessions
@_exported public import RondoStreams
@_exported public import RondoSystem
