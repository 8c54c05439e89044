/** The conformance suite on fauxqs, with lateness. */
import { register } from "../real/suite.ts"

await register("fauxqs", 400, "judged")
