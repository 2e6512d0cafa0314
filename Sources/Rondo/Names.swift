// Declared here, not only re-exported, so that `Rondo.RunLoop`, `Rondo::RunLoop` and `import class
// Rondo.RunLoop` all resolve. The documentation shows the classes themselves.

@_documentation(visibility: internal) public typealias RunLoop = RondoCore.RunLoop
@_documentation(visibility: internal) public typealias Timer = RondoCore.Timer
@_documentation(visibility: internal) public typealias Port = RondoCore.Port
@_documentation(visibility: internal) public typealias InputStream = RondoStreams.InputStream
@_documentation(visibility: internal) public typealias OutputStream = RondoStreams.OutputStream
@_documentation(visibility: internal) public typealias Process = RondoSystem.Process
@_documentation(visibility: internal) public typealias NotificationQueue = RondoCore.NotificationQueue
@_documentation(visibility: internal) public typealias SocketPort = RondoStreams.SocketPort
@_documentation(visibility: internal) public typealias PortMessage = RondoCore.PortMessage
@_documentation(visibility: internal) public typealias PortDelegate = RondoCore.PortDelegate

// Cocoa's names.

public typealias NSRunLoop = RondoCore.RunLoop
public typealias NSTimer = RondoCore.Timer
public typealias NSPort = RondoCore.Port
public typealias NSSocketPort = RondoStreams.SocketPort
public typealias NSPortMessage = RondoCore.PortMessage
public typealias NSPortDelegate = RondoCore.PortDelegate
public typealias NSNotificationQueue = RondoCore.NotificationQueue
public typealias NSInputStream = RondoStreams.InputStream
public typealias NSOutputStream = RondoStreams.OutputStream
public typealias CFReadStream = RondoStreams.InputStream
public typealias CFWriteStream = RondoStreams.OutputStream
public typealias NSURLConnection = URLConnection
public typealias NSURLConnectionDelegate = URLConnectionDelegate
public typealias NSURLConnectionDataDelegate = URLConnectionDataDelegate
public typealias NSURLConnectionDownloadDelegate = URLConnectionDownloadDelegate
public typealias NSURLDownload = URLDownload
public typealias NSURLDownloadDelegate = URLDownloadDelegate
