/** The conformance suite on one nsqd, with lateness. */
import { register } from "../real/suite.ts"
import { lateness } from "../world.ts"

await register("", 1, { by: "address", lateness }, "judged")
