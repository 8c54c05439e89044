/** The conformance suite on PostgreSQL: facts only, so a busy machine cannot fail it. */
import { register } from "./suite.ts"

await register("ignored")
