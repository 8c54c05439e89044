/** One journey through the command line on a real broker: the drill of the documentation, on NSQ. */
import { isJourney, replay } from "./sessions.ts"

replay(isJourney)
