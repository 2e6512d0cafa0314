// `import Rondo` replaces `import Foundation`.
@_exported public import Foundation
