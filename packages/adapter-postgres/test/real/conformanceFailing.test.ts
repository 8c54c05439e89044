/** The cases of the conformance suite that make calls fail. */
import { register } from "./suite.ts"

await register("failing", "ignored")
