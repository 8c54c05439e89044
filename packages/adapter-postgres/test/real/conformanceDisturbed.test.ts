/** The cases of the conformance suite that cut connections or restart the server. */
import { register } from "./suite.ts"

await register("disturbed", "ignored")
