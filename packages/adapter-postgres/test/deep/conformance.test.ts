/** The conformance suite on PostgreSQL, with lateness. */
import { registerDisturbed, registerQuiet } from "../real/suite.ts"

await registerQuiet("judged")
await registerDisturbed("judged")
