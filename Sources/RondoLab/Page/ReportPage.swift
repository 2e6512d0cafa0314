import Rondo
internal import RondoTrace

/// The page of `rondo lab report`, and of one experiment.
package enum ReportPage {
    /// - Parameters:
    ///   - outcomes: In the order of the page.
    ///   - notRun: The experiments that could not run, each with the reason.
    package static func html(_ outcomes: [Outcome], notRun: [(Experiment, String)] = []) -> String {
        let isOne = outcomes.count == 1 && notRun.isEmpty
        let title = isOne ? outcomes[0].experiment.title : "Run loops, seen at work"
        var body = "<header>\n" + HTML.element("h1", title)
        if isOne {
            body += HTML.element(
                "p", class: "quiet", "An experiment of Rondo's lab. Nothing was loaded for this page.")
        } else {
            body += introduction(outcomes, notRun)
        }
        body += "</header>\n<main>\n"
        if !isOne {
            body +=
                contents(outcomes, notRun) + "<h2>How to read a timeline</h2>\n" + PageParts.key
                + PageParts.keys
        }
        for (place, outcome) in outcomes.enumerated() {
            body += section(outcome, place: place, hasTitle: !isOne)
        }
        if isOne { body += "<h2>How to read it</h2>\n" + PageParts.key + PageParts.keys }
        return PageParts.page(title: title, body: body + "</main>")
    }

    private static func introduction(_ outcomes: [Outcome], _ notRun: [(Experiment, String)]) -> String {
        let good = outcomes.count { $0.verdict.isAsDocumented }
        let bad = outcomes.count - good
        var text = HTML.element(
            "p",
            """
            A run loop is how a thread waits: it sleeps until something happens, calls what is scheduled for that, \
            and sleeps again. It runs in one mode at a time, and calls only what is scheduled in that mode. Each \
            experiment below asks a question, ran on this machine when the page was made, and was recorded. Its \
            verdict is computed from the recorded events and from nothing else. Predict first, then look.
            """)
        text +=
            "<p id=\"summary\"><span class=\"badge \(bad == 0 ? "good" : "bad")\">\(good) as documented</span> "
        if bad > 0 { text += "<span class=\"badge bad\">\(bad) not as documented</span> " }
        if !notRun.isEmpty {
            text += "<span class=\"badge bad\">\(notRun.count) could not be carried out</span>"
        }
        return text + "</p>\n"
    }

    private static func contents(_ outcomes: [Outcome], _ notRun: [(Experiment, String)]) -> String {
        var text = "<nav aria-label=\"Experiments\"><ol>\n"
        for outcome in outcomes {
            let isGood = outcome.verdict.isAsDocumented
            text +=
                "<li><a href=\"#\(outcome.experiment.name)\">\(HTML.escaped(outcome.experiment.title))</a>"
            text += isGood ? "</li>\n" : " <b class=\"bad\">not as documented</b></li>\n"
        }
        text += "</ol>"
        for (experiment, reason) in notRun {
            text += HTML.element("p", class: "bad", "\(experiment.title): not carried out. \(reason)")
        }
        return text + "</nav>\n"
    }

    private static func section(_ outcome: Outcome, place: Int, hasTitle: Bool) -> String {
        let experiment = outcome.experiment
        let isGood = outcome.verdict.isAsDocumented
        var text =
            "<section class=\"experiment\" id=\"\(HTML.escaped(experiment.name))\" data-verdict=\"\(isGood)\">\n"
        if hasTitle { text += HTML.element("h2", experiment.title) }
        if !experiment.background.isEmpty { text += HTML.element("p", experiment.background) }
        text += HTML.element("p", class: "question", experiment.question)
        text += quiz(experiment, place: place)
        // Closed until the reader opens it, without a script: the timeline shows the answer.
        text += "<details class=\"answer\"><summary>See what happened</summary>\n"
        text += HTML.element("p", class: "outcome", "What happens: \(experiment.choices[experiment.answer])")
        text += PageParts.timeline(outcome.recording, id: "recording\(place)", title: experiment.name)
        text += experiment.plot?.svg(outcome.recording) ?? ""
        text += "<h3>What was seen</h3>\n<ul class=\"checks\">\n"
        for check in outcome.verdict.checks {
            text +=
                "<li class=\"\(check.holds ? "good" : "bad")\"><span>\(HTML.escaped(check.expected))</span>"
                + "<br><span class=\"quiet\">\(HTML.escaped(check.seen))</span></li>\n"
        }
        text +=
            "</ul>\n<p><span class=\"badge \(isGood ? "good" : "bad")\">\(outcome.verdict.words)</span></p>\n"
        text += "<h3>Why</h3>\n" + HTML.element("p", experiment.why)
        text += HTML.element("p", class: "quiet", "Rules: \(experiment.rules.joined(separator: ", "))")
        text +=
            "<details><summary>The code that ran, as a program</summary>\n<pre tabindex=\"0\"><code>"
            + HTML.escaped(experiment.program) + "</code></pre></details>\n"
        return text + "</details>\n</section>\n"
    }

    private static func quiz(_ experiment: Experiment, place: Int) -> String {
        var text =
            "<fieldset class=\"quiz\" data-answer=\"\(experiment.answer)\"><legend>Your prediction</legend>\n"
        for (number, choice) in experiment.choices.enumerated() {
            text +=
                "<label><input type=\"radio\" name=\"quiz\(place)\" value=\"\(number)\"> \(HTML.escaped(choice))</label>\n"
        }
        return text + "<output aria-live=\"polite\"></output></fieldset>\n"
    }
}
