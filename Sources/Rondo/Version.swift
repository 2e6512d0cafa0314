/// The version of this library, by Semantic Versioning; CHANGELOG.md lists the changes of each.
public let rondoVersion = "0.1.0"
