import RondoCore
import RondoTestSupport
import Testing

@testable import RondoStreams

/// What the descriptors of a channel are watched for, while the channel is suspended and afterwards.
@Suite(.leavesNothing) struct ChannelRegistrationTests {
    @Test func `interest that is set while it is suspended takes effect when it is resumed`() {
        let registration = ChannelRegistration()
        let wanted: [RunLoop.Source.Interest] = [.read, [.read, .write]]
        let sources = wanted.map { registration.makeSource(0, interest: $0) }
        #expect(sources.map(\.interest) == [.read, [.read, .write]])
        registration.suspend()
        #expect(sources.map(\.interest) == [[], []])
        registration.setInterest(.write, of: sources[0])
        #expect(sources.map(\.interest) == [[], []])
        registration.remove(sources[1])
        registration.resume()
        #expect(sources.map(\.interest) == [.write, []])
        // It is not suspended any more, so nothing is resumed.
        sources[0].interest = []
        registration.resume()
        #expect(sources[0].interest == [])
        registration.remove(sources[0])
    }

    @Test func `a source that watches no socket of the channel is not suspended`() {
        let registration = ChannelRegistration()
        let source = RunLoop.Source(fileDescriptor: 0, interest: .read) { _, _ in }
        registration.add(source)
        registration.suspend()
        #expect(source.interest == .read)
        registration.remove(source)
    }
}
