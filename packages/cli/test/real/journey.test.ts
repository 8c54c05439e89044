/** One journey through the CLI on a real broker: the drill on NSQ. */
import { isJourney, replay } from "./sessions.ts"

replay(isJourney)
