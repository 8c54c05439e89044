/** The conformance suite on PostgreSQL: facts only, so a busy machine cannot fail it. test/deep judges lateness. */
import { open, registerOn, registerStore } from "./suite.ts"

const server = await open()
registerOn(server, "quiet", "ignored")
registerStore(server, "quiet")
