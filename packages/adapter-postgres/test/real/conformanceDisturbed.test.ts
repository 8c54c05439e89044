/** The cases of the conformance suite that cut connections, restart the server or make calls fail. */
import { registerDisturbed } from "./suite.ts"

await registerDisturbed("ignored")
