// Declared here so that these names mean Rondo's types and not those of FoundationNetworking, which the
// import of Rondo brings along (rule US-1). The documentation shows the types themselves.

@_documentation(visibility: internal) public typealias URLSession = RondoSessions.URLSession
@_documentation(visibility: internal)
public typealias URLSessionConfiguration = RondoSessions.URLSessionConfiguration
@_documentation(visibility: internal) public typealias URLSessionTask = RondoSessions.URLSessionTask
@_documentation(visibility: internal) public typealias URLSessionDataTask = RondoSessions.URLSessionDataTask
@_documentation(visibility: internal)
public typealias URLSessionUploadTask = RondoSessions.URLSessionUploadTask
@_documentation(visibility: internal)
public typealias URLSessionDownloadTask = RondoSessions.URLSessionDownloadTask
@_documentation(visibility: internal) public typealias URLSessionDelegate = RondoSessions.URLSessionDelegate
@_documentation(visibility: internal)
public typealias URLSessionTaskDelegate = RondoSessions.URLSessionTaskDelegate
@_documentation(visibility: internal)
public typealias URLSessionDataDelegate = RondoSessions.URLSessionDataDelegate
@_documentation(visibility: internal)
public typealias URLSessionDownloadDelegate = RondoSessions.URLSessionDownloadDelegate
@_documentation(visibility: internal)
public typealias URLSessionStreamTask = RondoSessions.URLSessionStreamTask
@_documentation(visibility: internal)
public typealias URLSessionWebSocketTask = RondoSessions.URLSessionWebSocketTask
@_documentation(visibility: internal)
public typealias URLSessionStreamDelegate = RondoSessions.URLSessionStreamDelegate
@_documentation(visibility: internal)
public typealias URLSessionWebSocketDelegate = RondoSessions.URLSessionWebSocketDelegate
@_documentation(visibility: internal)
public typealias URLSessionTaskMetrics = RondoSessions.URLSessionTaskMetrics
public typealias URLSessionTaskTransactionMetrics = RondoSessions.URLSessionTaskTransactionMetrics
@_documentation(visibility: internal)
public let NSURLSessionTransferSizeUnknown = RondoSessions.NSURLSessionTransferSizeUnknown

// Cocoa's names.

public typealias NSURLSession = RondoSessions.URLSession
public typealias NSURLSessionConfiguration = RondoSessions.URLSessionConfiguration
public typealias NSURLSessionTask = RondoSessions.URLSessionTask
public typealias NSURLSessionDataTask = RondoSessions.URLSessionDataTask
public typealias NSURLSessionUploadTask = RondoSessions.URLSessionUploadTask
public typealias NSURLSessionDownloadTask = RondoSessions.URLSessionDownloadTask
public typealias NSURLSessionDelegate = RondoSessions.URLSessionDelegate
public typealias NSURLSessionTaskDelegate = RondoSessions.URLSessionTaskDelegate
public typealias NSURLSessionDataDelegate = RondoSessions.URLSessionDataDelegate
public typealias NSURLSessionDownloadDelegate = RondoSessions.URLSessionDownloadDelegate
public typealias NSURLSessionStreamTask = RondoSessions.URLSessionStreamTask
public typealias NSURLSessionWebSocketTask = RondoSessions.URLSessionWebSocketTask
public typealias NSURLSessionStreamDelegate = RondoSessions.URLSessionStreamDelegate
public typealias NSURLSessionWebSocketDelegate = RondoSessions.URLSessionWebSocketDelegate
public typealias NSURLSessionTaskMetrics = RondoSessions.URLSessionTaskMetrics
public typealias NSURLSessionTaskTransactionMetrics = RondoSessions.URLSessionTaskTransactionMetrics
