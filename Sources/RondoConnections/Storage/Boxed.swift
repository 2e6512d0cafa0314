/// A value that is rarely present, stored behind one word, so that its owner stays small, and quick to make
/// and to release.
@propertyWrapper struct Boxed<Value> {
    private indirect enum Box {
        case empty
        case full(Value)
    }

    private var box: Box

    init(wrappedValue: Value?) { box = wrappedValue.map(Box.full) ?? .empty }

    var wrappedValue: Value? {
        get { if case .full(let value) = box { value } else { nil } }
        set { box = newValue.map(Box.full) ?? .empty }
    }
}
