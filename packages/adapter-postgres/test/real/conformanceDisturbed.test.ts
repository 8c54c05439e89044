/** The cases of the conformance suite that cut connections or restart the server. */
import { open, registerOn, registerStore } from "./suite.ts"

const server = await open()
registerOn(server, "disturbed", "ignored")
registerStore(server, "disturbed")
