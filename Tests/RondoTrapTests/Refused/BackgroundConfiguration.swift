// refused: No system service carries transfers on Linux: use download tasks, and go on with their resume data.
import Rondo

let configuration = URLSessionConfiguration.background(withIdentifier: "org.example.transfers")
