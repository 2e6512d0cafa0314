import FoundationNetworking
import Rondo
import RondoTestSupport
import Testing

/// A file that imports FoundationNetworking as well: names without their module's are ambiguous here.
@Suite struct ForeignNameTests {
    private final class Foreign: NSObject, FoundationNetworking.URLSessionDataDelegate {}
    private final class Ours: NSObject, Rondo.URLSessionDataDelegate {}

    @Test
    func `US-4 no class is a subclass of FoundationNetworking's, and no delegate conforms to both protocols`()
    {
        let session: AnyObject = Rondo.URLSession.shared
        #expect(!(session is FoundationNetworking.URLSession))
        let task: AnyObject = Rondo.URLSession.shared.dataTask(with: URL(fileURLWithPath: "/"))
        #expect(!(task is FoundationNetworking.URLSessionTask))
        let configuration: AnyObject = Rondo.URLSessionConfiguration.default
        #expect(!(configuration is FoundationNetworking.URLSessionConfiguration))
        #expect(!((Foreign() as AnyObject) is any Rondo.URLSessionDelegate))
        #expect(!((Ours() as AnyObject) is any FoundationNetworking.URLSessionDelegate))
    }
}
