/** One journey through the command line on a real broker: the drill of the documentation, on NSQ. */
import { replay } from "./sessions.ts"

replay((path, broker) => path === "docs/drill.md" && broker === "nsq")
