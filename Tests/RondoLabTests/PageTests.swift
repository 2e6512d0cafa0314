import Foundation
import RondoLab
import RondoTestSupport
import RondoTrace
import Testing

/// Pages as a browser sees them: each is loaded into a headless Chromium, and what its script made of it is read
/// from the document.
@Suite(.serialized) struct PageTests {
    /// The document after the page's script has run.
    private func document(of page: String, fragment: String = "", width: Int = 1200) throws -> String {
        let folder = NSTemporaryDirectory() + "/rondo-page-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        // What is left of it is in a temporary folder.
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let file = folder + "/page.html"
        try page.write(toFile: file, atomically: true, encoding: .utf8)
        // Into a file: a document is a few lines of megabytes.
        _ = try TestServerProcess.run([
            "sh", "-c", "exec \"$@\" > '\(folder)/document'", "sh", "chromium", "--headless", "--no-sandbox",
            "--disable-gpu", "--disable-dev-shm-usage",
            "--user-data-dir=\(folder)/profile", "--window-size=\(width),900", "--virtual-time-budget=10000",
            "--dump-dom", "file://\(file)\(fragment)",
        ])
        return try String(contentsOfFile: "\(folder)/document", encoding: .utf8)
    }

    /// The value of a data attribute of the first figure.
    private func value(_ name: String, in document: String) -> Int? {
        guard let figure = document.range(of: "<figure[^>]*>", options: .regularExpression),
            let attribute = document[figure].range(of: "data-\(name)=\"[0-9]+", options: .regularExpression)
        else { return nil }
        return Int(document[figure][attribute].drop { $0 != "\"" }.dropFirst())
    }

    @Test func `a page draws its recording and lists the objects that waited`() throws {
        let document = try document(of: TracePage.html(RecordingMaker.sample, title: "sample"))
        #expect(document.contains("<html lang=\"en\" data-ready=\"true\">"))
        #expect(value("events", in: document) == RecordingMaker.sample.records.count)
        // Two depths of modes, passes, what was asked, an observer, a timer, a descriptor, deferred work, and a note of a
        // thread.
        #expect(value("lanes", in: document) == 9)
        #expect((value("drawn", in: document) ?? 0) > 6)
        #expect(document.contains("is scheduled in default, but its loop ran in private."))
        #expect(document.contains("&lt;/script&gt;&lt;b&gt;") && !document.contains("</script><b>"))
        // The loop's figures: what it ran in, passes and call-outs.
        #expect(document.contains("default 401.0 µs, private 80.0 µs"))
        // The colours of the modes that ran, and of no other.
        #expect(document.contains("</i>default</li>") && document.contains("</i>private</li>"))
        #expect(!document.contains("</i>tracking</li>"))
        // Everything that can be done can be reached by Tab.
        #expect(document.contains("<canvas tabindex=\"0\" role=\"application\""))
    }

    @Test(arguments: [390, 800, 1400])
    func `a page is no wider than the window`(width: Int) throws {
        let probe = """
            <script>addEventListener('load', () => { document.body.dataset.overflow =
              document.documentElement.scrollWidth > window.innerWidth ? 'yes' : 'no'; });</script></body>
            """
        let page = TracePage.html(RecordingMaker.sample, title: "sample")
            .replacingOccurrences(of: "</body>", with: probe)
        #expect(try document(of: page, width: width).contains("data-overflow=\"no\""))
    }

    private func sampleReport() throws -> String {
        let outcomes = try ["cache-policies", "timer-modes"].map { name in
            let experiment = try #require(Experiment.named(name))
            return Outcome(
                experiment: experiment, recording: RecordingMaker.sample,
                verdict: experiment.verdict(on: RecordingMaker.sample))
        }
        return ReportPage.html(outcomes)
    }

