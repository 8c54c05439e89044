/** The conformance suite on the oldest PostgreSQL that the adapter supports. */
import { registerDisturbed, registerQuiet } from "../real/suite.ts"

await registerQuiet("ignored", "13")
await registerDisturbed("ignored", "13")
