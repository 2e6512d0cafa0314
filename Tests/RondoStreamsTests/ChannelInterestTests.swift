import RondoCore
import RondoTestSupport
import Testing

@testable import RondoStreams

/// What the descriptors of a channel are watched for, while its interest is suspended and afterwards.
@Suite(.leavesNothing) struct ChannelInterestTests {
    @Test func `interest that is set while it is suspended takes effect when it is resumed`() {
        let interest = ChannelInterest()
        let sources = (0..<2).map { _ in RunLoop.Source(fileDescriptor: 0, interest: []) { _, _ in } }
        interest.set(.read, of: sources[0])
        interest.set([.read, .write], of: sources[1])
        #expect(sources.map(\.interest) == [.read, [.read, .write]])
        interest.suspend()
        #expect(sources.map(\.interest) == [[], []])
        interest.set(.write, of: sources[0])
        #expect(sources.map(\.interest) == [[], []])
        interest.remove(sources[1])
        #expect(interest.resume())
        #expect(sources.map(\.interest) == [.write, []])
        #expect(!interest.resume())
    }
}