    /// A window of a browser has a least width, a frame has none.
    @Test(arguments: [360, 800, 1600])
    func `a report is no wider than its frame, with every answer open`(width: Int) throws {
        let probe = """
            <script>addEventListener('load', () => {
              for (const d of document.querySelectorAll('details')) d.open = true;
              parent.postMessage(innerWidth + ' ' +
                (document.scrollingElement.scrollWidth <= innerWidth ? 'fits' : 'overflows'), '*');
            });</script></body>
            """
        let page = try sampleReport().replacingOccurrences(of: "</body>", with: probe)
            .replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "\"", with: "&quot;")
        let frame = """
            <!doctype html><body><script>addEventListener('message', e => document.body.dataset.said = e.data)
            </script><iframe style="width: \(width)px; height: 900px; border: 0" srcdoc="\(page)"></iframe></body>
            """
        #expect(try document(of: frame, width: 1700).contains("data-said=\"\(width) fits\""))
    }

    @Test func `a report shows what happened once its reader opens the answer, and judges the choice then`()
        throws
    {
        let probe = """
            <script>addEventListener('load', () => {
              const quiz = document.querySelector('fieldset.quiz'), answer = document.querySelector('details.answer');
              const figure = answer.querySelector('figure'), out = quiz.querySelector('output'), said = [];
              const say = () => said.push((figure.checkVisibility() ? 'shown' : 'hidden') + ':' + out.className);
              say();
              quiz.querySelectorAll('input')[quiz.dataset.answer].click();
              say();
              answer.addEventListener('toggle', () => { say(); document.body.dataset.said = said.join(' '); });
              answer.querySelector('summary').click();
            });</script></body>
            """
        let page = try sampleReport().replacingOccurrences(of: "</body>", with: probe)
        #expect(try document(of: page).contains("data-said=\"hidden: hidden: shown:good\""))
    }

    @Test func `keys move from event to event, between lanes, and to held-back spans`() throws {
        let probe = """
            <script>addEventListener('load', () => {
              const canvas = document.querySelector('canvas'), details = document.querySelector('.details');
              const press = (key, more) => canvas.dispatchEvent(new KeyboardEvent('keydown', {key, ...more}));
              const said = [];
              for (const key of ['ArrowRight', 'ArrowDown', 'ArrowDown', 'h', 'Escape']) {
                press(key);
                said.push(key + ': ' + details.firstChild.textContent);
              }
              for (const key of ['+', '-', '0', 'PageDown', 'Home', 'End', 'Enter']) press(key);
              press('ArrowLeft', {shiftKey: true});
              document.body.dataset.said = said.join(' / ');
            });</script></body>
            """
        let page = TracePage.html(RecordingMaker.sample, title: "sample")
            .replacingOccurrences(of: "</body>", with: probe)
        let document = try document(of: page)
        #expect(document.contains("ArrowRight: Running in default / ArrowDown: Running in private / "))
        #expect(document.contains("h: descriptor"))
        #expect(document.contains("Escape: Hover or tap"))
    }

    @Test func `keys go from a run to its sleep, and back`() throws {
        let probe = """
            <script>addEventListener('load', () => {
              const canvas = document.querySelector('canvas'), details = document.querySelector('.details'), said = [];
              for (const key of ['ArrowRight', 'ArrowRight', 'ArrowLeft']) {
                canvas.dispatchEvent(new KeyboardEvent('keydown', {key}));
                said.push(details.firstChild.textContent);
              }
              document.body.dataset.said = said.join(' / ');
            });</script></body>
            """
        let page = TracePage.html(RecordingMaker.sample, title: "sample")
            .replacingOccurrences(of: "</body>", with: probe)
        #expect(
            try document(of: page).contains(
                "data-said=\"Running in default / Asleep in default / Running in default\""))
    }

    @Test func `a picture of a hundred thousand events draws at most one span for each pixel and lane`()
        throws
    {
        var maker = RecordingMaker()
        maker.add(.entry, 0)
        for number in Int64(0)..<50_000 {
            maker.add(.pass, number * 20_000, 18_000, detail: 6)
            maker.add(.timer, number * 20_000 + 2000, 9_000, subject: 1)
        }
        maker.add(.exit, 1_000_000_000, detail: 2)
        let document = try document(
            of: TracePage.html(maker.recording(ended: 1_000_000_000), title: "many"), fragment: "#measure")
        #expect(value("events", in: document) == 100_002)
        // At no scale more than one span a pixel and lane, and there are three lanes.
        let most = try #require(value("most-drawn", in: document))
        #expect(most > 100 && most <= 3 * 1200, "\(most)")
        #expect(document.contains("data-median-frame="))
    }

    /// Browsers draw nothing at all on a canvas that is too high.
    @Test func `of many run loops a page draws as many as fit, and counts the others`() throws {
        var maker = RecordingMaker()
        for number in 2...600 {
            maker.tables.loops.append(TraceTables.Loop(name: "loop of test \(number)", thread: 0))
            maker.add(.entry, 1_000, loop: UInt16(number))
            maker.add(.pass, 1_100, 1_000, detail: 6, loop: UInt16(number))
            maker.add(.exit, 3_000, detail: 3, loop: UInt16(number))
        }
        let probe = """
            <script>addEventListener('load', () => {
              const canvas = document.querySelector('canvas');
              document.querySelector('figure').dataset.height = canvas.height / devicePixelRatio;
            });</script></body>
            """
        let page = TracePage.html(maker.recording(), title: "many loops")
            .replacingOccurrences(of: "</body>", with: probe)
        let document = try document(of: page)
        let (height, others) = (value("height", in: document), value("others", in: document))
        // A loop takes 80 pixels: its title, a lane for its mode and one for its passes. The first one has never passed.
        #expect(try #require(height) <= 10_000)
        #expect(others == 600 - 1 - 123)
    }

    @Test func `a report lists its experiments with the verdicts that were computed`() throws {
        let experiment = try #require(Experiment.named("timer-modes"))
        let bad = Outcome(
            experiment: experiment, recording: RecordingMaker.sample,
            verdict: experiment.verdict(on: RecordingMaker.sample))
        let other = try #require(Experiment.named("redirects"))
        let document = try document(of: ReportPage.html([bad], notRun: [(other, "the reason")]))
        #expect(document.contains("data-verdict=\"false\"") && !document.contains("data-verdict=\"true\""))
        #expect(document.contains("0 as documented") && document.contains("1 not as documented"))
        #expect(document.contains("could not be carried out") && document.contains("the reason"))
        #expect(document.contains("data-ready=\"true\""))
    }
}
