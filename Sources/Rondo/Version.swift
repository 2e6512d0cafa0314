/// The version of this library, by Semantic Versioning; CHANGELOG.md says what it brought.
public let rondoVersion = "0.1.0"
